"""Long messages are found, packed and shown by passage; the whole message is one call away."""

import json

import pytest

from firnline import Memory, Message
from firnline.log import limits
from firnline.log.hit import CUT
from firnline.log.tokens import counter
from firnline.recall.limits import PASSAGE_TOKENS
from support.long_texts import essay

KEY = "The spare key of the boathouse is kept under the third flowerpot, next to the blue door."
LOCKER = "My locker at the gym has the combination 38-12-7."
LONG = essay(60, {31: KEY})


def _log():
    messages = [Message.user(f"Short remark number {n} about the weather.") for n in range(60)]
    messages.insert(20, Message.assistant(LONG))
    messages.insert(40, Message.user(essay(60, {7: LOCKER})))
    return messages


@pytest.fixture(params=[None, "minilm"], ids=["words", "minilm"])
async def long_log(request):
    async with Memory.open("memory:", embedder=request.param, worker=False) as memory:
        await memory.append("c", _log())
        await memory.embed("c")
        yield memory


@pytest.mark.parametrize("tokens", [300, 500, 1_000, 2_000])
async def test_the_sentence_that_answers_is_there_within_few_tokens(long_log, tokens):
    for question, answer in (
        ("Where is the spare key of the boathouse?", KEY),
        ("What is the combination of my gym locker?", LOCKER),
    ):
        hits = await long_log.recall("c", question, tokens=tokens)
        assert answer in hits[0].text
        assert CUT in hits[0].text
        assert answer in hits[0].message.text, "the message is whole"
        assert len(hits[0].text) < len(hits[0].message.text) / 2
        used = sum(counter().text(f"{hit.message.role}: {hit.text}") for hit in hits)
        assert used <= tokens


async def test_with_a_limit_messages_are_whole_and_say_where_the_answer_is(long_log):
    hits = await long_log.recall("c", "Where is the spare key of the boathouse?", limit=3)
    assert hits[0].message.text == LONG
    (span,) = hits[0].passage
    assert KEY in LONG[span.start : span.end]
    assert all(not hit.passage for hit in hits if hit.entry.tokens <= PASSAGE_TOKENS)


async def test_the_sentence_is_found_by_its_meaning_where_no_word_is_the_same():
    async with Memory.open("memory:", embedder="minilm", worker=False) as memory:
        await memory.append("c", _log())
        await memory.embed("c")
        hits = await memory.recall("c", "How do I get into the shed at the lake?", tokens=2_000)
        assert KEY in next(hit.text for hit in hits if hit.seq == 20)


async def test_an_embedder_without_token_vectors_shows_the_part_that_is_near():
    class Topics:
        """Knows two subjects."""

        name = "topics-1"

        async def embed(self, texts):
            return [[1.0, float("flowerpot" in t or "lake" in t) * 4] for t in texts]

        async def close(self):
            pass

    async with Memory.open("memory:", embedder=Topics(), worker=False) as memory:
        await memory.append("c", _log())
        await memory.embed("c")
        hits = await memory.recall("c", "How do I get into the shed at the lake?", limit=40)
        passage = next(hit.passage for hit in hits if hit.seq == 20)
        middle = LONG.index(KEY)
        assert any(abs(start - middle) < limits.PASSAGE_CHARS for start, _ in passage)


async def test_tools_show_the_passage_where_a_message_takes_more_than_its_share(long_log):
    question = "Where is the spare key of the boathouse?"
    for tokens, cut in ((400, True), (8_000, False)):
        tools = long_log.tools("c", tokens_max=tokens)
        found = json.loads(await tools["search_history"](query=question, limit=3))
        row = next(row for row in found["messages"] if row["id"] == 20)
        assert KEY in row["text"]
        assert row.get("shortened", False) is cut
    whole = json.loads(await long_log.tools("c")["get_message_by_id"](id=20))
    assert whole["messages"][0]["text"] == LONG


async def test_a_context_quotes_whole_messages_or_none_and_keeps_to_its_budget(long_log):
    question = "Where is the spare key of the boathouse?"
    for limit in (1_000, 4_000):
        context = await long_log.context("c", limit, question)
        assert context.tokens <= limit
        text = "\n".join(message.text for message in context.messages)
        assert (KEY in text) == (LONG in text)
        assert not any(hit.passage for hit in context.hits)


async def test_of_a_person_a_context_quotes_passages_of_other_conversations():
    async with Memory.open("memory:", embedder=None, worker=False) as memory:
        await memory.append("old", _log(), person="ana")
        context = await memory.context(
            "new", 4_000, "Where is the spare key of the boathouse?", person="ana"
        )
        quoted = context["elsewhere"].messages[0].text
        assert KEY in quoted
        assert f"{CUT}\n" in quoted
        assert LONG not in quoted
        assert context.tokens <= 4_000
