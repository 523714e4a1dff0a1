"""With a model, more is found of what people state: the model proposes, code decides."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

from firnline import Memory, Message
from firnline.models import open_model
from firnline.testing import ModelServer
from firnline.testing.scripted_model import think

START = datetime(2026, 5, 4, tzinfo=UTC)
SAID = "Home for me is Lisbon, where the trams are. My trumpet is a Bach 37, and I adore it."
HOME = ("home city", "Lisbon", "Home for me is Lisbon, where the trams are.")
TRUMPET = ("trumpet", "Bach 37", "My trumpet is a Bach 37, and I adore it.")


class Clock:
    """A clock that is set."""

    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now


def fact(attribute, value, quote, seq=0, subject="user"):
    return {"seq": seq, "subject": subject, "attribute": attribute, "value": value, "quote": quote}


def proposing(*facts):
    """An answer of the server for requests for facts; others are answered by rule."""

    def answer(request):
        if "lasting facts" not in json.dumps(request["messages"][0]):
            return think(request)
        return json.dumps({"facts": list(facts)})

    return answer


async def work(memory, clock):
    clock.now += timedelta(minutes=1)
    await memory.work(once=True)


async def known(memory, person="ana"):
    return {(one.attribute, one.value, one.source) for one in await memory.facts(person=person)}


def opened(url, server, clock):
    return Memory.open(
        url, model=open_model("test", url=server.url), clock=clock, worker=False, embedder=None
    )


async def test_what_a_model_finds_is_a_fact_with_its_words(url):
    clock = Clock()
    with ModelServer() as server:
        server.answer = proposing(fact("city", *HOME[1:]), fact("my trumpet", *TRUMPET[1:]))
        async with opened(url, server, clock) as memory:
            await memory.append("a", Message.user(SAID), person="ana")
            assert await known(memory) == set(), "the rules find nothing, and nothing waits"
            await work(memory, clock)
            found = {("home city", "Lisbon", "model"), ("trumpet", "Bach 37", "model")}
            assert await known(memory) == found
            quotes = {one.evidence[0].quote for one in await memory.facts(person="ana")}
            assert quotes == {HOME[2], TRUMPET[2]}
            context = await memory.context("b", 4_000, "Hi", person="ana")
            assert "home city: Lisbon" in context["profile"].messages[0].text
            asked = len(server.requests)
            await work(memory, clock)
            server.answer = proposing()
            assert await memory.rebuild_facts("ana") == 2, "without asking again"
            assert await known(memory) == found
            assert len(server.requests) == asked
            await memory.append("a", Message.user("I moved to Porto."))
            assert ("home city", "Porto", "said") in await known(memory)
            assert ("home city", "Lisbon", "model") not in await known(memory)


LIES = [
    fact("home city", "Paris", HOME[2]),  # the value is not in the quote
    fact("home city", "Lisbon", "I live in Lisbon."),  # nobody said that
    fact("home city", "Lisbon", HOME[2], seq=7),  # there is no such message
    fact("home city", "Lisbon", HOME[2], seq=1),  # the assistant's message
    fact("home city", "Rome", "Rome suits me best.", seq=2),  # of another speaker
    fact("job", "pilot", "my boss said: I am a pilot", seq=3),  # a quotation
    fact("home city", "Oslo", "If I ever left for Oslo, I'd miss the sun", seq=3),
    fact("pet", "dog", "Should I get a dog?", seq=3),
    fact("password", "hunter2", "the wifi password is hunter2", seq=3),
    fact("spouse", "Kim", "Kim is not who I married", seq=3),
    fact("home city", "Lisbon", HOME[2], subject="sister"),  # of whom the quote says nothing
    fact("status", "shipped", "Order 7 has shipped", seq=3),
    fact("a" * 80, "Lisbon", HOME[2]),
    fact("home city", "", HOME[2]),
]


async def test_what_a_model_makes_up_is_no_fact():
    clock = Clock()
    with ModelServer() as server:
        server.answer = proposing(*LIES, fact("trumpet", *TRUMPET[1:]))
        async with opened("memory:", server, clock) as memory:
            said = [
                Message.user(SAID),
                Message.assistant(HOME[2]),
                Message.user("Rome suits me best.", name="Bob"),
                Message.user(
                    "my boss said: I am a pilot. If I ever left for Oslo, I'd miss the sun."
                    " Should I get a dog? the wifi password is hunter2. Kim is not who I married."
                    " Order 7 has shipped."
                ),
            ]
            await memory.append("a", said, person="ana")
            await work(memory, clock)
            found = {one for one in await known(memory) if one[2] == "model"}
            assert found == {("trumpet", "Bach 37", "model")}


async def test_an_answer_without_facts_is_not_asked_for_again():
    clock = Clock()
    with ModelServer() as server:
        server.answer = proposing({"seq": "0", "attribute": ["x"], "value": None}, 5, {})
        async with opened("memory:", server, clock) as memory:
            await memory.append("a", Message.user(SAID), person="ana")
            await work(memory, clock)
            asked = len(server.requests)
            await memory.append("b", Message.user("hi"))
            await work(memory, clock)
            assert (await known(memory), len(server.requests)) == (set(), asked)


async def test_a_failing_model_is_asked_again_and_the_rules_still_read():
    clock = Clock()
    with ModelServer() as server:
        server.answer = proposing(fact("city", *HOME[1:]))
        server.fail("500", "500", "500", "500")
        async with opened("memory:", server, clock) as memory:
            await memory.append("a", Message.user(f"I'm vegan. {SAID}"), person="ana")
            await work(memory, clock)
            assert await known(memory) == {("diet", "vegan", "said")}
            clock.now += timedelta(hours=2)
            await work(memory, clock)
            assert ("home city", "Lisbon", "model") in await known(memory)


async def test_what_was_proposed_goes_with_its_message(url):
    clock = Clock()
    with ModelServer() as server:
        server.answer = proposing(fact("trumpet", *TRUMPET[1:]), fact("city", *HOME[1:], seq=1))
        async with opened(url, server, clock) as memory:
            trumpet, home = Message.user(TRUMPET[2]), Message.user(HOME[2])
            await memory.append("a", [trumpet, home], person="ana")
            await work(memory, clock)
            assert len(await known(memory)) == 2
            await memory.erase_messages("a", 0, 0)
            await memory.rebuild_facts("ana")
            assert not {one for one in await known(memory) if one[1] == "Bach 37"}
            await work(memory, clock)
            assert await known(memory) == {("home city", "Lisbon", "model")}, "it is asked again"
            cards = [
                one
                for kind in ("fact", "fact-proposals")
                for one in await memory.store.cards(kind, tenant="default", limit=100)
            ]
            assert cards
            assert not [one for one in cards if b"Bach" in one.body]
            await memory.describe("a", person="ben")
            assert await known(memory) == set()


async def test_two_memories_that_ask_at_once_know_the_same_facts_once(tmp_path):
    """Their models answer differently: what is recorded first counts."""
    clock = Clock()
    url = f"sqlite:///{tmp_path}/shared.db"
    with ModelServer() as one, ModelServer() as two:
        one.answer = proposing(fact("city", *HOME[1:]))
        two.answer = proposing(fact("trumpet", *TRUMPET[1:]))
        async with opened(url, one, clock) as first, opened(url, two, clock) as second:
            await first.append("a", Message.user(SAID), person="ana")
            await asyncio.gather(work(first, clock), work(second, clock))
            assert len(await known(first)) == 1
            assert await known(first) == await known(second)
            assert len((await first.facts(person="ana"))[0].evidence) == 1
