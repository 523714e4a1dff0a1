"""MongoDB store, for many servers and workers on one database. See `store` and `heads`."""

from firnline.store.mongo.store import MongoStore

__all__ = ["MongoStore"]
