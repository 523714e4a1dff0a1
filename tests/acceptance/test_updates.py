"""A newer fact wins over the one it replaces: in recall, in important data and in contexts."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from firnline import Memory, Message, strategies

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
    UpdateCase("I work at Siemens as an engineer.", "I started a new job at Bosch last Monday.", "Siemens", "Bosch", *WORK),
    UpdateCase("I work for Siemens in Munich.", "I quit Siemens and joined Bosch.", "Siemens", "Bosch", *WORK),
    UpdateCase("I'm vegetarian, so please no meat.", "I've started eating meat again.", "vegetarian", "eating meat", *FOOD),
    UpdateCase("I'm a vegetarian.", "Since January I'm vegan.", "a vegetarian", "vegan", *FOOD),
    UpdateCase("Our project is called Falcon.", "We renamed the project to Condor.", "Falcon", "Condor", *TITLE),
    UpdateCase("The project is called Falcon.", "Falcon is now called Condor.", "Falcon", "Condor", *TITLE),
    UpdateCase("Order 1138 is pending.", "Order 1138 has shipped.", "pending", "shipped", *ORDER),
    UpdateCase("My order #1138 is still being processed.", "Update: order 1138 was delivered.", "processed", "delivered", *ORDER),
    UpdateCase("My birthday is March 3.", "Sorry, my birthday is actually March 13.", "March 3.", "March 13", *BORN),
    UpdateCase("My birthday is on the 3rd of May.", "Correction: it's May 14, not May 3.", "3rd of May", "May 14", *BORN),
]  # fmt: skip
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


def chat(case, distance):
    """The old fact, then chatter, then the new one, then some more chatter."""
    texts = [CHATTER[n % len(CHATTER)] for n in range(2 * distance + 8)]
    users = ["Hello there.", case.old, *texts[:distance], case.new, *texts[distance : distance + 4]]
    messages = []
    for n, text in enumerate(users):
        at = NOW - timedelta(hours=len(users) - n)
        messages.append(Message.user(text, created_at=at))
        messages.append(Message.assistant("Thank you, noted.", created_at=at))
    return messages


def place(hits, text):
    return next(at for at, hit in enumerate(hits) if hit.message.text == text)


@pytest.mark.parametrize("embedder", [None, "minilm"])
@pytest.mark.parametrize("distance", [1, 30])
@pytest.mark.promise("current-facts-win")
async def test_the_current_fact_comes_first(url, distance, embedder):
    wrong = []
    async with Memory.open(url, clock=lambda: NOW, embedder=embedder, worker=False) as memory:
        for number, case in enumerate(CASES):
            name = f"c{number}"
            await memory.append(name, chat(case, distance))
            hits = await memory.recall(name, case.question, limit=10)
            texts = [hit.message.text for hit in hits]
            if case.new not in texts or case.old not in texts:
                wrong.append((case.question, "missing", texts))
                continue
            old, new = place(hits, case.old), place(hits, case.new)
            if old < new:
                wrong.append((case.question, old, new, texts))
            if hits[old].superseded_by != hits[new].seq or hits[new].superseded_by is not None:
                wrong.append((case.question, "mark", hits[old].superseded_by))
    assert wrong == []
