"""Our offline summariser for LangChain's own `SummarizationMiddleware`, which takes a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from langchain_core.messages import AnyMessage

from firnline.adapters.langchain.messages import from_langchain
from firnline.digest import extractive
from firnline.log.entry import Entry
from firnline.log.tokens import DEFAULT_MODEL, counter
from firnline.protocols import Brief


def summarizer(
    *, tokens_max: int = 1_000, model: str = DEFAULT_MODEL
) -> Callable[[Sequence[AnyMessage]], str]:
    """A function that sums messages up in their own sentences, in at most `tokens_max` tokens.

    It needs no model and cannot fail for want of one. LangChain's middleware still replaces what it
    sums up; `FirnlineMiddleware` does not. `model` is whose tokenizer counts.
    """
    count = counter(model)

    def summarize(messages: Sequence[AnyMessage]) -> str:
        entries: list[Entry] = []
        total = 0
        for seq, given in enumerate(messages):
            message = from_langchain(given)
            tokens = count.message(message)
            total += tokens
            entries.append(Entry(seq, message, tokens, total, "", tokens.tokenizer))
        words = max(tokens_max * 2 // 3, 1)
        brief = Brief(entries=tuple(entries), words_max=words, tokens_max=tokens_max)
        return extractive.summarize(brief, count.text)

    return summarize
