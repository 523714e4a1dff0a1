"""A model that fails in every way: the chat continues, nothing is lost, digests catch up.

Time is virtual, and all chance comes from the seed. What a slow model costs is a few milliseconds.
"""

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from torture_kit import TORTURE

from firnline import Memory, Message
from firnline.context.plan import Strategy
from firnline.errors import ModelError
from firnline.log.entry import Key
from firnline.models import Allowance, Breaker, Spend, Timeouts
from firnline.models.http import HttpModel
from firnline.protocols import Written
from firnline.strategies import layered, progressive, project, rolling, window
from firnline.testing.model_server import FAULTS, ModelServer

ROUNDS = 40 if TORTURE else 14
RETRIES = 1
RUNGS = 3  # an extraction asks in up to three ways
GUARD = Allowance(calls=12, tokens=1_000_000)
WINDOW = 600.0
BUDGET = 900
APOLOGY = "I cannot answer right now; your message is kept."
HASTY = Timeouts(connect=5.0, first_byte=0.04, between=0.04, total=5.0)
PATIENT = Timeouts(connect=5.0, first_byte=30.0, between=30.0, total=30.0)

STRATEGIES = {
    "layered": layered(),
    "progressive": progressive(threshold_tokens=800, keep_tokens=300, data_tokens=100),
    "project": project(threshold_tokens=700, keep_tokens=400, summary_tokens=150),
    "window": window(trigger=0.7, summary_tokens=150),
    "rolling": rolling(window=6, after_seq=3, words=60),
}
BAD_ANSWERS = {"invalid_json", "overlong", "refusal"}
"""The answer is text, but not a summary: digests are created offline, and no call waits."""
HARMLESS = {"length"}
"""The answer lacks its end; what there is of it is checked like any other."""
DEAD = sorted(set(FAULTS) - BAD_ANSWERS - HARMLESS)
BACKENDS = ("sqlite", "memory")
EVERYWHERE = (*BACKENDS, "postgres", "mongo")


def cases(faults):
    """Every fault with every strategy; on each backend, or in the short run on one in turn."""
    every = [(fault, strategy) for fault in faults for strategy in STRATEGIES]
    return [
        pytest.param(url, fault, strategy, id=f"{fault}-{strategy}-{url}")
        for number, (fault, strategy) in enumerate(every)
        for url in (BACKENDS if TORTURE else BACKENDS[number % 2 :][:1])
    ]


def strategies_everywhere():
    """Every strategy on every backend, or in the short run on one in turn."""
    return [
        (url, strategy)
        for number, strategy in enumerate(STRATEGIES)
        for url in (EVERYWHERE if TORTURE else EVERYWHERE[number % len(EVERYWHERE) :][:1])
    ]


class World:
    """A memory whose model is a server with faults, and a clock that only the test moves."""

    def __init__(self, memory, server, digester, chatter, rng):
        self.memory, self.server, self.rng = memory, server, rng
        self.digester, self.chatter = digester, chatter
        self.said = []

    @property
    def models(self):
        return self.digester, self.chatter

    def fail(self, fault):
        self.server.fail(fault, repeat=True)
        self._timeouts(HASTY if fault in ("slow", "trickle") else PATIENT)

    def heal(self):
        self.server.heal()
        self._timeouts(PATIENT)

    def _timeouts(self, timeouts):
        for model in self.models:
            model._timeouts = timeouts

    def pass_time(self, seconds):
        self.digester.now += timedelta(seconds=seconds)

    async def owed(self):
        return await self.memory.store.due(self.digester.now + timedelta(days=365))

    async def say(self, *messages):
        await self.memory.append("chat", list(messages))
        self.said += [message.text for message in messages]

    async def round(self, number, *, turns):
        """One round of the chat, with or without the model; returns the turn, if it was one."""
        question = asked(number)
        if not turns or self.rng.random() < 0.5:
            await self.say(Message.user(question), Message.assistant(told(number)))
            return None
        turn = await self.memory.turn(
            "chat", question, self.chatter, budget=BUDGET, apology=APOLOGY, recall=False
        )
        self.said += [question, turn.text]
        return turn

    async def context(self):
        context = await self.memory.context("chat", BUDGET)
        assert context.tokens <= BUDGET
        return context

    async def completed(self):
        return [d for d in await self.memory.digests("chat") if d.status == "completed"]

    async def check_whole(self):
        """Every entry is there, word for word, and provably so."""
        assert [entry.message.text for entry in await self.memory.read("chat")] == self.said
        verification = await self.memory.verify("chat")
        assert verification.ok, str(verification)
        assert verification.entries == len(self.said)

    def check_spending(self):
        """In no window of time were more calls made than the guard allows."""
        calls = self.digester.calls
        for start in calls:
            inside = [at for at in calls if start <= at < start + WINDOW]
            assert len(inside) <= GUARD.calls, "more calls than the guard allows"
        most = (len(calls) + len(self.chatter.calls)) * (1 + RETRIES) * RUNGS
        assert len(self.server.requests) <= most


class CountedModel(HttpModel):
    """A model that notes when it is called, in virtual time, and never sleeps."""

    def __init__(self, url):
        self.now = datetime(2026, 3, 1, 9, tzinfo=UTC)
        self.calls = []
        super().__init__(
            "test", url=url, retries=RETRIES, sleep=_no_sleep, clock=self.clock, timeouts=PATIENT
        )

    def clock(self):
        return self.now

    def tick(self):
        return self.now.timestamp()

    async def complete(self, *arguments, **options):
        self.calls.append(self.tick())
        return await super().complete(*arguments, **options)


async def _no_sleep(_):
    await asyncio.sleep(0)


def asked(number):
    return (
        f"Question {number}: when will order {4000 + number} for Ana in Hamburg be shipped? "
        f"It costs {number + 30} euros, and the invoice is due in March. Please do not be late."
    )


def told(number):
    return (
        f"Order {4000 + number} leaves the warehouse in Bremen on day {number + 1}. "
        "It was packed with care, and the carrier has been told to ring the bell twice."
    )


@asynccontextmanager
async def a_world(url, strategy, rng):
    async with ModelServer(pause=30.0, seed=rng.randrange(2**32)) as server:
        digester, chatter = CountedModel(server.url), CountedModel(server.url)
        chatter._connected = digester._connected  # creating a client takes longer than a chat here
        memory = Memory.open(
            url,
            clock=digester.clock,
            model=digester,
            strategy=strategy,
            worker=False,
            background=False,
            spend=Spend(conversation=GUARD, seconds=WINDOW, clock=digester.tick),
            breaker=Breaker(clock=digester.tick, chance=rng.random),
        )
        async with memory:
            yield World(memory, server, digester, chatter, rng)


async def chat(world, numbers, check, *, turns=True):
    """Rounds of chat; after each, `check` gets the turn, if any, a context and the pending work."""
    for number in numbers:
        turn = await world.round(number, turns=turns)
        if world.rng.random() < 0.5:
            await world.memory.work(once=True)
        check(turn, await world.context(), await world.owed())
        world.pass_time(world.rng.uniform(1, 30))


async def pay(world):
    """Let pending digests be created, by a worker or by the next contexts, at random."""
    by_worker = world.rng.random() < 0.5
    for _ in range(30):
        world.pass_time(1_000)
        if not by_worker:
            await world.context()
        await world.memory.work(once=True)
        if not await world.owed():
            return
    pytest.fail("the debt was not paid")


async def go_on(world):
    """Say enough for new digests to be wanted."""
    for number in range(100, 112):
        await world.say(Message.user(asked(number)), Message.assistant(told(number)))
    await world.context()


async def check_recovered(world, failed_until):
    """The model makes digests again, contexts are complete, nothing is pending."""
    await pay(world)
    new = [d for d in await world.completed() if d.version > failed_until]
    assert new, "no digest was made after the fault"
    assert "test" in {digest.made_by for digest in new}
    context = await world.context()
    assert not context.degraded
    await world.check_whole()
    world.check_spending()


@pytest.mark.promise("dead-model")
@pytest.mark.requirement("A8")
@pytest.mark.parametrize(("url", "fault", "strategy"), cases(DEAD), indirect=["url"])
async def test_a_dead_model_stops_no_chat_and_pending_digests_are_created(
    url, strategy, fault, rng, caplog
):
    async with a_world(url, STRATEGIES[strategy], rng) as world:

        def check(turn, context, owed):
            if turn is not None:
                assert turn.degraded
                assert turn.text == APOLOGY
            # Background digests are pending after every round; no call waits for them.
            assert bool(context.degraded) == bool(owed) or strategy == "rolling"

        world.fail(fault)
        await chat(world, range(ROUNDS), check)
        assert not await world.completed()
        assert await world.owed() == [Key("default", "chat")]
        assert "the model failed" in caplog.text
        await world.check_whole()
        world.check_spending()

        versions = [digest.version for digest in await world.memory.digests("chat")]
        world.heal()
        await world.say(Message.user(asked(ROUNDS)), Message.assistant(told(ROUNDS)))
        await check_recovered(world, max(versions, default=0))


@pytest.mark.requirement("A8")
@pytest.mark.parametrize(
    ("url", "fault", "strategy"), cases(sorted(BAD_ANSWERS | HARMLESS)), indirect=["url"]
)
async def test_a_bad_answer_is_never_a_digest_and_no_call_waits(url, strategy, fault, rng):
    async with a_world(url, STRATEGIES[strategy], rng) as world:

        def check(turn, *_):
            assert turn is None or not turn.degraded

        world.fail(fault)
        # Broken JSON as an answer would be in the log, and then it may be in a summary, too.
        await chat(world, range(ROUNDS), check, turns=fault != "invalid_json")
        await pay(world)
        made = await world.completed()
        assert made
        if fault in BAD_ANSWERS:
            assert {digest.made_by for digest in made} == {"offline"}
        await world.check_whole()
        world.check_spending()

        world.heal()
        await go_on(world)
        await check_recovered(world, made[-1].version)


@pytest.mark.requirement("A8")
@pytest.mark.parametrize(("url", "strategy"), strategies_everywhere(), indirect=["url"])
async def test_faults_by_chance_lose_nothing(url, strategy, rng):
    async with a_world(url, STRATEGIES[strategy], rng) as world:
        # Those that take real time are left to the tests above.
        world.server.shake(0.6, sorted(set(FAULTS) - {"slow", "trickle", "refused"}))
        await chat(world, range(2 * ROUNDS), lambda *_: None)
        await world.check_whole()
        world.check_spending()
        versions = [digest.version for digest in await world.memory.digests("chat")]
        world.heal()
        await go_on(world)
        await check_recovered(world, max(versions, default=0))


@pytest.mark.requirement("A8")
async def test_without_an_apology_the_error_is_raised_and_the_question_is_kept(url, rng):
    async with a_world(url, layered(), rng) as world:
        world.fail("500")
        with pytest.raises(ModelError):
            await world.memory.turn("chat", "Are you there?", budget=BUDGET)
        world.said.append("Are you there?")
        await world.check_whole()


@pytest.mark.requirement("A8")
async def test_a_long_backlog_is_digested_in_pieces_within_the_guard(url):
    """A span that costs more calls than are allowed at once makes progress, and comes to an end."""
    clock, calls = CountedModel("http://127.0.0.1:9"), []

    async def summarizer(_):
        calls.append(clock.tick())
        return Written(text="Ana asks when her orders will be shipped.", made_by="test", calls=1)

    memory = Memory.open(
        url,
        clock=clock.clock,
        summarizer=summarizer,
        strategy=STRATEGIES["project"],
        worker=False,
        background=False,
        spend=Spend(conversation=Allowance(3, 10**9), seconds=WINDOW, clock=clock.tick),
    )
    async with memory:
        long = "and then the parcel went on to the next town on its way " * 100
        messages = [Message.user(f"{asked(number)} {long}") for number in range(40)]
        await memory.append("chat", messages)
        for _ in range(20):
            await memory.context("chat", 4_000)
            clock.now += timedelta(seconds=WINDOW + 1)
        made = [digest for digest in await memory.digests("chat") if digest.status == "completed"]
        assert len(made) > 1
        assert made[-1].last_seq >= 35
        assert not (await memory.context("chat", 4_000)).degraded
        assert all(calls.count(at) <= 3 for at in calls)


@pytest.mark.requirement("A8")
async def test_a_custom_default_strategy_is_used_for_pending_digests(url, rng):
    """Pending work is stored with its strategy, which must be found again by that name."""
    own = Strategy("own", STRATEGIES["window"].plan)
    async with a_world(url, own, rng) as world:
        world.fail("500")
        await go_on(world)
        assert await world.owed()
        world.heal()
        await check_recovered(world, 0)
