"""The same client without await: every verb runs on one event loop in a thread of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from firnline.client import verbs
from firnline.engine.loop_thread import LoopThread

P = ParamSpec("P")
T = TypeVar("T")


def _waits(
    verb: Callable[Concatenate[verbs.Client, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Client, P], T]:
    """The verb, waited for."""

    @wraps(verb)
    def waited(client: Client, /, *given: P.args, **named: P.kwargs) -> T:
        return client.run(verb(client.behind, *given, **named))

    return waited


def _walks(
    verb: Callable[Concatenate[verbs.Client, P], AsyncIterator[T]],
) -> Callable[Concatenate[Client, P], Iterator[T]]:
    """The verb, whose items are waited for one by one."""

    @wraps(verb)
    def walked(client: Client, /, *given: P.args, **named: P.kwargs) -> Iterator[T]:
        return client.walk(verb(client.behind, *given, **named))

    return walked


class Client:
    """A tenant's conversations on a Firnline server; see `firnline.client.Client` for each verb.

    ``with Client("http://localhost:8080", key="fl_...") as client:`` starts it and ends it. May be
    used from any number of threads. What is a list of any length there is an iterator here.
    """

    def __init__(
        self, url: str, *, key: str | None = None, timeout: float = 600.0, retries: int = 3
    ) -> None:
        self.behind = verbs.Client(url, key=key, timeout=timeout, retries=retries)
        self._loop = LoopThread(
            "firnline-client", "use `with Client(...) as client:`, or call start() first"
        )

    def __repr__(self) -> str:
        return repr(self.behind)

    def start(self) -> None:
        """Begin; ``with`` does this."""
        self._loop.start()

    def close(self) -> None:
        """Let go of connections; ``with`` does this."""
        if self._loop.started:
            try:
                self.run(self.behind.close())
            finally:
                self._loop.stop()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What the coroutine returns, run where the client runs."""
        return self._loop.run(coroutine)

    def walk(self, items: AsyncIterator[T]) -> Iterator[T]:
        """The items as they come."""
        return self._loop.walk(items)

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

    append = _waits(verbs.Client.append)
    describe = _waits(verbs.Client.describe)
    set_strategy = _waits(verbs.Client.set_strategy)
    branch = _waits(verbs.Client.branch)
    pin = _waits(verbs.Client.pin)
    unpin = _waits(verbs.Client.unpin)
    pinned = _waits(verbs.Client.pinned)
    context = _waits(verbs.Client.context)
    turn = _waits(verbs.Client.turn)
    stream = _walks(verbs.Client.stream)
    stop = _waits(verbs.Client.stop)
    turns = _walks(verbs.Client.turns)
    prompt = _waits(verbs.Client.prompt)
    digest = _waits(verbs.Client.digest)
    digests = _walks(verbs.Client.digests)
    in_force = _waits(verbs.Client.in_force)
    version = _waits(verbs.Client.version)
    expand = _walks(verbs.Client.expand)
    diff = _waits(verbs.Client.diff)
    lineage = _waits(verbs.Client.lineage)
    state = _waits(verbs.Client.state)
    important = _waits(verbs.Client.important)
    remember = _waits(verbs.Client.remember)
    revert = _waits(verbs.Client.revert)
    undo = _waits(verbs.Client.undo)
    clear = _waits(verbs.Client.clear)
    rebuild = _waits(verbs.Client.rebuild)
    read = _walks(verbs.Client.read)
    entry = _waits(verbs.Client.entry)
    interval = _waits(verbs.Client.interval)
    dated = _walks(verbs.Client.dated)
    head = _waits(verbs.Client.head)
    conversation = _waits(verbs.Client.conversation)
    conversations = _walks(verbs.Client.conversations)
    projects = _walks(verbs.Client.projects)
    project = _waits(verbs.Client.project)
    save_project = _waits(verbs.Client.save_project)
    recall = _waits(verbs.Client.recall)
    topics = _waits(verbs.Client.topics)
    topic_stats = _waits(verbs.Client.topic_stats)
    topic_history = _walks(verbs.Client.topic_history)
    topic_context = _waits(verbs.Client.topic_context)
    match_topic = _waits(verbs.Client.match_topic)
    merge_topics = _waits(verbs.Client.merge_topics)
    tag_topic = _waits(verbs.Client.tag_topic)
    feedback = _waits(verbs.Client.feedback)
    verify = _waits(verbs.Client.verify)
    archive = _waits(verbs.Client.archive)
    restore = _waits(verbs.Client.restore)
    erase = _waits(verbs.Client.erase)
    me = _waits(verbs.Client.me)
    stats = _waits(verbs.Client.stats)
    tenant_stats = _waits(verbs.Client.tenant_stats)
    costs = _waits(verbs.Client.costs)
    work = _waits(verbs.Client.work)
    export = _waits(verbs.Client.export)
    import_ = _waits(verbs.Client.import_)
    import_file = _waits(verbs.Client.import_file)
    begin_import = _waits(verbs.Client.begin_import)
    begin_export = _waits(verbs.Client.begin_export)
    fetch = _waits(verbs.Client.fetch)
    jobs = _waits(verbs.Client.jobs)
    job = _waits(verbs.Client.job)
    watch = _walks(verbs.Client.watch)
