"""A newer fact wins over the one it replaces: in recall, in important data and in contexts."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from firnline import Memory, Message, strategies
from firnline.context.render import render_recalled
from firnline.context.view import drop_echo
from firnline.log.entry import Key

NOW = datetime(2026, 3, 11, 12, tzinfo=UTC)


class UpdateCase(NamedTuple):
    """A fact, its update, the values, the question, and the question about the past."""

    old: str
    new: str
    before: str
    now: str
    question: str
    past: str


HOME = ("Where do I live?", "Where did I live before?")
WORK = ("Where do I work?", "Which company did I work for previously?")
FOOD = ("What is my diet?", "What was my diet before?")
TITLE = ("What is our project called?", "What was the old name of our project?")
ORDER = ("What is the status of order 1138?", "What was the status of order 1138 before?")
BORN = ("When is my birthday?", "Which birthday did I originally say?")
CASES = [
    UpdateCase("I live in Berlin.", "I moved to Lisbon last week.", "Berlin", "Lisbon", *HOME),
    UpdateCase(
        "Hi! I live in Berlin with my two cats.",
        "By the way, we relocated from Berlin to Porto, so no more Berlin deliveries.",
        "Berlin",
        "Porto",
        *HOME,
    ),
    UpdateCase(
        "I work at Siemens as an engineer.",
        "I started a new job at Bosch last Monday.",
        "Siemens",
        "Bosch",
        *WORK,
    ),
    UpdateCase(
        "I work for Siemens in Munich.",
        "I quit Siemens and joined Bosch.",
        "Siemens",
        "Bosch",
        *WORK,
    ),
    UpdateCase(
        "I'm vegetarian, so please no meat.",
        "I've started eating meat again.",
        "vegetarian",
        "eating meat",
        *FOOD,
    ),
    UpdateCase("I'm a vegetarian.", "Since January I'm vegan.", "a vegetarian", "vegan", *FOOD),
    UpdateCase(
        "Our project is called Falcon.",
        "We renamed the project to Condor.",
        "Falcon",
        "Condor",
        *TITLE,
    ),
    UpdateCase(
        "The project is called Falcon.", "Falcon is now called Condor.", "Falcon", "Condor", *TITLE
    ),
    UpdateCase("Order 1138 is pending.", "Order 1138 has shipped.", "pending", "shipped", *ORDER),
    UpdateCase(
        "My order #1138 is still being processed.",
        "Update: order 1138 was delivered.",
        "processed",
        "delivered",
        *ORDER,
    ),
    UpdateCase(
        "My birthday is March 3.",
        "Sorry, my birthday is actually March 13.",
        "March 3.",
        "March 13",
        *BORN,
    ),
    UpdateCase(
        "My birthday is on the 3rd of May.",
        "Correction: it's May 14, not May 3.",
        "3rd of May",
        "May 14",
        *BORN,
    ),
]
CHATTER = [
    "My sister lives in Madrid and works at Renault.",
    "Ana moved to Oslo, her birthday is May 5.",
    "Order 2200 was cancelled, what a pity.",
    "Could you check the weather for the weekend?",
    "My brother is vegan, his project is called Eagle.",
    "If I moved to Rome, would the deliveries be cheaper?",
    'He said "I live in Paris and work at Google".',
    "The garden needs water, and the fence some paint.",
]


def chat(case, distance, after=4):
    """The old fact, then chatter, then the new one, then some more chatter."""
    texts = [CHATTER[n % len(CHATTER)] for n in range(2 * distance + 2 * after)]
    users = [
        "Hello there.",
        case.old,
        *texts[:distance],
        case.new,
        *texts[distance : distance + after],
    ]
    messages = []
    for n, text in enumerate(users):
        at = NOW - timedelta(hours=len(users) - n)
        messages.append(Message.user(text, created_at=at))
        messages.append(Message.assistant("Thank you, noted.", created_at=at))
    return messages


def texts(hits):
    return [hit.message.text for hit in hits]


FAR = pytest.param(60, "minilm", marks=pytest.mark.thorough)


@pytest.mark.parametrize(("distance", "embedder"), [(3, None), (30, None), (3, "minilm"), FAR])
@pytest.mark.promise("current-facts-win")
async def test_recall_finds_the_current_fact_first_and_marks_the_outdated_one(
    url, distance, embedder
):
    wrong = []
    async with Memory.open(url, clock=lambda: NOW, embedder=embedder, worker=False) as memory:
        for number, case in enumerate(CASES):
            name = f"c{number}"
            await memory.append(name, chat(case, distance))
            await memory.embed(name)
            hits = await memory.recall(name, case.question, limit=10)
            found = texts(hits)
            current = found.index(case.new) if case.new in found else len(found)
            old = found.index(case.old) if case.old in found else len(found)
            marked = old == len(found) or hits[old].superseded_by == 2 * (distance + 2)
            if current > 2 or current > old or not marked:
                wrong.append((case.question, found))
            # Asked for the past, the outdated fact is not behind where it would have been.
            past = await memory.recall(name, case.past, limit=10)
            if any("current" in hit.parts for hit in past if hit.message.text == case.new):
                wrong.append((case.past, texts(past)))
    assert wrong == []


@pytest.mark.promise("current-facts-win")
async def test_state_and_contexts_say_what_holds_now(url):
    strategy = strategies.layered(tail=0.1, keep=0.1, digest_tokens=200)
    options = {"clock": lambda: NOW, "strategy": strategy, "embedder": None, "background": False}
    async with Memory.open(url, **options) as memory:
        for number, case in enumerate(CASES):
            name = f"c{number}"
            await memory.append(name, chat(case, 12, after=16))
            await memory.context(name, 300)
            data = (await memory.state(name)).important_data
            facts = [*data["important_facts"], *data["key_decisions"]]
            values = [*facts, *map(str, data["user_preferences"].values())]
            assert any(case.now in value or value == "eats meat" for value in values), values
            assert all("outdated by" in value for value in values if value.startswith(case.old))
            for budget in (600, 1_500):
                context = await memory.context(name, budget, question=case.question)
                lines = "\n".join(message.text for message in context.messages).splitlines()
                quoted = [line for line in lines if line.startswith("(") and case.old in line]
                assert all("[outdated: see message 28]" in line for line in quoted), quoted
                assert any(case.new in line for line in lines)


async def test_a_changed_fact_is_noted_and_can_be_reverted(url):
    strategy = strategies.layered(tail=0.1, keep=0.1, digest_tokens=200)
    case = CASES[0]
    async with Memory.open(url, strategy=strategy, embedder=None, background=False) as memory:
        first, *others = chat(case, 12, after=16)
        await memory.append("c", [first, *others])
        await memory.append("d", first)
        for name in ("c", "d"):
            await memory.remember(name, {"important_facts": ["I live in Berlin."]})
        await memory.append("d", others)
        for name in ("c", "d"):
            await memory.context(name, 300)
            facts = (await memory.state(name)).important_data["important_facts"]
            assert "I live in Berlin." in facts  # the application said so
        await memory.append("e", chat(case, 12, after=16))
        await memory.context("e", 300)
        facts = (await memory.state("e")).important_data["important_facts"]
        assert (
            "I moved to Lisbon last week. (home city: Lisbon, since message 28; before: Berlin)"
            in facts
        )
        assert "I live in Berlin." not in facts
        await memory.revert("e", 28)
        facts = (await memory.state("e")).important_data["important_facts"]
        assert "I live in Berlin." in facts
        assert not any("Lisbon" in fact for fact in facts)


async def test_speakers_and_conversations_do_not_outdate_each_other(url):
    async with Memory.open(url, embedder=None) as memory:
        await memory.append("c", [Message.user("I live in Berlin.", name="Ana")])
        await memory.append("c", [Message.user("I moved to Lisbon.", name="Bob")])
        await memory.append("d", [Message.user("I live in Berlin.")])
        await memory.append("e", [Message.user("I moved to Lisbon.")])
        for name in ("c", None):
            hits = await memory.recall(name, "Where do I live?")
            assert [hit.superseded_by for hit in hits] == [None] * len(hits)
        await memory.append("c", [Message.user("I moved to Porto.", name="Ana")])
        hits = await memory.recall("c", "Where does Ana live?")
        assert {hit.seq: hit.superseded_by for hit in hits}[0] == 2


async def test_what_held_at_a_time_is_not_outdated_then(url):
    async with Memory.open(url, clock=lambda: NOW, embedder=None) as memory:
        march, april = (datetime(2025, month, 2, tzinfo=UTC) for month in (3, 4))
        await memory.append("c", [Message.user("I live in Berlin.", created_at=march)])
        await memory.append("c", [Message.user("I moved to Lisbon.", created_at=april)])
        now = await memory.recall("c", "Where do I live now?")
        then = await memory.recall("c", "Where did I live in March 2025?")
        known = await memory.recall("c", "Where do I live?", until=april)
        assert (texts(now)[0], texts(then)[0]) == ("I moved to Lisbon.", "I live in Berlin.")
        assert [hit.superseded_by for hit in known] == [None]


async def test_recalled_lines_with_marks_are_not_new_facts():
    async with Memory.open("memory:", embedder=None) as memory:
        await memory.append(
            "c", [Message.user("I live in Berlin."), Message.user("I moved to Lisbon.")]
        )
        entries = await memory.read("c")
        section = render_recalled(entries, {0: 1}).text
        assert section.index("Lisbon") < section.index("(0) [outdated: see message 1] user: I live")
        await memory.append("c", Message.user(f"{section}\n\nThank you."))
        *_, entry = await memory.read("c")
        kept, skipped = await drop_echo(memory.store, Key("default", "c"), entry)
        assert "Berlin" not in kept.message.text
        assert len(skipped) == 1
