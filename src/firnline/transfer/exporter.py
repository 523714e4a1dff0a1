"""Exports in other formats: OpenAI's JSON Lines, Markdown, HTML.

They are written page by page, and a file appears only when it is complete. The format that can be
imported again without loss is Firnline's own; see `jsonl`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from firnline.context.view import in_force
from firnline.errors import InputError
from firnline.log import limits
from firnline.log.entry import Digest, Entry, Head, Key, live
from firnline.log.regex import regex
from firnline.protocols import Progress, Store
from firnline.store.files import atomic_write
from firnline.transfer.formats import markdown, webpage
from firnline.transfer.formats.finetune import message_line
from firnline.transfer.formats.records import brief
from firnline.transfer.jsonl import Manifest
from firnline.transfer.jsonl import export as export_own
from firnline.transfer.scan import erased_error, heads

ExportFormat: TypeAlias = Literal["jsonl", "openai", "markdown", "html"]
FORMATS: Final[tuple[ExportFormat, ...]] = get_args(ExportFormat)
_ENDINGS: Final = {"markdown": ".md", "html": ".html"}
_PLAIN: Final = regex(r"[a-z0-9_-][a-z0-9_.-]{0,99}")


async def export(
    store: Store,
    tenant: str,
    path: Path,
    keys: Sequence[Key] | None,
    as_format: ExportFormat,
    progress: Progress | None,
) -> Manifest:
    """Write conversations to `path`, all of the tenant's if none are named; see `Memory.export`."""
    if as_format not in FORMATS:
        raise InputError(f"unknown format {as_format!r}; choose one of {', '.join(FORMATS)}")
    if as_format == "jsonl":
        return await export_own(store, tenant, path, keys, progress)
    if store.owns(path):
        raise InputError(f"{path} is the store itself; choose another file")
    found = heads(store, tenant, keys)
    counter = _Counter(progress)
    if as_format == "openai":
        await _write(path, _openai(store, tenant, found, counter))
    elif keys is not None and len(keys) == 1:
        async for head in found:
            await _write(path, _render(store, tenant, head, as_format, counter))
    else:
        _folder(path)
        async for head in found:
            file = path / file_name(head.conversation, _ENDINGS[as_format])
            await _write(file, _render(store, tenant, head, as_format, counter))
    return counter.counts


def file_name(conversation: str, ending: str) -> str:
    """A unique file name for a conversation that every file system accepts."""
    if _PLAIN.fullmatch(conversation) and not conversation.endswith("."):
        return conversation + ending
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", conversation).strip("-")[:80]
    return f"{plain}-{brief(conversation)}{ending}".lstrip("-")


class _Counter:
    """Counts what has been written so far."""

    def __init__(self, progress: Progress | None) -> None:
        self.counts = Manifest()
        self._progress = progress

    def conversation(self) -> None:
        """Count a conversation."""
        self.counts = replace(self.counts, conversations=self.counts.conversations + 1)

    def entries(self, page: Sequence[Entry]) -> None:
        """Count some of its entries."""
        self.counts = replace(
            self.counts,
            entries=self.counts.entries + len(page),
            tokens=self.counts.tokens + sum(entry.tokens for entry in page),
        )
        if self._progress is not None:
            self._progress(self.counts.entries, 0)


def _folder(path: Path) -> None:
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be created as a folder: {error.strerror}") from error


async def _write(path: Path, pieces: AsyncIterator[str]) -> None:
    with atomic_write(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        async for piece in pieces:
            await asyncio.to_thread(file.write, piece)


class _Source(NamedTuple):
    """A conversation, up to the head that was read."""

    store: Store
    key: Key
    head: Head

    async def pages(self, first: int, last: int, counter: _Counter) -> AsyncIterator[list[Entry]]:
        """Its entries from `first` to `last`; `ConflictError` if it is erased in the meantime."""
        while first <= last:
            page = await self.store.read(self.key, first, last, limits.BACKLOG_PAGE)
            if not page or (page[-1].seq == self.head.seq and page[-1].hash != self.head.hash):
                raise erased_error(self.key)
            counter.entries(page)
            yield live(page)
            first = page[-1].seq + 1


async def _openai(
    store: Store, tenant: str, found: AsyncIterator[Head], counter: _Counter
) -> AsyncIterator[str]:
    async for head in found:
        counter.conversation()
        if not head.entries:
            continue
        source, comma = _Source(store, Key(tenant, head.conversation), head), ""
        yield '{"messages":['
        async for page in source.pages(0, head.seq, counter):
            yield comma + ",".join(message_line(entry.message) for entry in page)
            comma = ","
        yield "]}\n"


def _render(
    store: Store, tenant: str, head: Head, as_format: ExportFormat, counter: _Counter
) -> AsyncIterator[str]:
    counter.conversation()
    write = _markdown if as_format == "markdown" else _html
    return write(_Source(store, Key(tenant, head.conversation), head), counter)


async def _markdown(source: _Source, counter: _Counter) -> AsyncIterator[str]:
    yield markdown.opening(source.head, await in_force(source.store, source.key))
    async for page in source.pages(0, source.head.seq, counter):
        yield "".join(map(markdown.render_message, page))


async def _html(source: _Source, counter: _Counter) -> AsyncIterator[str]:
    store, key, head = source
    yield webpage.opening(head)
    layers = _Layers(source, counter)
    digests = await in_force(store, key)
    async for piece in layers.pieces(0, head.seq, digests):
        yield piece
    known = (await store.topics(key)).topics.values()
    found = [(topic, await store.newest_digest(key, topic.id)) for topic in known]
    for piece in webpage.topics(found):
        yield piece
    yield webpage.closing()


class _Layers:
    """Messages below the digests that cover them, and digests below those that contain them."""

    def __init__(self, source: _Source, counter: _Counter) -> None:
        self._source, self._counter = source, counter

    async def pieces(
        self, first: int, last: int, digests: Sequence[Digest], depth: int = 0
    ) -> AsyncIterator[str]:
        """The entries `first` to `last` below these digests."""
        at = first
        for digest in sorted(digests, key=lambda digest: (digest.first_seq, digest.last_seq)):
            if digest.first_seq < at or digest.last_seq > last:
                yield webpage.digest_alone(digest)  # its messages are below another one
                continue
            async for piece in self._entries(at, digest.first_seq - 1):
                yield piece
            async for piece in self._below(digest, depth):
                yield piece
            at = digest.last_seq + 1
        async for piece in self._entries(at, last):
            yield piece

    async def _below(self, digest: Digest, depth: int) -> AsyncIterator[str]:
        yield webpage.digest_opening(digest)
        inner: Sequence[Digest] = ()
        if digest.parts and depth < webpage.NESTED_MAX:
            inner = await self._source.store.digests(self._source.key, digest.parts)
        async for piece in self.pieces(digest.first_seq, digest.last_seq, inner, depth + 1):
            yield piece
        yield webpage.digest_closing()

    async def _entries(self, first: int, last: int) -> AsyncIterator[str]:
        async for page in self._source.pages(first, last, self._counter):
            yield "".join(map(webpage.render_message, page))
