"""The window of a model in the library: known by name, given, or unknown."""

import subprocess
import sys

import pytest

from firnline import Budget, Memory, Message, open_model
from firnline.engine import engine
from firnline.errors import InputError
from firnline.log.tokens import count_tokens
from firnline.testing import ModelServer


@pytest.fixture(autouse=True)
def _not_warned():
    engine._warn_unknown.cache_clear()


async def talk(memory, count=150):
    said = [Message.user(f"Message {n}: " + f"word{n} " * 20) for n in range(count)]
    await memory.append("c", said)
    return [message.text for message in said]


@pytest.mark.promise("whole-if-unknown")
async def test_a_turn_of_an_unknown_model_gets_the_whole_conversation(caplog):
    async with ModelServer(model="prod") as server:
        model = open_model("openai/prod", url=server.url, api_key="sk-mine")
        async with Memory.open("memory:", model=model, embedder=None) as memory:
            said = await talk(memory)
            turn = await memory.turn("c", "And now?")
            await memory.turn("c", "And then?")
            (sent,) = server.requests[0]["messages"]  # neighbors of one role are joined
            assert sent["content"] == "\n\n".join([*said, "And now?"])
            assert "of a window that is unknown" in turn.context.explain()
            assert not await memory.digests("c")
    warned = [r.getMessage() for r in caplog.records if "is unknown" in r.getMessage()]
    assert len(warned) == 1
    assert "Memory.open(..., windows={'prod': TOKENS})" in warned[0]


async def test_a_given_window_is_used_by_turns_contexts_and_budgets(caplog):
    async with ModelServer(model="prod") as server:
        model = open_model("openai/prod", url=server.url, api_key="sk-mine")
        options = {"model": model, "embedder": None, "windows": {"prod": 4_000, "gpt-4": 6_000}}
        async with Memory.open("memory:", **options) as memory:
            said = await talk(memory)
            turn = await memory.turn("c", "And now?")
            assert turn.context.budget.window_tokens == 4_000
            assert turn.context.tokens <= 3_500
            assert len(turn.context.seqs) < len(said)
            assert (await memory.context("c", "prod")).budget.window_tokens == 4_000
            assert (await memory.context("c", "gpt-4")).budget.window_tokens == 6_000
            assert memory.budget_of("prod") == Budget(4_000, 500, model="prod")
            with pytest.raises(InputError, match=r"unknown model 'staging'.*windows="):
                await memory.context("c", "staging")
    assert "is unknown" not in caplog.text


async def test_wrong_windows_fail_at_once():
    with pytest.raises(InputError, match="windows: 'prod'"):
        Memory.open("memory:", windows={"prod": "4000"})


@pytest.mark.parametrize(
    ("model", "estimate"),
    [("gpt-4o", ""), ("claude-opus-5", "o200k_base x 1.35"), ("prod", "o200k_base x 1.25")],
)
async def test_a_context_says_that_its_tokens_are_estimates(model, estimate):
    async with Memory.open("memory:", embedder=None) as memory:
        await memory.append("c", Message.user("Hello."))
        for fold in (True, False):
            context = await memory.context("c", Budget(9_000, model=model), fold=fold)
            assert context.estimate == estimate
            explained = context.explain()
            assert (f"tokens are estimates: {estimate}" in explained) is bool(estimate)
            assert ("estimates" in explained) is bool(estimate)
        assert context.tokens >= count_tokens([Message.user("Hello.")])


def test_the_table_is_not_read_by_an_import():
    code = (
        "import firnline; from firnline.log import model_table;"
        "assert model_table._table.cache_info().currsize == 0"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
