"""The same client without await: every call runs on one event loop in its own thread."""

from __future__ import annotations

from firnline.client import verbs
from firnline.engine.loop_thread import SyncFacade, waits, walks


class Client(SyncFacade[verbs.Client]):
    """A tenant's conversations on a Firnline server; see `firnline.client.Client` for each method.

    ``with Client("http://localhost:8080", key="fl_...") as client:`` starts it and ends it. May be
    used from any number of threads. What is a list of any length there is an iterator here.
    """

    def __init__(
        self, url: str, *, key: str | None = None, timeout: float = 600.0, retries: int = 3
    ) -> None:
        behind = verbs.Client(url, key=key, timeout=timeout, retries=retries)
        hint = "use `with Client(...) as client:`, or call start() first"
        super().__init__(behind, "firnline-client", hint)

    def __repr__(self) -> str:
        return repr(self.behind)

    def close(self) -> None:
        """Close the connections; ``with`` does this."""
        self._close_behind(self.behind.close)

    append = waits(verbs.Client.append)
    describe = waits(verbs.Client.describe)
    set_strategy = waits(verbs.Client.set_strategy)
    branch = waits(verbs.Client.branch)
    pin = waits(verbs.Client.pin)
    unpin = waits(verbs.Client.unpin)
    pinned = waits(verbs.Client.pinned)
    context = waits(verbs.Client.context)
    turn = waits(verbs.Client.turn)
    stream = walks(verbs.Client.stream)
    stop = waits(verbs.Client.stop)
    turns = walks(verbs.Client.turns)
    prompt = waits(verbs.Client.prompt)
    digest = waits(verbs.Client.digest)
    digests = walks(verbs.Client.digests)
    in_force = waits(verbs.Client.in_force)
    version = waits(verbs.Client.version)
    expand = walks(verbs.Client.expand)
    diff = waits(verbs.Client.diff)
    lineage = waits(verbs.Client.lineage)
    state = waits(verbs.Client.state)
    important = waits(verbs.Client.important)
    remember = waits(verbs.Client.remember)
    revert = waits(verbs.Client.revert)
    undo = waits(verbs.Client.undo)
    clear = waits(verbs.Client.clear)
    rebuild = waits(verbs.Client.rebuild)
    read = walks(verbs.Client.read)
    entry = waits(verbs.Client.entry)
    interval = waits(verbs.Client.interval)
    dated = walks(verbs.Client.dated)
    head = waits(verbs.Client.head)
    conversation = waits(verbs.Client.conversation)
    conversations = walks(verbs.Client.conversations)
    people = walks(verbs.Client.people)
    facts = waits(verbs.Client.facts)
    profile = waits(verbs.Client.profile)
    revert_fact = waits(verbs.Client.revert_fact)
    erase_person = waits(verbs.Client.erase_person)
    projects = walks(verbs.Client.projects)
    project = waits(verbs.Client.project)
    save_project = waits(verbs.Client.save_project)
    recall = waits(verbs.Client.recall)
    topics = waits(verbs.Client.topics)
    topic_stats = waits(verbs.Client.topic_stats)
    topic_history = walks(verbs.Client.topic_history)
    topic_context = waits(verbs.Client.topic_context)
    match_topic = waits(verbs.Client.match_topic)
    merge_topics = waits(verbs.Client.merge_topics)
    tag_topic = waits(verbs.Client.tag_topic)
    feedback = waits(verbs.Client.feedback)
    verify = waits(verbs.Client.verify)
    checkpoint = waits(verbs.Client.checkpoint)
    prove = waits(verbs.Client.prove)
    prove_growth = waits(verbs.Client.prove_growth)
    archive = waits(verbs.Client.archive)
    restore = waits(verbs.Client.restore)
    branches = waits(verbs.Client.branches)
    erase = waits(verbs.Client.erase)
    erase_messages = waits(verbs.Client.erase_messages)
    erase_before = waits(verbs.Client.erase_before)
    me = waits(verbs.Client.me)
    stats = waits(verbs.Client.stats)
    tenant_stats = waits(verbs.Client.tenant_stats)
    costs = waits(verbs.Client.costs)
    work = waits(verbs.Client.work)
    export = waits(verbs.Client.export)
    import_ = waits(verbs.Client.import_)
    import_file = waits(verbs.Client.import_file)
    begin_import = waits(verbs.Client.begin_import)
    begin_export = waits(verbs.Client.begin_export)
    fetch = waits(verbs.Client.fetch)
    jobs = waits(verbs.Client.jobs)
    job = waits(verbs.Client.job)
    watch = walks(verbs.Client.watch)
