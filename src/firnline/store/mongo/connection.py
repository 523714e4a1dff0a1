"""The client, the collections, and what is done when a connection is lost.

Every write waits until most members of the replica set have it in their journals; a URL that asks
for less is refused. A server alone is asked for its own journal: for "majority" it does not wait
for that, and killed with -9 it loses what it has acknowledged.

Every decision is made by one write to one document that names the state it was made on, so reads
may be a moment old: what was decided on them is refused then, and decided anew.
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
"""The time, or None to take the server's."""

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
    "readconcernlevel": (("majority", "linearizable"), "what is read is there for good"),
    "readpreference": (("primary",), "reads see what was just written"),
}
_NAME: Final = regex(r'[^/\\. "$*<>:|?\0]{1,63}')


class _PlainInteger(TypeDecoder):
    """Numbers of 64 bits as those of 32: the rules for rows look at types."""

    bson_type = Int64

    def transform_bson(self, value: Any) -> int:
        """The same number."""
        return int(value)


_CODEC: Final[CodecOptions[Doc]] = CodecOptions(type_registry=TypeRegistry([_PlainInteger()]))


def check_url(url: str) -> str:
    """The name of the database in a URL; `BadURL` if it asks for weaker writes or reads."""
    parts = urlsplit(url)
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        allowed, why = _ONLY.get(name.lower(), ((), ""))
        if allowed and value.lower() not in allowed:
            raise BadURL(
                f"mongodb: {name}={value} is refused: {why}, or what was acknowledged could be "
                f"lost; leave it out, or say {name}={allowed[0]}"
            )
        if name.lower() in ("wtimeout", "wtimeoutms", "fsync", "slaveok"):
            raise BadURL(f"mongodb: {name} is not taken: a write is acknowledged when it is safe")
    name = unquote(parts.path.lstrip("/")) or DATABASE
    if not _NAME.fullmatch(name):
        raise BadURL(f"mongodb: {name!r} cannot name a database")
    return name


class MongoDatabase:
    """The collections of one database, and calls on them that are tried again where that helps."""

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
        """The present time as an expression, in microseconds: the server's, which all share."""
        now = self._clock()
        return _SERVER_TIME if now is None else microseconds(now)

    @asynccontextmanager
    async def turn(self, what: Hashable) -> AsyncIterator[None]:
        """One at a time in this process: several who compare and set would only be in the way."""
        lock = self._turns.get(what)
        if lock is None:
            lock = self._turns[what] = asyncio.Lock()
        async with lock:
            yield

    async def connect(self) -> None:
        """Make connections from now on."""
        # At DEBUG the driver tells whole commands, and with them what people said.
        logging.getLogger("pymongo.command").setLevel(logging.WARNING)
        try:
            client: AsyncMongoClient[Doc] = AsyncMongoClient(
                self._url, maxPoolSize=self._connections, **self._settings()
            )
        except (ConfigurationError, InvalidURI, ValueError) as error:
            raise BadURL(f"the store's URL is not understood: {error}") from error
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
        """Let go of all connections."""
        client, self._client = self._client, None
        self._collections = {}
        if client is not None:
            await client.close()

    @property
    def database(self) -> AsyncDatabase[Doc]:
        """The database, with safe writes and reads."""
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
        """Run what only reads, or what does no harm if it is done twice; tried again if lost."""
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
        """Run what writes, once. `StoreTimeout` if it is not known whether it was written."""
        try:
            with preserve_cancellation():
                return await work()
        except FAILURES as error:
            raise translate_error(error, self.place, writing=True) from error

    async def time(self) -> int:
        """The present time in microseconds."""
        now = self._clock()
        if now is not None:
            return microseconds(now)
        asked = {"_id": 0, "now": _SERVER_TIME}
        found = await self.read(lambda: self["schema"].find_one({}, projection=asked))
        return int(found["now"]) if found else 0


async def pause(tries: int) -> None:
    """Give way before another try."""
    await asyncio.sleep(random.uniform(0, 0.002 * 2 ** min(tries, 6)))  # noqa: S311 - jitter


def is_in_doubt(error: FirnlineError) -> bool:
    """Whether a write may have been done although it failed."""
    return isinstance(error, StoreTimeout)


def is_transient(error: FirnlineError) -> bool:
    """Whether trying again may help: the server was away, or somebody was in the way."""
    return isinstance(error, StoreTimeout | StoreUnavailable)
