"""The same names without await, for code that has no event loop.

`Memory` is a facade: every call runs `firnline.Memory` on one event loop in its own thread, so
there is no second implementation that could differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self, Unpack

from firnline import strategies
from firnline.context.budget import Budget, BudgetLike
from firnline.context.context import Context, Section
from firnline.context.plan import Strategy
from firnline.context.tools import Tool, Toolbox
from firnline.engine.loop_thread import SyncFacade, waits, walks
from firnline.engine.options import MemoryOptions
from firnline.engine.stats import Stats
from firnline.engine.turn import Turn
from firnline.errors import BudgetError, FirnlineError, ModelError
from firnline.log.chain import Verification
from firnline.log.entry import Appended, Digest, Entry, Erased, Head, Project
from firnline.log.hit import Hit, Hits
from firnline.log.message import Message, Part, ToolCall, utc_now
from firnline.log.tokens import TokenCount, count_tokens
from firnline.memory import Memory as _Memory
from firnline.models import open_model
from firnline.protocols import Clock, Store
from firnline.store import open_store
from firnline.store.cards import TenantCards

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
    "Hits",
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


class Memory(SyncFacade[_Memory]):
    """The conversations of one tenant; see `firnline.Memory` for what each method does.

    ``with Memory.open("sqlite:///notes.db") as memory:`` opens it and closes it again. May be used
    from any number of threads.
    """

    def __init__(
        self, store: Store, *, clock: Clock = utc_now, **options: Unpack[MemoryOptions]
    ) -> None:
        hint = "use `with Memory.open(...) as memory:`, or call start() first"
        super().__init__(_Memory(store, clock=clock, **options), "firnline-sync", hint)

    @classmethod
    def open(
        cls,
        url: str = "sqlite:///firnline.db",
        *,
        clock: Clock = utc_now,
        **options: Unpack[MemoryOptions],
    ) -> Self:
        """Create a memory at `url`; nothing is opened until ``with`` or `start`."""
        return cls(open_store(url, clock=clock), clock=clock, **options)

    def start(self) -> None:
        """Open the store; ``with`` does this."""
        super().start()
        try:
            self.run(self.behind.start())
        except BaseException:
            self._loop.stop()
            raise

    def close(self) -> None:
        """Close the store; ``with`` does this."""
        self._close_behind(self.behind.close)

    @property
    def tenant(self) -> str:
        """The tenant whose conversations these are."""
        return self.behind.tenant

    @property
    def clock(self) -> Clock:
        """Where the current time comes from."""
        return self.behind.clock

    @property
    def store(self) -> Store:
        """The store; its methods are asynchronous."""
        return self.behind.store

    @property
    def cards(self) -> TenantCards:
        """The tenant's cards; the methods are asynchronous."""
        return self.behind.cards

    @property
    def events(self) -> Mapping[str, int]:
        """How often each event occurred."""
        return self.behind.events

    def budget_of(self, model: str) -> Budget:
        """The window of `model`, or a budget for the whole conversation if it is unknown."""
        return self.behind.budget_of(model)

    def tell(self, name: str, conversation: str, values: Mapping[str, float | str]) -> None:
        """Count an event that happened elsewhere, and pass it to the observer."""
        self.behind.tell(name, conversation, values)

    # -- writing --
    append = waits(_Memory.append)
    describe = waits(_Memory.describe)
    branch = waits(_Memory.branch)
    save_project = waits(_Memory.save_project)
    pin = waits(_Memory.pin)
    unpin = waits(_Memory.unpin)
    pinned = waits(_Memory.pinned)

    # -- contexts --
    context = waits(_Memory.context)
    set_strategy = waits(_Memory.set_strategy)
    strategy = waits(_Memory.strategy)
    turn = waits(_Memory.turn)
    stream = walks(_Memory.stream)

    # -- digests --
    digest = waits(_Memory.digest)
    digests = waits(_Memory.digests)
    in_force = waits(_Memory.in_force)
    lineage = waits(_Memory.lineage)
    state = waits(_Memory.state)
    remember = waits(_Memory.remember)
    revert = waits(_Memory.revert)
    undo = waits(_Memory.undo)
    clear = waits(_Memory.clear)
    expand = waits(_Memory.expand)
    diff = waits(_Memory.diff)
    rebuild = waits(_Memory.rebuild)
    work = waits(_Memory.work)
    due = waits(_Memory.due)
    pending = waits(_Memory.pending)

    # -- reading --
    read = waits(_Memory.read)
    read_at = waits(_Memory.read_at)
    newest = waits(_Memory.newest)
    tokens_between = waits(_Memory.tokens_between)
    dated = waits(_Memory.dated)
    head = waits(_Memory.head)
    conversations = waits(_Memory.conversations)
    recent = waits(_Memory.recent)
    projects = waits(_Memory.projects)
    people = waits(_Memory.people)
    facts = waits(_Memory.facts)
    profile = waits(_Memory.profile)
    revert_fact = waits(_Memory.revert_fact)
    rebuild_facts = waits(_Memory.rebuild_facts)
    erase_person = waits(_Memory.erase_person)
    project_size = waits(_Memory.project_size)
    project_newest = waits(_Memory.project_newest)
    project_dated = waits(_Memory.project_dated)
    recall = waits(_Memory.recall)
    standalone = waits(_Memory.standalone)
    embed = waits(_Memory.embed)

    # -- topics --
    topics = waits(_Memory.topics)
    topic_stats = waits(_Memory.topic_stats)
    topic_context = waits(_Memory.topic_context)
    topic_history = waits(_Memory.topic_history)
    topic_seqs = waits(_Memory.topic_seqs)
    match_topic = waits(_Memory.match_topic)
    merge_topics = waits(_Memory.merge_topics)
    tag_topic = waits(_Memory.tag_topic)
    feedback = waits(_Memory.feedback)

    def tools(
        self,
        conversation: str,
        *,
        zone: str = "UTC",
        budget: BudgetLike | None = None,
        tokens_max: int | None = None,
    ) -> Toolbox:
        """The recall tools as plain functions; see `firnline.Memory.tools`."""
        return self.behind.tools(
            conversation, zone=zone, budget=budget, tokens_max=tokens_max
        ).through(self.run)

    stats = waits(_Memory.stats)

    # -- proving --
    verify = waits(_Memory.verify)
    checkpoint = waits(_Memory.checkpoint)
    prove = waits(_Memory.prove)
    prove_growth = waits(_Memory.prove_growth)
    check = waits(_Memory.check)
    repair = waits(_Memory.repair)
    rebuild_index = waits(_Memory.rebuild_index)

    # -- keeping and leaving --
    archive = waits(_Memory.archive)
    restore = waits(_Memory.restore)
    branches = waits(_Memory.branches)
    erase = waits(_Memory.erase)
    erase_messages = waits(_Memory.erase_messages)
    erase_before = waits(_Memory.erase_before)
    export = waits(_Memory.export)
    export_pieces = walks(_Memory.export_pieces)
    import_ = waits(_Memory.import_)
    import_file = waits(_Memory.import_file)
    backup = waits(_Memory.backup)
