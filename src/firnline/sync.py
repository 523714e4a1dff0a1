"""The same names without await, for code that has no event loop.

`Memory` here is a facade: every call runs `firnline.Memory` on one event loop in a thread of its
own, so there is no second implementation that could differ from the first.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import Any, Self, TypeVar

from firnline import memory as asynchronous
from firnline.log import Appended, Archived, Digest, Entry, Erased, Head, Hit, Project
from firnline.memory import DEFAULT_TENANT
from firnline.message import Message, Part, ToolCall, utc_now
from firnline.proof import Verification
from firnline.protocols import Clock, Finding, Progress, Store
from firnline.text import Json
from firnline.tokens import DEFAULT_MODEL, TokenCount, TokenCounter, count_tokens
from firnline.transfer import Manifest
from firnline.wire import MessageLike

__all__ = ["Memory", "Message", "Part", "TokenCount", "ToolCall", "count_tokens"]

T = TypeVar("T")


class Memory:
    """The conversations of one tenant; see `firnline.Memory` for what each method does.

    ``with Memory.open("sqlite:///notes.db") as memory:`` opens it and closes it again. May be used
    from any number of threads.
    """

    def __init__(
        self,
        store: Store,
        *,
        tenant: str = DEFAULT_TENANT,
        count: TokenCounter | None = None,
        clock: Clock = utc_now,
    ) -> None:
        self._memory = asynchronous.Memory(store, tenant=tenant, count=count, clock=clock)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0

    @classmethod
    def open(
        cls,
        url: str = "sqlite:///firnline.db",
        *,
        tenant: str = DEFAULT_TENANT,
        model: str = DEFAULT_MODEL,
        clock: Clock = utc_now,
    ) -> Self:
        """A memory at `url`; nothing is touched until it is entered or started."""
        inner = asynchronous.Memory.open(url, tenant=tenant, model=model, clock=clock)
        memory = cls(inner.store, tenant=tenant, clock=clock)
        memory._memory = inner
        return memory

    def start(self) -> None:
        """Open the store; ``with`` does this."""
        if self._loop is not None:
            raise RuntimeError("it is started already")
        ready = threading.Event()
        self._process = os.getpid()
        self._thread = threading.Thread(
            target=self._serve, args=(ready,), name="firnline-sync", daemon=True
        )
        self._thread.start()
        ready.wait()
        try:
            self._run(self._memory.start())
        except BaseException:
            self._stop()
            raise

    def close(self) -> None:
        """Let go of the store; ``with`` does this."""
        if self._loop is not None:
            try:
                self._run(self._memory.close())
            finally:
                self._stop()

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            coroutine.close()
            raise RuntimeError("use `with Memory.open(...) as memory:`, or call start() first")
        if self._process != os.getpid():
            coroutine.close()
            raise RuntimeError("this memory was opened before a fork; open one in the child")
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("called from its own thread, for example from a progress callback")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _serve(self, ready: threading.Event) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            ready.set()
            self._loop.run_forever()

    def _stop(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None and self._thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def tenant(self) -> str:
        """Whose conversations these are."""
        return self._memory.tenant

    @property
    def store(self) -> Store:
        """What keeps them; its methods are asynchronous."""
        return self._memory.store

    # -- writing ------------------------------------------------------------------------------

    def append(
        self,
        conversation: str,
        messages: MessageLike | Iterable[MessageLike],
        *,
        expected_seq: int | None = None,
        idempotency_key: str | None = None,
    ) -> Appended:
        """Add one message or several; durable when this returns."""
        return self._run(
            self._memory.append(
                conversation,
                messages,
                expected_seq=expected_seq,
                idempotency_key=idempotency_key,
            )
        )

    def describe(
        self,
        conversation: str,
        *,
        project: str | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> Head:
        """Say which project a conversation belongs to, or what else to remember about it."""
        return self._run(self._memory.describe(conversation, project=project, metadata=metadata))

    def save_project(self, project: Project) -> None:
        """Create a project, or replace what is known of it."""
        self._run(self._memory.save_project(project))

    # -- reading ------------------------------------------------------------------------------

    def read(
        self,
        conversation: str,
        *,
        first_seq: int = 0,
        last_seq: int | None = None,
        limit: int | None = None,
    ) -> list[Entry]:
        """The entries from `first_seq` to `last_seq`, word for word."""
        return self._run(
            self._memory.read(conversation, first_seq=first_seq, last_seq=last_seq, limit=limit)
        )

    def newest(self, conversation: str, *, tokens: int) -> list[Entry]:
        """The newest entries that fit into `tokens`."""
        return self._run(self._memory.newest(conversation, tokens=tokens))

    def tokens_between(self, conversation: str, first_seq: int, last_seq: int) -> int:
        """The tokens of the entries `first_seq` to `last_seq`, both included."""
        return self._run(self._memory.tokens_between(conversation, first_seq, last_seq))

    def dated(
        self, conversation: str, since: datetime, until: datetime, *, limit: int = 100
    ) -> list[Entry]:
        """The entries said in [since, until)."""
        return self._run(self._memory.dated(conversation, since, until, limit=limit))

    def head(self, conversation: str) -> Head | None:
        """Where the conversation stands, or None if there is none."""
        return self._run(self._memory.head(conversation))

    def conversations(
        self, *, project: str | None = None, after: str = "", limit: int = 100
    ) -> list[Head]:
        """The conversations by name, those behind `after`."""
        return self._run(self._memory.conversations(project=project, after=after, limit=limit))

    def projects(self) -> list[Project]:
        """The projects by name."""
        return self._run(self._memory.projects())

    def digests(self, conversation: str) -> list[Digest]:
        """The conversation's digests by version."""
        return self._run(self._memory.digests(conversation))

    def recall(self, conversation: str | None, query: str, *, limit: int = 10) -> list[Hit]:
        """Old entries that have words of `query`, best first."""
        return self._run(self._memory.recall(conversation, query, limit=limit))

    # -- proving ------------------------------------------------------------------------------

    def verify(
        self, conversation: str, *, anchor: str | None = None, progress: Progress | None = None
    ) -> Verification:
        """Derive every hash of the conversation again; `anchor` must be in the chain."""
        return self._run(self._memory.verify(conversation, anchor=anchor, progress=progress))

    def check(self, *, thorough: bool = False) -> list[Finding]:
        """The health of the store itself."""
        return self._run(self._memory.check(thorough=thorough))

    def rebuild_index(self, *, progress: Progress | None = None) -> None:
        """Make the search index anew from the log, for every tenant of the store."""
        self._run(self._memory.rebuild_index(progress=progress))

    # -- keeping and leaving ------------------------------------------------------------------

    def archive(self, conversation: str, *, keep: int = 1_000) -> Archived:
        """Compress all but the newest `keep` entries."""
        return self._run(self._memory.archive(conversation, keep=keep))

    def restore(self, conversation: str) -> int:
        """Take every archived entry back; returns how many there were."""
        return self._run(self._memory.restore(conversation))

    def erase(self, conversation: str) -> Erased:
        """Destroy a conversation and everything derived from it."""
        return self._run(self._memory.erase(conversation))

    def export(
        self,
        path: str | PathLike[str],
        *,
        conversations: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> Manifest:
        """Write conversations to a JSON Lines file with a manifest."""
        return self._run(self._memory.export(path, conversations=conversations, progress=progress))

    def import_(self, path: str | PathLike[str], *, progress: Progress | None = None) -> Manifest:
        """Read such a file; all of it is checked first."""
        return self._run(self._memory.import_(path, progress=progress))

    def backup(self, path: str | PathLike[str], *, progress: Progress | None = None) -> None:
        """Write a consistent copy of the whole store to a new file."""
        self._run(self._memory.backup(path, progress=progress))
