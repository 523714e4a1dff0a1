"""The laws of every prompt, over random logs, budgets and strategies, and switches between them."""

import asyncio
import os
import random
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline import Budget, Memory, Message, ToolCall, strategies
from firnline.context.plan import ends_round, is_of_tool, is_question, units
from firnline.context.render import GAP_NOTE, NOTES, Sizes
from firnline.errors import BudgetError
from firnline.log.entry import live
from firnline.log.message import Part
from firnline.log.tokens import counter
from firnline.testing.strategy_conformance import prove_context
from support.evidence_chats import evidence_chats
from support.media import data_url, png

quiet = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize="FIRNLINE_TORTURE" not in os.environ,  # `make torture` looks for new ones
)
WORDS = [f"{a}{b}" for a in ("lo", "ri", "ma", "ten", "sol") for b in ("bar", "ka", "vin", "del")]
CHOICES = {
    "layered": strategies.layered(),
    "progressive": strategies.progressive(),
    "project": strategies.project(threshold_tokens=3_000, keep_tokens=2_400),
    "lean": strategies.project(lean=True, last=5),
    "topics": strategies.topics(),
    "window": strategies.window(),
    "rolling": strategies.rolling(),
}
OWN_LIMIT = {
    "layered": lambda window: window,
    "progressive": lambda _: 3_000,
    "project": lambda _: 3_000,
    "window": lambda window: int(window * CHOICES["window"].parameters["trigger"]),
}
"""What a strategy shows of a log at most, for those that show a log up to that as it is."""
PARTS = {
    **dict.fromkeys(("important", "digests"), "summaries"),
    **dict.fromkeys(("opened", "recalled"), "quotes"),
}
"""What is in a section, if it is not messages; summaries name none."""


# -- random logs ----------------------------------------------------------------------------------


class Log:
    """Messages of which each has a text that no other one has."""

    def __init__(self, seed, words):
        self.pick, self.words, self.messages = random.Random(seed), words, []

    def text(self, times=1):
        count = self.pick.randint(*self.words) * times
        return f"Note {len(self.messages)}: {' '.join(self.pick.choices(WORDS, k=count))}."

    def say(self, role, content=None, **about):
        self.messages.append(Message(role, self.text() if content is None else content, **about))

    def turn(self):
        self.say("user")
        self.say("assistant")

    def tools(self, *, answered=True):
        self.say("user")
        ids = [f"call-{len(self.messages)}-{n}" for n in range(self.pick.randint(1, 3))]
        calls = [ToolCall.of(id_, "look_up", {"what": self.pick.choice(WORDS)}) for id_ in ids]
        self.say("assistant", tool_calls=tuple(calls))
        self.pick.shuffle(ids)
        for id_ in ids:
            self.say("tool", tool_call_id=id_)
        if answered:
            self.say("assistant")

    def image(self):
        size = self.pick.choice(((64, 64), (512, 512), (1_024, 768)))
        picture = Part.image(data_url("image/png", png(*size)))
        self.say("user", (Part.of_text(self.text()), picture))
        self.say("assistant")

    def system(self):
        self.say("system")

    def long(self):
        self.say("assistant", self.text(12))

    def pinned(self):
        self.say("user", metadata={"pinned": True})

    def question(self):
        self.say("user")

    def waiting(self):
        self.tools(answered=False)


KINDS = ("turn", "turn", "turn", "tools", "tools", "image", "system", "long")


class Step(NamedTuple):
    """A context after some more messages."""

    more: tuple[str, ...]
    strategy: str
    window: int
    model: str | None
    question: str | None


def steps(kinds=KINDS, last=("turn", "question", "waiting", "pinned")):
    more = st.builds(
        lambda found, times, end: (*(found * times), end),
        st.lists(st.sampled_from(kinds), min_size=1, max_size=8),
        st.integers(1, 6),
        st.sampled_from(last),
    )
    step = st.builds(
        Step,
        more,
        st.sampled_from(tuple(CHOICES)),
        st.sampled_from((150, 400, 800, 1_500, 2_500, 3_500, 6_000, 20_000)),
        st.sampled_from((None, None, "claude-opus-4-5", "gpt-4")),
        st.sampled_from((None, "Which vinka did Note 3 name?", "What did soldel say of Note 7?")),
    )
    return st.lists(step, min_size=1, max_size=4)


async def contexts(memory, log, step_list):
    """A context after each step, and the entries by then."""
    for step in step_list:
        before = len(log.messages)
        for kind in step.more:
            getattr(log, kind)()
        await memory.append("c", log.messages[before:])
        await memory.set_strategy("c", CHOICES[step.strategy])
        budget = Budget(step.window, model=step.model)
        try:
            context = await memory.context("c", budget, step.question)
        except BudgetError:
            continue
        yield step, context, await memory.read("c")


# -- what is in a context -------------------------------------------------------------------------


def strings(value):
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for name, item in value.items() if name != "url" for text in strings(item)]
    return [text for item in value for text in strings(item)] if isinstance(value, list) else []


def sendable(entries):
    return [unit for unit in units(live(entries)) if not unit.problem]


def required(context, entries, sizes):
    """The tokens of what comes before everything else, and the units after the newest question."""
    asked = [entry.seq for entry in entries if is_question(entry.message)]
    later = [unit for unit in sendable(entries) if asked and unit.first_seq > asked[-1]]
    if any(ends_round(entry.message) for unit in later for entry in unit.entries):
        later = []
    must = [e for e in entries if e.message.metadata.get("pinned") or e.seq in asked[-1:]]
    for entry in entries:
        if entry.message.role != "system":
            break
        must.append(entry)
    last = len(entries)
    note = sizes.of(Message.user(GAP_NOTE.format(last, last)))
    used = sum(map(sizes.entry, must)) + NOTES * note + context.framing_tokens
    return used, later


def prove_laws(step, context, entries, sizes):
    """What holds for every context."""
    prove_context(context, entries)
    limit, whole = context.budget.limit, context.whole_tokens
    assert context.tokens <= min(limit, whole)
    found = sendable(entries)
    shown = set(context.seqs)
    own = min(OWN_LIMIT.get(step.strategy, lambda _: limit)(step.window), limit)
    if step.strategy in OWN_LIMIT and whole <= own:
        seqs = sorted(entry.seq for unit in found for entry in unit.entries)
        assert list(context.seqs) == seqs, "the whole history fits"
    prove_named_once(context, entries)
    for unit in found:
        tools = {entry.seq for entry in unit.entries if is_of_tool(entry.message)}
        there = {p.entry.seq for p in context.pieces if p.entry} | shown
        assert not tools & there or tools <= there, "a call is parted from its results"
    order = [entry.seq for unit in found for entry in unit.entries]
    recent = [p.entry.seq for p in context["recent"].pieces if p.entry]
    assert recent == sorted(recent, key=order.index), "the order is another one"
    used, later = required(context, entries, sizes)
    needed = used + sum(sizes.entry(entry) for unit in later for entry in unit.entries)
    if needed <= own:
        assert {e.seq for unit in later for e in unit.entries} <= shown, "the round is cut"


def prove_named_once(context, entries):
    """Each text is there at most once, and named if it is there word for word.

    What is quoted for a question may be in a digest, too: the start of the prompt stays as it is.
    """
    parts = {"summaries": [], "quotes": [], "messages": []}
    for section in context.sections:
        sent = [message.to_openai() for message in section.messages]
        parts[PARTS.get(section.name, "messages")] += strings(sent)
    summed, quoted, messages = ("\n".join(found) for found in parts.values())
    for entry in entries:
        text = entry.message.text
        times = messages.count(text) + quoted.count(text)
        assert times <= 1, f"message {entry.seq} is there twice"
        assert text not in messages or text not in summed, f"message {entry.seq} is there twice"
        if entry.seq in context.seqs:
            assert times == 1, f"message {entry.seq} is named and not there"
        elif isinstance(entry.message.content, str):
            assert times == 0, f"message {entry.seq} is there and not named"


# -- the laws -------------------------------------------------------------------------------------


@pytest.mark.promise("seqs-exact")
@pytest.mark.promise("split-by-need")
@pytest.mark.promise("verbatim-first")
def test_every_context_keeps_the_laws_whatever_was_before_it():
    @quiet
    @given(st.integers(0, 10_000), st.sampled_from(((3, 7), (6, 30))), steps())
    def prove(seed, words, step_list):
        async def run():
            async with Memory.open("memory:", background=False, embedder=None) as memory:
                async for step, context, entries in contexts(memory, Log(seed, words), step_list):
                    prove_laws(step, context, entries, Sizes(counter(step.model or "")))

        asyncio.run(run())

    prove()


def prove_full(step, context, entries, sizes):
    """Little is free while there is anything left to show."""
    limit = context.budget.limit
    found = sendable(entries)
    largest = max((sum(map(sizes.entry, unit.entries)) for unit in found), default=0)
    left = {entry.seq for unit in found for entry in unit.entries} - set(context.seqs)
    if step.strategy == "layered" and left and largest < limit / 10:
        assert context.tokens >= limit * 0.9, context.explain()


@pytest.mark.promise("verbatim-first")
def test_layered_leaves_little_free_whatever_was_before():
    plain = ("turn", "turn", "tools", "system", "image")

    @quiet
    @given(st.integers(0, 10_000), st.sampled_from(((3, 7), (6, 30))), steps(plain))
    def prove(seed, words, step_list):
        async def run():
            async with Memory.open("memory:", background=False, embedder=None) as memory:
                async for step, context, entries in contexts(memory, Log(seed, words), step_list):
                    prove_full(step, context, entries, Sizes(counter(step.model or "")))

        asyncio.run(run())

    prove()


@pytest.mark.promise("split-by-need")
@pytest.mark.parametrize("window", [1_000, 2_500])
async def test_a_context_finds_what_recall_finds_with_most_of_its_tokens(window):
    chats = list(evidence_chats())
    told = recalled = first = 0
    async with Memory.open("memory:", background=False, embedder=None) as memory:
        for chat in chats:
            await memory.append("c", chat.messages)
        for chat in chats:
            for question, evidence in chat.questions[::2]:
                wanted = {first + seq for seq in evidence}
                hits = await memory.recall("c", question, tokens=window * 85 // 100)
                recalled += wanted <= {hit.seq for hit in hits}
                told += wanted <= set((await memory.context("c", window, question)).seqs)
            first += len(chat.messages)
    assert told >= recalled
