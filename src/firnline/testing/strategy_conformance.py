"""The suite that every strategy must pass, built-in or custom.

In a test module::

    from firnline.testing import StrategyConformance

    class TestMine(StrategyConformance):
        def make_strategy(self):
            return my_strategy(keep=7)
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import tiktoken
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline.context.budget import Budget
from firnline.context.context import Context
from firnline.context.plan import Fold, Strategy, View, check, covering, is_question, units
from firnline.context.render import recalled_line
from firnline.errors import BudgetError
from firnline.log.entry import Digest, Entry
from firnline.log.message import Message
from firnline.log.tokens import counter, reference_encoder
from firnline.memory import Memory
from firnline.testing.conversations import conversations
from firnline.testing.provider_rules import anthropic_problems, openai_problems

ROUNDS_MAX = 200
"""The number of digests after which planning is considered endless."""

SYSTEM = "Answer in one sentence."
TOOL = {"type": "function", "function": {"name": "look_up", "description": "Find an order."}}

_quiet = settings(deadline=None, suppress_health_check=list(HealthCheck))


class StrategyConformance:
    """Random conversations and budgets; inherit and define `make_strategy`."""

    examples = 100

    def make_strategy(self) -> Strategy:
        """Create the strategy to test."""
        raise NotImplementedError

    def test_plans_are_lawful_and_repeatable_and_folding_ends(self) -> None:
        """Digests are ordered, disjoint and end between units; the same view gives the same plan.

        Each digest covers new entries or merges digests, and planning ends after finitely many.
        """
        strategy = self.make_strategy()

        @settings(_quiet, max_examples=self.examples)
        @given(conversations(steps_max=60), st.integers(100, 6_000), st.integers(1, 400))
        def prove(messages: list[Message], window: int, digest_tokens: int) -> None:
            view, budget = _view(messages), Budget(window)
            for _ in range(ROUNDS_MAX):
                plan = strategy(view, budget)
                check(view, plan)
                assert strategy(view, budget) == plan, "the same view has different plans"
                if not plan.folds:
                    return
                folded = _folded(view, plan.folds[0], digest_tokens, slides=strategy.slides)
                fewer = len(folded.digests) < len(view.digests)
                assert folded.first_open > view.first_open or fewer, "a digest without progress"
                view = folded
            raise AssertionError(f"{strategy.name} still digests after {ROUNDS_MAX} rounds")

        prove()

    def test_contexts_keep_every_rule(self) -> None:
        """Within the budget, pairs complete, pins and newest question present, order valid.

        With `past`, the newest question alone never causes a `BudgetError`.
        """
        strategy = self.make_strategy()

        @settings(_quiet, max_examples=self.examples)
        @given(conversations(), st.integers(60, 5_000), st.integers(0, 400), st.booleans())
        def prove(messages: list[Message], window: int, reserve: int, more: bool) -> None:
            budget = Budget(window, min(reserve, window - 1))
            asyncio.run(_prove_contexts(strategy, messages, budget, more=more))

        prove()


# -- pure: a view without a store -----------------------------------------------------------------


def _view(messages: Sequence[Message]) -> View:
    count, total, entries = counter(), 0, []
    for seq, message in enumerate(messages):
        tokens = int(count.message(message))
        total += tokens
        entries.append(Entry(seq, message, tokens, total, str(seq), count.encoding))
    return View(next_seq=len(entries), entries=tuple(entries), open_tokens=total)


def _folded(view: View, fold: Fold, tokens: int, *, slides: bool) -> View:
    """The view after the fold, with a digest of `tokens` tokens."""
    version = max((digest.version for digest in view.digests), default=0) + 1
    taken = [digest for digest in view.digests if digest.version in fold.takes]
    made = Digest(
        version=version,
        first_seq=fold.first_seq,
        last_seq=fold.last_seq,
        layer=1 + max((digest.layer for digest in taken), default=-1),
        tokens=min(tokens, fold.tokens_max or tokens),
        status="completed",
    )
    others = [] if slides else [d for d in view.digests if d.version not in fold.takes]
    digests = sorted([*others, made], key=lambda digest: digest.first_seq)
    used = tuple(digests) if slides else covering(digests)
    first_open = used[-1].last_seq + 1
    open_tokens = sum(entry.tokens for entry in view.entries if entry.seq >= first_open)
    return replace(view, digests=used, first_open=first_open, open_tokens=open_tokens)


# -- whole: a memory in which everything happens --------------------------------------------------


async def _prove_contexts(
    strategy: Strategy, messages: Sequence[Message], budget: Budget, *, more: bool
) -> None:
    """Test two contexts, one in the middle of the conversation and one at its end.

    `more`: with a question, a system prompt and tools.
    """
    half = len(messages) // 2
    async with Memory.open("memory:", strategy=strategy, worker=False) as memory:
        for part in (messages[:half], messages[half:]):
            if part:
                await memory.append("c", part)
            await _prove_context(memory, budget, more=more)
            await memory.digest("c")
        assert (await memory.verify("c")).ok


async def _prove_context(memory: Memory, budget: Budget, *, more: bool) -> None:
    entries = await memory.read("c")
    extra = {"question": "which order?", "system": SYSTEM, "tools": [TOOL]} if more else {}
    for past in (False, True):
        try:
            context = await memory.context("c", budget, past=past, **extra)  # type: ignore[arg-type]
        except BudgetError as error:
            _prove_blocked(error, entries, budget, more=more, past=past)
            continue
        prove_context(context, entries, past=past)
        assert not more or context.to_openai()[0]["content"] == SYSTEM


def _prove_blocked(
    error: BudgetError, entries: Sequence[Entry], budget: Budget, *, more: bool, past: bool
) -> None:
    """The error names the blockers, and the context would indeed not fit."""
    must = [entry for entry in entries if entry.message.metadata.get("pinned")]
    asked = [entry for entry in entries if is_question(entry.message) and not past]
    assert error.context["floor"] > budget.limit
    assert error.context["blockers"]
    small = sum(entry.tokens for entry in [*must, *asked[-1:], *_leading_system(entries)])
    notes = 150 if more else 90
    assert small + notes > budget.limit, "it would have fit"


def prove_context(context: Context, entries: Sequence[Entry], *, past: bool = False) -> None:
    """Check what holds for every context of every strategy."""
    sent = context.to_openai()
    assert context.tokens <= context.budget.limit
    assert reference_tokens(sent) <= context.budget.limit
    assert openai_problems(sent) == []
    assert anthropic_problems(context.to_anthropic()) == []
    shown = set(context.seqs)
    for entry in entries:
        if entry.message.metadata.get("pinned"):
            assert entry.seq in shown, f"pin {entry.seq} is missing"
    asked = [entry.seq for entry in entries if is_question(entry.message)]
    assert past or not asked or asked[-1] in shown, "the newest question is missing"
    in_any_form = {piece.entry.seq for piece in context.pieces if piece.entry}
    for unit in units(entries):
        present = {entry.seq for entry in unit.entries} & in_any_form
        assert not present or len(present) == len(unit.entries), "a unit is incomplete"
    texts = [message.get("content") for message in sent]
    quotes = "\n".join(text for text in texts if isinstance(text, str))
    for seq in shown:
        whole = entries[seq].message.to_openai().get("content") in texts
        assert whole or recalled_line(entries[seq]) in quotes, "not verbatim"
    times = [entry.seq for section in context.sections for entry in section.entries]
    assert len(times) == len(set(times)), "a message is shown twice"
    assert context.tokens <= context.whole_tokens, "larger than the whole conversation"


def _leading_system(entries: Sequence[Entry]) -> list[Entry]:
    found = []
    for entry in entries:
        if entry.message.role != "system":
            break
        found.append(entry)
    return found


def reference_tokens(messages: Sequence[dict[str, object]]) -> int:
    """The tokens of a request, counted independently with the reference encoder."""
    encoder: tiktoken.Encoding = reference_encoder()
    total = 3
    for message in messages:
        total += 3 + sum(len(encoder.encode_ordinary(text)) for text in _strings(message))
    return total


def _strings(value: object) -> list[str]:
    """The texts that reach the model: values without field names."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        inner = [item for name, item in value.items() if name not in ("type", "id", "tool_call_id")]
        return [text for item in inner for text in _strings(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _strings(item)]
    return []
