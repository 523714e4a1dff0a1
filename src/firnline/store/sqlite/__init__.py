"""The embedded store: one SQLite file, through the library that apsw brings along."""

from firnline.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
