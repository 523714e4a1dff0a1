"""Stores for conversations. `open_store` selects the backend by URL."""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol, runtime_checkable
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from firnline.errors import BadURL, InputError, StoreCorrupt, StoreError
from firnline.log.message import utc_now
from firnline.log.regex import regex
from firnline.protocols import Clock, Finding, Store
from firnline.store.files import local_path
from firnline.store.ram import RamStore
from firnline.store.sqlite import SqliteStore

__all__ = [
    "RamStore",
    "SqliteStore",
    "is_unusable_file",
    "missing_file",
    "open_store",
    "redact_url",
    "restore_backup",
]

_KNOWN = "use sqlite:///FILE, postgresql://HOST/DATABASE, mongodb://HOST/DATABASE or memory:"

_HOW: Final = "percent-encode it with urllib.parse.quote(password, safe='')"
_CREDENTIALS: Final = regex(r"^([a-z+]*:/*)?([^:@/]*):.*@", re.DOTALL | re.IGNORECASE)
_SECRETS: Final = regex(
    r"(?<=[?&])(password|sslpassword|authMechanismProperties|tlsCertificateKeyFilePassword)=[^&#]*",
    re.IGNORECASE,
)

_OPTIONS = {"mode": ("rw", "ro"), "durability": ("full", "process")}


def open_store(url: str, *, clock: Clock = utc_now) -> Store:
    """The store at `url`, not yet opened.

    - ``sqlite:///notes.db`` (relative) or ``sqlite:////var/lib/notes.db`` (absolute). Query
      options: ``mode=ro`` (read-only), ``durability=process`` (survives a crash, not a power cut).
    - ``postgresql://user:password@host/database``, for many servers and workers on one database;
      requires ``firnline[postgres]``. Query options: those of libpq, such as ``sslmode``.
    - ``mongodb://user:password@host/database`` (or ``mongodb+srv:``), the same on MongoDB; requires
      ``firnline[mongo]``. Query options: those of the driver, except weaker write concerns.
    - ``memory:`` keeps everything in memory.
    """
    if url in ("memory:", "memory://"):
        return RamStore(clock=clock)
    parts = _split(url)
    if parts.scheme in ("postgresql", "postgres"):
        check_server_url(url)
        return _postgres(url, clock)
    if parts.scheme in ("mongodb", "mongodb+srv"):
        check_server_url(url)
        return _mongo(url, clock)
    if parts.scheme != "sqlite":
        raise BadURL(f"{redact_url(url)!r}: {_KNOWN}")
    if parts.fragment:
        raise BadURL(f"{url!r}: percent-encode # in a file name as %23: sqlite:///notes%231.db")
    path = unquote(parts.path)[1:]
    if parts.netloc or not path or path == ":memory:":
        raise BadURL(
            f"{redact_url(url)!r}: a SQLite URL has three slashes and a path, as in "
            "sqlite:///notes.db or sqlite:////var/lib/notes.db; for an in-memory store use memory:"
        )
    options = _options(url, parts.query)
    return SqliteStore(
        path,
        read_only=options.get("mode") == "ro",
        full_sync=options.get("durability") != "process",
        clock=clock,
    )


def _split(url: str) -> SplitResult:
    if isinstance(url, str):  # callers may pass a Path
        with suppress(ValueError):
            return urlsplit(url)
    raise BadURL(f"{redact_url(str(url))!r}: {_KNOWN}")


def _postgres(url: str, clock: Clock) -> Store:
    try:
        from firnline.store.postgres import PostgresStore  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("firnline"):
            raise
        raise StoreError('PostgreSQL needs an extra: pip install "firnline[postgres]"') from error
    return PostgresStore(url, clock=clock)


def _mongo(url: str, clock: Clock) -> Store:
    try:
        from firnline.store.mongo import MongoStore  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("firnline"):
            raise
        raise StoreError('MongoDB needs an extra: pip install "firnline[mongo]"') from error
    return MongoStore(url, clock=clock)


@runtime_checkable
class Restorable(Protocol):
    """An optional part of a store: what `backup` wrote can be read into a new place."""

    async def restore_backup(self, path: Path) -> None:
        """Read a backup; the store is not open, and its place is empty.

        `InputError` if there is something already, or the file is no backup of such a store.
        """
        ...


async def restore_backup(path: Path, url: str) -> list[Finding]:
    """Read a backup into the empty store at `url`, and check every page and row of it.

    `StoreCorrupt` if something of it is damaged: it is there, but it should not be used.
    """
    if not await asyncio.to_thread(path.is_file):
        raise InputError(f"there is no backup at {path}")
    store = open_store(url)
    if not isinstance(store, Restorable):
        raise InputError(f"{redact_url(url)} is lost when the command ends; name a permanent store")
    await store.restore_backup(path)
    await store.open()
    try:
        findings = await store.check(thorough=True)
    finally:
        await store.close()
    if broken := [finding for finding in findings if finding.state == "broken"]:
        what = "; ".join(f"{finding.what}: {finding.detail}" for finding in broken)
        raise StoreCorrupt(f"{path} was restored, but it is damaged: {what}")
    return findings


def missing_file(url: str) -> Path | None:
    """The file that a store at `url` would have to create, or None if no file is missing."""
    if not url.startswith("sqlite:///"):
        return None
    path = local_path(unquote(_split(url).path)[1:])
    return None if path.exists() else path


def is_unusable_file(url: str) -> bool:
    """Whether a store that could not be opened is a file that waiting does not bring.

    A database server, or a file that another process has locked, may be back in a moment.
    """
    if not url.startswith("sqlite:///"):
        return False
    path = local_path(unquote(_split(url).path)[1:])
    return not (path.exists() and os.access(path, os.R_OK | os.W_OK))


def _options(url: str, query: str) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name, value in options.items():
        if value not in _OPTIONS.get(name, ()):
            known = ", ".join(f"{key}={'|'.join(values)}" for key, values in _OPTIONS.items())
            raise BadURL(f"{url!r}: {name}={value} is not a valid option; use {known}")
    return options


def redact_url(url: str) -> str:
    """The URL without its password, for logs and errors."""
    hidden = url if url.startswith("sqlite:///") else _CREDENTIALS.sub(r"\1\2:***@", url)
    return _SECRETS.sub(r"\1=***", hidden)


def check_server_url(url: str) -> None:
    """Raise `BadURL` if the URL of a database server is ambiguous."""
    scheme, slashes, rest = url.partition("://")
    if not slashes:
        raise BadURL(f"{scheme.partition(':')[0]}: a database URL must have :// after its scheme")
    if re.search(r"%(?![0-9A-Fa-f]{2})", rest):
        raise BadURL(f"{scheme}: invalid percent-encoding in the URL; if it is a password, {_HOW}")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    # An @ after an equals sign belongs to an option, as in ?user=me@cloud.
    cut = "@" not in authority and "@" in rest.partition("=")[0]
    if cut or authority.count("@") > 1:
        raise BadURL(f"{scheme}: the user or password in the URL contains @ / ? or #; {_HOW}")
