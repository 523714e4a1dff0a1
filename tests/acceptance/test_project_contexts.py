"""Contexts of random projects: what is newest is shown in time order, always."""

import os
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from firnline import Budget, Memory, Message, count_tokens, strategies
from support.damage import damage_rows

THOROUGH = "FIRNLINE_TORTURE" in os.environ
MINUTE = timedelta(minutes=1)
START = datetime(2026, 5, 4, 8, tzinfo=UTC)
MODELS = (None, "gpt-4o", "gpt-4")
WORDS = ("alpha", "river", "stone", "lantern", "orchard", "pepper", "granite", "saddle", "violin")
EASY = 0.45
"""Of the room are for the newest entries at the least; the rest is for digests and quotes."""


class RandomProject:
    """Conversations of a project that grow in any order, and checks of their contexts."""

    def __init__(self, memory, random, threshold):
        self.memory, self.random, self.threshold = memory, random, threshold
        self.names = [f"c{n}" for n in range(random.randint(2, 6))]
        self.said = 0
        self.at = START
        self.before = {}

    async def say(self):
        random = self.random
        name = random.choice(self.names)
        make = random.choice((Message.user, Message.assistant))
        size = int(2 ** random.uniform(0, 9))
        self.at += timedelta(seconds=random.randint(1, 9_000))
        text = f"m{self.said} " + " ".join(random.choice(WORDS) for _ in range(size))
        await self.memory.append(name, make(text, created_at=self.at))
        if not self.said % 7:
            await self.memory.describe(name, project="P")
        self.said += 1
        self.before.clear()

    async def ask(self, name, budget, **options):
        """Build a context, and check all that it promises."""
        history = await self.memory.project_newest("P", limit=1_000)
        context = await self.memory.context(name, budget, **options)
        dumped = context.to_openai()
        assert context.tokens == count_tokens(dumped, budget.model or "gpt-4o") <= budget.limit
        shown = _numbers(context["recent"].messages)
        order = _numbers([each.entry.message for each in history])
        own = [each.entry.message for each in history if each.conversation == name]
        question = _numbers([m for m in own if m.role == "user"][-1:])
        if own and own[-1].role == "user":  # it is to be answered, so it comes last
            assert shown[-1:] == question
            shown.remove(question[0])
            order.remove(question[0])
        elif shown[:1] == question and shown != order[-len(shown) :]:
            shown = shown[1:]  # it is always there, however old it is
        assert shown == order[len(order) - len(shown) :], (question, own[-3:])
        self._check_sizes(context, budget, history, shows_all=shown == order)
        key = (name, budget, *map(str, options.items()))
        assert len(shown) >= self.before.get(key, 0), "a smaller budget hid something"
        self.before[key] = len(shown)
        return context

    def _check_sizes(self, context, budget, history, *, shows_all):
        most = min(self.threshold, budget.limit)
        given = context["system"].messages
        messages = [*given, *(e.entry.message for e in history)]
        whole = count_tokens([m.to_openai() for m in messages], budget.model or "gpt-4o")
        if whole <= most:
            assert shows_all
            assert not context["digests"].pieces
            assert not context["recalled"].pieces
        else:
            assert context.tokens <= most
            assert not shows_all
            assert context["digests"].pieces or context.left_out
        largest = max(e.entry.tokens for e in history)
        fixed = count_tokens([m.to_openai() for m in given], "gpt-4") + 200
        if not shows_all:
            assert context["recent"].tokens + largest > (most - fixed) * EASY


def _numbers(messages):
    texts = [message.text for message in messages]
    return [int(text.split()[0][1:]) for text in texts if text.startswith("m")]


@pytest.mark.requirement("B1")
@pytest.mark.parametrize("seed", range(40 if THOROUGH else 6))
async def test_a_context_shows_the_newest_of_the_project_whatever_was_asked_before(seed):
    random = Random(seed)
    threshold = random.choice((2_000, 4_000, 9_000))
    strategy = strategies.project(
        threshold_tokens=threshold,
        keep_tokens=int(threshold * random.uniform(0.5, 1)),
        summary_tokens=random.choice((150, 400)),
    )
    async with Memory.open("memory:", strategy=strategy, background=False) as memory:
        project = RandomProject(memory, random, threshold)
        for _ in range(12):
            for _ in range(random.randint(1, 30)):
                await project.say()
            for name in project.names:
                await memory.describe(name, project="P")
            name = random.choice(project.names)
            large = Budget(random.choice((3_000, 12_000, 128_000)), model=random.choice(MODELS))
            small = Budget(random.choice((1_500, 2_500)), model=random.choice(MODELS))
            options = random.choice(
                ({}, {"question": "river stone"}, {"system": "Be brief. " * 20}, {"fold": False})
            )
            for budget in (large, small, large):
                await project.ask(name, budget, **options)


@pytest.mark.requirement("B1")
async def test_the_first_message_shown_changes_only_when_the_room_is_full(tmp_path):
    """In each of several processes, so that a provider can cache the prompts."""
    url = f"sqlite:///{tmp_path}/store.db"
    strategy = strategies.project(threshold_tokens=4_000, summary_tokens=200)
    firsts = [[], []]
    async with (
        Memory.open(url, strategy=strategy, background=False) as one,
        Memory.open(url, strategy=strategy, background=False) as other,
    ):
        for number in range(150):
            name = f"c{number % 3}"
            text = f"m{number} " + "word " * 60
            await one.append(name, Message.user(text, created_at=START + number * MINUTE))
            await one.describe(name, project="P")
            context = await (one, other)[number % 2].context(name, Budget(128_000))
            firsts[number % 2].append(_numbers(context["recent"].messages)[0])
    for shown in firsts:
        assert shown == sorted(shown)
        changes = len(set(shown))
        assert 5 < changes < 150 * 66 / (4_000 * 0.08)


@pytest.mark.requirement("B1")
async def test_a_message_longer_than_the_room_is_shortened_not_what_comes_before_it():
    strategy = strategies.project(threshold_tokens=3_000, summary_tokens=200)
    async with Memory.open("memory:", strategy=strategy, background=False) as memory:
        for number in range(12):
            name = f"c{number % 3}"
            words = "word " * (9_000 if number == 9 else 100)
            make = Message.assistant if number == 9 else Message.user
            await memory.append(
                name, make(f"m{number} {words}", created_at=START + number * MINUTE)
            )
            await memory.describe(name, project="P")
        for name in ("c0", "c1", "c2"):  # m9 is of c0
            context = await memory.context(name, Budget(128_000))
            assert {8, 9, 10, 11} <= set(_numbers(context["recent"].messages))
            assert context.tokens <= 3_000
            assert "the middle of message 3" in context.left_out[0].what


@pytest.mark.requirement("B1")
@pytest.mark.requirement("A8")
async def test_a_damaged_digest_of_a_project_is_made_again(tmp_path):
    strategy = strategies.project(threshold_tokens=2_000, summary_tokens=200)
    url = f"sqlite:///{tmp_path}/store.db"
    async with Memory.open(url, strategy=strategy, background=False) as memory:
        for number in range(60):
            message = Message.user(f"m{number} {'word ' * 60}", created_at=START + number * MINUTE)
            await memory.append(f"c{number % 3}", message)
            await memory.describe(f"c{number % 3}", project="P")
        before = await memory.context("c0", Budget(128_000))
        broken = "UPDATE digest SET status = 'complated' WHERE status = 'completed'"
        damage_rows(tmp_path / "store.db", broken)
        after = await memory.context("c0", Budget(128_000))
        assert _numbers(after["recent"].messages) == _numbers(before["recent"].messages)
        assert len(after.degraded) == 3
        again = await memory.context("c0", Budget(128_000))
        assert not again.degraded
