"""A short answer that is recalled comes with its question, and a context keeps to its budget."""

import pytest

from firnline import Memory, Message

SAID = [
    ("Which port does the broker use?", "5672, and 15672 for the console."),
    ("Who else needs access to the broker?", "Marek and the on-call group."),
    ("What is the code of the blue locker?", "It is 7731."),
]
FILLER = "Chapter {} of the harbor report: cranes, quays and tides, written down at length. "


async def _talk(memory: Memory) -> None:
    for question, answer in SAID:
        await memory.append("c", [Message.user(question), Message.assistant(answer)])
    for number in range(60):
        text = FILLER.format(number) * 4
        await memory.append("c", [Message.user(text), Message.assistant(f"Read: {text}")])


@pytest.mark.requirement("E5")
@pytest.mark.parametrize("strategy", ["rolling", "progressive", "layered"])
@pytest.mark.parametrize("tokens", [900, 2_000, 6_000])
async def test_a_recalled_answer_comes_with_its_question(strategy, tokens):
    async with Memory.open("memory:", embedder=None, background=False) as memory:
        await memory.set_strategy("c", strategy)
        await _talk(memory)
        await memory.digest("c")
        for words in ("15672", "on-call group", "7731"):
            context = await memory.context("c", tokens, f"Please explain the {words} once more.")
            assert context.tokens <= tokens
            quoted = "\n".join(message.text for message in context["recalled"].messages)
            shown = [(question, answer) for question, answer in SAID if answer in quoted]
            text = "\n".join(message.text for message in context.messages)
            assert words in text
            assert all(question in text for question, _ in shown)
