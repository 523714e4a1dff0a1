"""The client, the collections, and retries after a lost connection.

Every write waits for the journals of a majority of the replica set; a URL with a weaker write
concern is rejected. A standalone server gets w=1 with j=true: with "majority" it does not wait for
its journal, and loses acknowledged writes when it is killed with -9.

Every change is one write to one document, conditional on the state that it was decided on. So reads
may be slightly stale: the write then matches nothing, and the change is decided again.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit
from weakref import WeakValueDictionary

from bson import Int64
from bson.codec_options import CodecOptions, TypeDecoder, TypeRegistry
from pymongo import AsyncMongoClient
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import ConfigurationError, InvalidURI
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import ReadPreference
from pymongo.write_concern import WriteConcern

from firnline.errors import BadURL, FirnlineError, StoreNotOpen, StoreTimeout, StoreUnavailable
from firnline.log import limits
from firnline.log.message import microseconds
from firnline.log.regex import regex
from firnline.store.cancellation import preserve_cancellation
from firnline.store.mongo.errors import FAILURES, is_lost, translate_error

T = TypeVar("T")
Doc = dict[str, Any]
Collection = AsyncCollection[Doc]
MaybeTime = Callable[[], datetime | None]
"""The time, or None to use the server's."""

DATABASE: Final = "firnline"
_SERVER_TIME: Final = {"$multiply": [{"$toLong": "$$NOW"}, 1000]}
_SETTINGS: Final[dict[str, Any]] = {
    "appname": "firnline",
    "serverSelectionTimeoutMS": int(limits.CONNECT_SECONDS * 1000),
    "connectTimeoutMS": int(limits.CONNECT_SECONDS * 1000),
    "socketTimeoutMS": int(2 * limits.BUSY_SECONDS * 1000),
    "waitQueueTimeoutMS": int(limits.BUSY_SECONDS * 1000),
}
_ONLY: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "w": (("majority",), "writes wait for the majority"),
    "journal": (("true",), "writes wait for the journal"),
    "j": (("true",), "writes wait for the journal"),
    "readconcernlevel": (("majority", "linearizable"), "reads return only committed data"),
    "readpreference": (("primary",), "reads see the latest writes"),
}
_NAME: Final = regex(r'[^/\\. "$*<>:|?\0]{1,63}')


class _PlainInteger(TypeDecoder):
    """Decodes Int64 as int: rows are checked by exact type."""

    bson_type = Int64

    def transform_bson(self, value: Any) -> int:
        """The value as an int."""
        return int(value)


_CODEC: Final[CodecOptions[Doc]] = CodecOptions(type_registry=TypeRegistry([_PlainInteger()]))


def check_url(url: str) -> str:
    """The database name in a URL; `BadURL` if the URL asks for weaker writes or reads."""
    parts = urlsplit(url)
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        allowed, why = _ONLY.get(name.lower(), ((), ""))
        if allowed and value.lower() not in allowed:
            raise BadURL(
                f"mongodb: {name}={value} is not allowed: {why}, so that no acknowledged "
                f"data is lost; remove it, or use {name}={allowed[0]}"
            )
        if name.lower() in ("wtimeout", "wtimeoutms", "fsync", "slaveok"):
            raise BadURL(f"mongodb: {name} is not supported: writes wait until durable; remove it")
    name = unquote(parts.path.lstrip("/")) or DATABASE
    if not _NAME.fullmatch(name):
        raise BadURL(f"mongodb: {name!r} is not a valid database name")
    return name


class MongoDatabase:
    """The collections of one database, and calls on them, retried where that is safe."""

    def __init__(self, url: str, *, clock: MaybeTime, connections: int) -> None:
        self.name = check_url(url)
        self._url = url
        self.place = f"mongodb://{urlsplit(url).netloc.rpartition('@')[2]}/{self.name}"
        self.writes = WriteConcern("majority", j=True)
        self._clock = clock
        self._connections = connections
        self._client: AsyncMongoClient[Doc] | None = None
        self._collections: dict[str, Collection] = {}
        self._turns: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    @property
    def now(self) -> Any:
        """The current time as an expression, in microseconds: the server's, which all share."""
        now = self._clock()
        return _SERVER_TIME if now is None else microseconds(now)

    @asynccontextmanager
    async def turn(self, what: Hashable) -> AsyncIterator[None]:
        """A lock within this process: concurrent compare-and-set writes would only conflict."""
        lock = self._turns.get(what)
        if lock is None:
            lock = self._turns[what] = asyncio.Lock()
        async with lock:
            yield

    async def connect(self) -> None:
        """Create the client, and configure writes for the server."""
        # At DEBUG the driver logs whole commands, including the text of messages.
        logging.getLogger("pymongo.command").setLevel(logging.WARNING)
        try:
            client: AsyncMongoClient[Doc] = AsyncMongoClient(
                self._url, maxPoolSize=self._connections, **self._settings()
            )
        except (ConfigurationError, InvalidURI, ValueError) as error:
            raise BadURL(f"invalid store URL: {error}") from error
        except FAILURES as error:
            raise translate_error(error, self.place) from error
        self._client = client
        hello = await self.read(lambda: client.admin.command("hello"))
        alone = not hello.get("setName") and hello.get("msg") != "isdbgrid"
        self.writes = WriteConcern(1 if alone else "majority", j=True)

    def _settings(self) -> dict[str, Any]:
        given = {name.lower() for name, _ in parse_qsl(urlsplit(self._url).query)}
        return {name: value for name, value in _SETTINGS.items() if name.lower() not in given}

    async def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        self._collections = {}
        if client is not None:
            await client.close()

    @property
    def database(self) -> AsyncDatabase[Doc]:
        """The database, with durable writes and committed reads."""
        if self._client is None:
            raise StoreNotOpen
        return self._client.get_database(
            self.name,
            codec_options=_CODEC,
            read_preference=ReadPreference.PRIMARY,
            write_concern=self.writes,
            read_concern=ReadConcern("majority"),
        )

    def __getitem__(self, name: str) -> Collection:
        found = self._collections.get(name)
        if found is None or self._client is None:
            found = self._collections[name] = self.database.get_collection(name)
        return found

    async def read(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run a read or an idempotent write; retried if the connection is lost."""
        tries = 0
        while True:
            try:
                with preserve_cancellation():
                    return await work()
            except FAILURES as error:
                tries += 1
                if tries >= limits.STORE_TRIES_MAX or not is_lost(error):
                    raise translate_error(error, self.place) from error
                await pause(tries)

    async def write(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run a write, once. Raises `StoreTimeout` if the outcome is unknown."""
        try:
            with preserve_cancellation():
                return await work()
        except FAILURES as error:
            raise translate_error(error, self.place, writing=True) from error

    async def time(self) -> int:
        """The current time in microseconds."""
        now = self._clock()
        if now is not None:
            return microseconds(now)
        asked = {"_id": 0, "now": _SERVER_TIME}
        found = await self.read(lambda: self["schema"].find_one({}, projection=asked))
        return int(found["now"]) if found else 0


async def pause(tries: int) -> None:
    """Wait before a retry."""
    await asyncio.sleep(random.uniform(0, 0.002 * 2 ** min(tries, 6)))  # noqa: S311 - jitter


def is_in_doubt(error: FirnlineError) -> bool:
    """Whether a failed write may have been applied."""
    return isinstance(error, StoreTimeout)


def is_transient(error: FirnlineError) -> bool:
    """Whether a retry may help: the server was unavailable, or writes conflicted."""
    return isinstance(error, StoreTimeout | StoreUnavailable)
