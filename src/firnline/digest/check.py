"""Decides by code whether a summary is accepted, whether a model or the rules wrote it."""

# ruff: noqa: RUF001 - other scripts and their marks are meant

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from firnline.context import marks
from firnline.digest.claims import unsupported
from firnline.digest.extractive import source_words
from firnline.language.prose import Count, count_words, cut_to, fold_text, sentences
from firnline.log.regex import regex
from firnline.protocols import Brief

__all__ = ["ProblemCode", "SummaryProblem", "complaint", "cut_to", "find_problems"]

ProblemCode: TypeAlias = Literal[
    "empty", "too_long", "too_short", "not_shorter", "refusal", "unsupported", "echo", "broken"
]

_REFUSAL: Final = regex(
    r"\W*(?:i(?:['’]m| am) (?:very |so |really )?sorry|sorry,? (?:but|i)\b|unfortunately,? i\b|"
    r"i (?:cannot|can['’]t|can not|won['’]t|am unable|am not able|must decline|apologi[sz]e)|"
    r"i['’]m (?:unable|not able)|as an ai\b|as a (?:large )?language model|"
    r"es tut mir leid|ich kann (?:das |dabei |ihnen )|lo siento|no puedo (?:ayudar|hacer|cumplir)|"
    r"je suis désolée?|désolée?,|je ne peux pas|mi dispiace|sinto muito|desculpe|"
    r"извините|к сожалению, я|я не могу|对不起|抱歉|很抱歉|我无法|我不能|申し訳|すみません|죄송)",
    re.IGNORECASE,
)
_REFUSAL_WORDS_MAX: Final = 80
_FENCE: Final = "```"
_ECHO_TIMES: Final = 3
_ECHO_RUN: Final = 5
_ECHO_PIECES_MIN: Final = 40
_ECHO_NEW: Final = 0.4
_NAMED_MAX: Final = 8


class SummaryProblem(NamedTuple):
    """One reason to reject a summary: a code for programs, a sentence for the model."""

    code: ProblemCode
    detail: str


def find_problems(
    brief: Brief, text: str, covered_tokens: int, count: Count
) -> list[SummaryProblem]:
    """All problems of a summary of the brief; empty if it is accepted.

    `covered_tokens` are the tokens of the entries it covers. It is too short only if the source has
    at least twice the requested words.
    """
    if not text.strip():
        return [SummaryProblem("empty", "the summary is empty")]
    words, tokens = count_words(text), count(text)
    found = list(_length_problems(brief, words, tokens))
    if tokens >= covered_tokens:
        detail = f"it has {tokens} tokens, but the messages it covers have only {covered_tokens}"
        found.append(SummaryProblem("not_shorter", detail))
    if words <= _REFUSAL_WORDS_MAX and _REFUSAL.match(text):
        found.append(SummaryProblem("refusal", "it is a refusal, not a summary"))
    if _repeats_itself(text):
        found.append(SummaryProblem("echo", "it repeats the same text"))
    source_texts = sources(brief)
    if text.count(_FENCE) % 2 and not any(_FENCE in source for source in source_texts):
        found.append(
            SummaryProblem("broken", "it breaks off inside a code block; write plain sentences")
        )
    foreign = unsupported(text, source_texts)
    if foreign:
        named = ", ".join(claim.value for claim in foreign[:_NAMED_MAX])
        found.append(SummaryProblem("unsupported", f"the conversation does not mention: {named}"))
    return found


def sources(brief: Brief) -> list[str]:
    """The texts that a summary of the brief may use."""
    entries = brief.window or brief.entries
    return [brief.prompt, *brief.earlier, *(marks.source(entry) for entry in entries)]


def _length_problems(brief: Brief, words: int, tokens: int) -> list[SummaryProblem]:
    if words > brief.words_max:
        return [
            SummaryProblem(
                "too_long", f"it has {words} words; at most {brief.words_max} are allowed"
            )
        ]
    if brief.tokens_max is not None and tokens > brief.tokens_max:
        limit = brief.tokens_max
        return [SummaryProblem("too_long", f"it has {tokens} tokens; at most {limit} are allowed")]
    if words < brief.words_min and source_words(brief) >= 2 * brief.words_min:
        return [
            SummaryProblem(
                "too_short", f"it has {words} words; at least {brief.words_min} are asked for"
            )
        ]
    return []


def _repeats_itself(text: str) -> bool:
    counts = Counter(fold_text(sentence).strip(" .!?") for sentence in sentences(text))
    if counts and counts.most_common(1)[0][1] >= _ECHO_TIMES:
        sentence, times = counts.most_common(1)[0]
        if times * max(len(sentence), 1) * 2 > len(text):
            return True
    pieces = text.split()
    if len(pieces) < _ECHO_PIECES_MIN:
        pieces = list(text) if count_words(text) > len(pieces) else []
    runs = [tuple(pieces[i : i + _ECHO_RUN]) for i in range(len(pieces) - _ECHO_RUN + 1)]
    return len(runs) >= _ECHO_PIECES_MIN and len(set(runs)) < _ECHO_NEW * len(runs)


def complaint(found: Sequence[SummaryProblem]) -> str:
    """The reason that is added to the next prompt; empty if there is no problem."""
    if not found:
        return ""
    return "The last summary was rejected: " + "; ".join(problem.detail for problem in found) + "."
