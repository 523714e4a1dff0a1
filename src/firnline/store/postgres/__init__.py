"""The store in PostgreSQL, for many servers and workers on one database. See `store`."""

from firnline.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
