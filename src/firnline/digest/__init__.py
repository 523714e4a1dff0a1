"""Digests: summaries and important data, offline or by a model, and the code that checks them.

`claims` finds what a text asserts, `items` holds important data with evidence, `rules` and
`extractive` work without a model, `prompts` with one, `check` decides whether a summary is accepted
and `receipt` lists what it kept. Everything is pure except the four functions here.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from firnline.digest import claims, extractive, prompts, rules
from firnline.language.prose import Count, spans
from firnline.language.statements import reader
from firnline.log import limits
from firnline.log.threads import run_by_size
from firnline.protocols import Brief, ChatModel, Completion, Extractor, Summarizer, Written

OFFLINE: Final = "offline"
"""`made_by` of digests that were created without a model."""
APPLICATION: Final = "application"
"""`made_by` of digests with what the application stated."""

_TOKENS_PER_WORD: Final = 4
_TOKENS_OVER: Final = 512


def clear_caches() -> None:
    """Clear the caches of analyzed texts."""
    claims.clear_caches()
    rules.cues.cache_clear()
    reader.clear_cache()


def offline_summarizer(count: Count) -> Summarizer:
    """A summarizer that selects sentences of the conversation; no model, no network."""

    async def summarize(brief: Brief) -> Written:
        work = partial(extractive.summarize, brief, count)
        text = await run_by_size(_chars(brief), work, limits.DIGEST_INLINE_CHARS)
        return Written(text=text, made_by=OFFLINE)

    return summarize


def offline_extractor() -> Extractor:
    """An extractor that works by rules; no model, no network."""

    async def extract(brief: Brief) -> Written:
        work = partial(rules.extract, brief.entries)
        found = await run_by_size(_chars(brief), work, limits.DIGEST_INLINE_CHARS)
        return Written(items=tuple(found), made_by=OFFLINE)

    return extract


def model_summarizer(model: ChatModel, count: Count) -> Summarizer:
    """A summarizer that calls a model once; the answer is not checked here.

    A truncated answer loses its last, incomplete sentence; a filtered one is empty.
    """

    async def summarize(brief: Brief) -> Written:
        messages = prompts.summary_messages(brief)
        most = brief.words_max * _TOKENS_PER_WORD + _TOKENS_OVER
        completion = await model.complete(messages, max_tokens=most)
        prompt_tokens = count("\n".join(str(message["content"]) for message in messages))
        text = _complete_text(completion)
        return Written(
            text=text,
            made_by=completion.model or model.name,
            calls=1,
            spent_tokens=_spent_tokens(completion)
            or prompt_tokens + count(completion.message.text),
        )

    return summarize


def model_extractor(model: ChatModel) -> Extractor:
    """An extractor that calls a model once; malformed items are dropped."""

    async def extract(brief: Brief) -> Written:
        messages = prompts.extraction_messages(brief)
        completion = await model.complete(messages, schema=prompts.EXTRACTION_SCHEMA)
        return Written(
            items=prompts.parse_items(completion.message.text),
            made_by=completion.model or model.name,
            calls=1,
            spent_tokens=_spent_tokens(completion),
        )

    return extract


def _spent_tokens(completion: Completion) -> int:
    return completion.prompt_tokens + completion.completion_tokens


def _complete_text(completion: Completion) -> str:
    """The answer's text without an incomplete last sentence."""
    text = prompts.answer_text(completion.message.text)
    if completion.finish_reason == "content_filter":
        return ""
    if completion.finish_reason == "length":
        ends = [end for _, end in spans(text)]
        return text[: ends[-2]] if len(ends) > 1 else text
    return text


def _chars(brief: Brief) -> int:
    size = sum(len(entry.message.text) for entry in (*brief.entries, *brief.window))
    return size + sum(map(len, brief.earlier))
