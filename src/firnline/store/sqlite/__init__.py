"""The embedded store: one SQLite file, accessed with the SQLite library bundled in apsw."""

from firnline.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
