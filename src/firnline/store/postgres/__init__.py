"""The PostgreSQL store: many servers and workers share one database. See `store`."""

from firnline.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
