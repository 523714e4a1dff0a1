"""Recall stops where relevance stops: the chance of a hit, and how many earn their place."""

from statistics import mean

import pytest

from firnline import Memory, Message
from firnline.embedding.minilm import MiniLM
from support.evidence_chats import evidence_chats

CHATS = list(evidence_chats())


async def _asked(embedder, chats):
    """Every question of the chats: what was found for it, and its evidence."""
    found = []
    async with Memory.open("memory:", embedder=embedder) as memory:
        for chat in chats:
            await memory.append(chat.name, chat.messages)
            await memory.embed(chat.name)
            for question, evidence in chat.questions:
                found.append((await memory.recall(chat.name, question, tokens=2_000), evidence))
    return found


@pytest.mark.parametrize(
    ("embedder", "chats"), [(None, CHATS), (MiniLM(), CHATS[:3])], ids=["words", "minilm"]
)
async def test_what_earns_its_place_is_the_answer_and_little_else(embedder, chats):
    found = await _asked(embedder, chats)
    one = [(hits, evidence) for hits, evidence in found if len(evidence) == 1]
    kept = [evidence <= {hit.seq for hit in hits[: hits.earned]} for hits, evidence in one]
    others = [hits.earned - there for (hits, _), there in zip(one, kept, strict=True)]
    assert mean(kept) >= 0.93
    assert mean(others) <= 3
    assert mean(hits.earned for hits, evidence in found if not evidence) <= 2
    everything = [evidence <= {hit.seq for hit in hits} for hits, evidence in one]
    assert mean(everything) >= 0.98, "recall with tokens still returns all that fits"


async def test_a_chance_is_how_often_a_hit_is_evidence():
    found = await _asked(None, CHATS)
    hits = [(hit.chance, hit.seq in evidence) for all_, evidence in found for hit in all_]
    whole = sum(there for _, there in hits)
    assert sum(chance for chance, _ in hits) == pytest.approx(whole, rel=0.2)
    for low, high in ((0.0, 0.06), (0.06, 0.3), (0.3, 1.0)):
        inside = [pair for pair in hits if low <= pair[0] < high]
        chance, share = (mean(column) for column in zip(*inside, strict=True))
        assert chance == pytest.approx(share, abs=0.1)


async def test_hits_have_chances_in_their_order_whatever_is_asked_for():
    chat = CHATS[0]
    async with Memory.open("memory:", embedder=None) as memory:
        await memory.append("c", chat.messages)
        question = "How often should the coffee machine be descaled?"
        several = await memory.recall("c", question, limit=5)
        wide = await memory.recall(None, question, tokens=500)
        for hits in (several, wide):
            chances = [hit.chance for hit in hits]
            assert chances == sorted(chances, reverse=True)
            assert 0 < hits.earned <= 4
            assert hits[0].chance > 0.5
            assert hits[0].message.text.startswith("It does, but descale it")
        assert (await memory.recall("c", "zebra", limit=5)).earned == 0
        assert len(wide) > wide.earned, "the caller gets what was asked for"


async def test_a_context_does_not_recall_the_same_statement_twice():
    fact = "My favorite restaurant is the Blue Lotus on Main Street."
    again = f"As I said, {fact[0].lower()}{fact[1:]}"
    async with Memory.open("memory:", embedder=None) as memory:
        for number in range(40):
            text = {3: fact, 9: again, 15: fact, 20: fact.replace("Main", "High")}.get(number)
            filler = f"Let us talk about subject {number} for a while, with many words about it."
            await memory.append("c", Message.user(text or filler))
            await memory.append("c", Message.assistant(f"All right, number {number} it is."))
        question = "What is my favorite restaurant?"
        context = await memory.context("c", 600, question)
        told = [hit.message.text for hit in context.hits]
        assert sum("Main Street" in text for text in told) == 1
        assert sum("High Street" in text for text in told) == 1
        recalled = await memory.recall("c", question, limit=10)
        assert sum("Main Street" in hit.message.text for hit in recalled) == 3
