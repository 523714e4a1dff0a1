"""The same names without await, for code that has no event loop.

`Memory` here is a facade: every call runs `firnline.Memory` on one event loop in a thread of its
own, so there is no second implementation that could differ from the first.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack

from firnline import memory as asynchronous
from firnline import strategies
from firnline.context.budget import Budget, BudgetLike
from firnline.context.context import Context, Section
from firnline.context.plan import Strategy
from firnline.context.tools import Tool, Toolbox
from firnline.engine.digest_history import Difference, Lineage, State
from firnline.engine.loop_thread import LoopThread
from firnline.engine.options import MemoryOptions
from firnline.engine.recall import Filters
from firnline.engine.stats import PRICE, Stats
from firnline.engine.turn import Turn, TurnOptions
from firnline.errors import BudgetError, FirnlineError, ModelError
from firnline.log import limits
from firnline.log.chain import Verification
from firnline.log.entry import Appended, Archived, Digest, Entry, Erased, Head, Hit, Project
from firnline.log.message import Message, Part, ToolCall, utc_now
from firnline.log.text import Json
from firnline.log.tokens import TokenCount, count_tokens
from firnline.log.wire import MessageLike
from firnline.models import open_model
from firnline.models.model_like import ModelLike
from firnline.protocols import Clock, Finding, Progress, Retriever, Store
from firnline.store import open_store
from firnline.topics import Match, TopicStats
from firnline.transfer.exporter import ExportFormat
from firnline.transfer.importer import Report
from firnline.transfer.jsonl import Manifest

__all__ = [
    "Appended",
    "Budget",
    "BudgetError",
    "Context",
    "Digest",
    "Entry",
    "Erased",
    "FirnlineError",
    "Head",
    "Hit",
    "Memory",
    "Message",
    "ModelError",
    "Part",
    "Project",
    "Section",
    "Stats",
    "Strategy",
    "TokenCount",
    "Tool",
    "ToolCall",
    "Toolbox",
    "Turn",
    "Verification",
    "count_tokens",
    "open_model",
    "strategies",
]

T = TypeVar("T")


class Memory:
    """The conversations of one tenant; see `firnline.Memory` for what each method does.

    ``with Memory.open("sqlite:///notes.db") as memory:`` opens it and closes it again. May be used
    from any number of threads.
    """

    def __init__(
        self, store: Store, *, clock: Clock = utc_now, **options: Unpack[MemoryOptions]
    ) -> None:
        self._memory = asynchronous.Memory(store, clock=clock, **options)
        self._loop = LoopThread(
            "firnline-sync", "use `with Memory.open(...) as memory:`, or call start() first"
        )

    @classmethod
    def open(
        cls,
        url: str = "sqlite:///firnline.db",
        *,
        clock: Clock = utc_now,
        **options: Unpack[MemoryOptions],
    ) -> Self:
        """A memory at `url`; nothing is touched until it is entered or started."""
        return cls(open_store(url, clock=clock), clock=clock, **options)

    def start(self) -> None:
        """Open the store; ``with`` does this."""
        self._loop.start()
        try:
            self._run(self._memory.start())
        except BaseException:
            self._loop.stop()
            raise

    def close(self) -> None:
        """Let go of the store; ``with`` does this."""
        if self._loop.started:
            try:
                self._run(self._memory.close())
            finally:
                self._loop.stop()

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._loop.run(coroutine)

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

    @property
    def events(self) -> Mapping[str, int]:
        """How often what happened."""
        return self._memory.events

    @property
    def behind(self) -> asynchronous.Memory:
        """The memory that does the work, for whoever has coroutines of it to `run`."""
        return self._memory

    @property
    def run(self) -> Callable[[Coroutine[Any, Any, T]], T]:
        """Waits for a coroutine that runs on this memory's own loop."""
        return self._run

    def tell(self, name: str, conversation: str, values: Mapping[str, float | str]) -> None:
        """Count something that was done with a conversation elsewhere, and tell the observer."""
        self._memory.tell(name, conversation, values)

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
        known: Head | None = None,
    ) -> Head:
        """Say which project a conversation belongs to, or what else to remember about it."""
        about = self._memory.describe(conversation, project=project, metadata=metadata, known=known)
        return self._run(about)

    def branch(self, conversation: str, seq: int, name: str) -> Head:
        """A new conversation `name` that begins with the entries 0 to `seq`, word for word."""
        return self._run(self._memory.branch(conversation, seq, name))

    def save_project(self, project: Project) -> None:
        """Create a project, or replace what is known of it."""
        self._run(self._memory.save_project(project))

    def pin(self, conversation: str, seq: int) -> None:
        """Show this entry in every context from now on, word for word."""
        self._run(self._memory.pin(conversation, seq))

    def unpin(self, conversation: str, seq: int) -> None:
        """Treat the entry like any other again."""
        self._run(self._memory.unpin(conversation, seq))

    # -- contexts -----------------------------------------------------------------------------

    def context(  # noqa: PLR0913 - each is asked for by name
        self,
        conversation: str,
        budget: BudgetLike,
        question: str | None = None,
        *,
        system: str | Message | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        task: str | None = None,
        retriever: Retriever | None = None,
        fold: bool = True,
        past: bool = False,
    ) -> Context:
        """What a model should see of the conversation now; never more than `budget`."""
        return self._run(
            self._memory.context(
                conversation,
                budget,
                question,
                system=system,
                tools=tools,
                task=task,
                retriever=retriever,
                fold=fold,
                past=past,
            )
        )

    def set_strategy(
        self, conversation: str, strategy: Strategy | str, *, known: Head | None = None
    ) -> Head:
        """Plan this conversation's contexts so from now on."""
        return self._run(self._memory.set_strategy(conversation, strategy, known=known))

    def strategy(self, conversation: str) -> Strategy:
        """How this conversation's contexts are planned."""
        return self._run(self._memory.strategy(conversation))

    def turn(
        self,
        conversation: str,
        message: str | MessageLike,
        model: ModelLike | None = None,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[TurnOptions],
    ) -> Turn:
        """Store what the user says, let the model answer, store the answer."""
        return self._run(
            self._memory.turn(
                conversation, message, model, idempotency_key=idempotency_key, **options
            )
        )

    def stream(
        self,
        conversation: str,
        message: str | MessageLike,
        model: ModelLike | None = None,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[TurnOptions],
    ) -> Iterator[str | Turn]:
        """Like `turn`, with the answer's text in pieces as it comes, and then the `Turn`."""
        pieces = self._memory.stream(
            conversation, message, model, idempotency_key=idempotency_key, **options
        )
        yield from self._loop.walk(pieces)

    # -- digests ------------------------------------------------------------------------------

    def digest(self, conversation: str) -> int:
        """Make now the digests that are owed; returns how many were made."""
        return self._run(self._memory.digest(conversation))

    def digests(self, conversation: str) -> list[Digest]:
        """The conversation's digests by version, failed and undone ones too."""
        return self._run(self._memory.digests(conversation))

    def in_force(self, conversation: str) -> tuple[Digest, ...]:
        """The digests that contexts are made of now, oldest span first."""
        return self._run(self._memory.in_force(conversation))

    def lineage(self, conversation: str) -> Lineage:
        """The chain of versions, what is stuck, and how long digests took."""
        return self._run(self._memory.lineage(conversation))

    def state(self, conversation: str) -> State:
        """What the conversation's memory holds: important data, summary, how far it reaches."""
        return self._run(self._memory.state(conversation))

    def remember(
        self, conversation: str, important_data: Mapping[str, Any], *, summary: str | None = None
    ) -> Digest:
        """Add to the important data what the application knows."""
        return self._run(self._memory.remember(conversation, important_data, summary=summary))

    def revert(self, conversation: str, seq: int) -> Digest:
        """Take back what the entry `seq` replaced in the important data."""
        return self._run(self._memory.revert(conversation, seq))

    def undo(self, conversation: str, *, topic: int | None = None) -> Digest:
        """Take the newest digest out of force."""
        return self._run(self._memory.undo(conversation, topic=topic))

    def clear(self, conversation: str) -> int:
        """Undo every digest; the messages stay."""
        return self._run(self._memory.clear(conversation))

    def expand(self, conversation: str, version: int) -> list[Entry]:
        """The entries that a digest covers, word for word."""
        return self._run(self._memory.expand(conversation, version))

    def diff(self, conversation: str, before: int, after: int) -> Difference:
        """What changed from one version to another."""
        return self._run(self._memory.diff(conversation, before, after))

    def rebuild(self, conversation: str, *, only_offline: bool = False) -> list[Digest]:
        """Make the digests in force anew from the log."""
        return self._run(self._memory.rebuild(conversation, only_offline=only_offline))

    def work(self, *, once: bool = False, all_tenants: bool = False) -> int:
        """Make the digests that are owed; for ever, or once."""
        return self._run(self._memory.work(once=once, all_tenants=all_tenants))

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
        self,
        conversation: str,
        since: datetime,
        until: datetime,
        *,
        first_seq: int = 0,
        limit: int = 100,
    ) -> list[Entry]:
        """The entries said in [since, until), by number, from `first_seq` on."""
        return self._run(
            self._memory.dated(conversation, since, until, first_seq=first_seq, limit=limit)
        )

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

    def recall(
        self,
        conversation: str | None,
        query: str,
        *,
        limit: int | None = None,
        tokens: int | None = None,
        **filters: Unpack[Filters],
    ) -> list[Hit]:
        """Old entries that fit `query`, best first; None searches every conversation."""
        return self._run(
            self._memory.recall(conversation, query, limit=limit, tokens=tokens, **filters)
        )

    def standalone(self, conversation: str, question: str) -> str:
        """The question with what it leaves to the conversation."""
        return self._run(self._memory.standalone(conversation, question))

    def embed(self, conversation: str, *, progress: Progress | None = None) -> int:
        """Finish now the embedding that goes on in the background."""
        return self._run(self._memory.embed(conversation, progress=progress))

    # -- topics -------------------------------------------------------------------------------

    def topics(self, conversation: str) -> list[TopicStats]:
        """The conversation's topics in numbers, the active one first."""
        return self._run(self._memory.topics(conversation))

    def topic_stats(self, conversation: str, topic: int | None = None) -> TopicStats:
        """One topic in numbers: the active one unless given."""
        return self._run(self._memory.topic_stats(conversation, topic))

    def topic_context(self, conversation: str, budget: BudgetLike, *, fold: bool = True) -> Context:
        """The active topic: its summary as a system message, then its active messages."""
        return self._run(self._memory.topic_context(conversation, budget, fold=fold))

    def topic_history(self, conversation: str, topic: int | None = None) -> list[Entry]:
        """Every message of a topic, archived or not, in order."""
        return self._run(self._memory.topic_history(conversation, topic))

    def match_topic(self, conversation: str, text: str) -> Match | None:
        """The topic that a text is most like, with the raw cosine and the similarity."""
        return self._run(self._memory.match_topic(conversation, text))

    def merge_topics(self, conversation: str, into: int, topic: int) -> TopicStats:
        """Put the messages of `topic` into the topic `into`."""
        return self._run(self._memory.merge_topics(conversation, into, topic))

    def tag_topic(
        self, conversation: str, topic: int, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> TopicStats:
        """Add tags to a topic, and remove some."""
        return self._run(self._memory.tag_topic(conversation, topic, add=add, remove=remove))

    def feedback(self, conversation: str, seq: int, vote: Literal[1, -1]) -> TopicStats:
        """Say that an entry was of use (1) or not (-1)."""
        return self._run(self._memory.feedback(conversation, seq, vote))

    def tools(
        self, conversation: str, *, zone: str = "UTC", tokens_max: int = limits.RECALL_TOKENS
    ) -> Toolbox:
        """Tools by which a model can look into this conversation; plain functions by name."""
        tools = self._memory.tools(conversation, zone=zone, tokens_max=tokens_max)
        return tools.through(self._run)

    def stats(self, conversation: str, *, price: float = PRICE) -> Stats:
        """How large the conversation is, and what an answer costs."""
        return self._run(self._memory.stats(conversation, price=price))

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
        as_format: ExportFormat = "jsonl",
        progress: Progress | None = None,
    ) -> Manifest:
        """Write conversations to a JSON Lines file with a manifest, or for others to read."""
        return self._run(
            self._memory.export(
                path, conversations=conversations, as_format=as_format, progress=progress
            )
        )

    def import_(self, path: str | PathLike[str], *, progress: Progress | None = None) -> Manifest:
        """Read such a file; all of it is checked first."""
        return self._run(self._memory.import_(path, progress=progress))

    def import_file(
        self,
        path: str | PathLike[str],
        *,
        as_format: str | None = None,
        zone: str = "UTC",
        progress: Progress | None = None,
    ) -> Report:
        """Take conversations of other programs."""
        return self._run(
            self._memory.import_file(path, as_format=as_format, zone=zone, progress=progress)
        )

    def backup(self, path: str | PathLike[str], *, progress: Progress | None = None) -> None:
        """Write a consistent copy of the whole store to a new file."""
        self._run(self._memory.backup(path, progress=progress))
