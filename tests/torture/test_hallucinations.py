"""False names and numbers in a summary never get into a digest; honest summaries do."""

import re

import pytest
from torture_kit import TORTURE

from firnline import Memory, Message
from firnline.protocols import Written
from firnline.strategies import rolling
from support.chats import FALSE_NAMES, FREE

TIMES = 20 if TORTURE else 1
STRATEGY = rolling(window=100, after_seq=1, words=120)
NUMBER = re.compile(r"(?<![\w/:.,-])\d[\d,.]*\d(?![\w:/-])")
GERMAN = re.compile(r"\b(?:und|oder)\b")
"""Where every noun has a capital letter, a name looks like any noun."""
CASES = [(turns, retelling) for turns, retellings in FREE for retelling in retellings]


class Writer:
    """Returns the scripted answers one by one, and then repeats the last one."""

    def __init__(self):
        self.answers, self.asked = [], []

    async def __call__(self, brief):
        text = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append(brief.complaint)
        return Written(text=text, made_by="writer", calls=1)


@pytest.fixture
def writer():
    return Writer()


@pytest.fixture
async def memory(url, writer):
    async with Memory.open(url, summarizer=writer, strategy=STRATEGY, worker=False) as memory:
        yield memory


async def digested(memory, writer, name, turns, answers):
    """The digest of a chat whose summaries are these answers, in this order."""
    speakers = (Message.user, Message.assistant)
    messages = [speakers[i % 2](turn) for i, turn in enumerate(turns)]
    if len(messages) % 2:
        messages.append(Message.assistant("All right."))
    writer.answers, writer.asked = answers, []
    await memory.append(name, messages)
    assert await memory.digest(name) == 1
    return (await memory.digests(name))[-1]


def lies(rng, honest):
    """The summary with a false name and with a false number, and what is false in them."""
    name, number = rng.choice(FALSE_NAMES), str(rng.randint(31_000, 99_000))
    more = rng.choice(["It was approved by {}.", "Later they asked {} too.", "All moved to {}."])
    if not GERMAN.search(honest):
        yield name, f"{honest} {more.format(name)}"
    places = list(NUMBER.finditer(honest))
    if places and rng.random() < 0.7:
        place = rng.choice(places)
        yield number, honest[: place.start()] + number + honest[place.end() :]
    else:
        yield number, f"{honest} The total is {number}."


@pytest.mark.requirement("A8")
async def test_a_planted_lie_is_asked_about_once_and_never_stored(memory, writer, rng):
    caught = tries = 0
    for number, (turns, honest) in enumerate(CASES * TIMES):
        for false, lie in lies(rng, honest):
            name = f"{number}-{false}"
            digest = await digested(memory, writer, name, turns, [lie])
            tries += 1
            if false not in digest.text:
                caught += 1
                assert digest.made_by == "offline"
                assert digest.calls == 2
                assert false in writer.asked[1]
    assert tries >= 40 * TIMES
    assert caught >= 0.95 * tries, f"{caught} of {tries}"


@pytest.mark.requirement("A8")
async def test_an_honest_second_answer_is_accepted(memory, writer, rng):
    taken = tries = 0
    for number, (turns, honest) in enumerate(CASES):
        for false, lie in lies(rng, honest):
            digest = await digested(memory, writer, f"{number}-{false}", turns, [lie, honest])
            tries += 1
            taken += digest.made_by == "writer" and digest.text == honest
    assert taken >= 0.95 * tries, f"{taken} of {tries}"


@pytest.mark.requirement("A8")
async def test_an_honest_summary_is_stored_as_it_is(memory, writer):
    taken = 0
    for number, (turns, honest) in enumerate(CASES):
        digest = await digested(memory, writer, str(number), turns, [honest])
        taken += digest.made_by == "writer" and digest.text == honest
    assert taken >= 0.95 * len(CASES), f"{taken} of {len(CASES)}"
