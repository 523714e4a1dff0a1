"""The offline summarizer for LangChain's `SummarizationMiddleware`, which takes a function."""

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
    """A function that summarizes messages by their sentences, in at most `tokens_max` tokens.

    It needs no model. LangChain's middleware still replaces the messages that it summarizes;
    `FirnlineMiddleware` does not. Tokens are counted for `model`.
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
