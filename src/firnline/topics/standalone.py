"""Rewrites a follow-up question so that a search can understand it without the conversation.

By rules, which only repeat words of the conversation, or by a model, whose answer is accepted only
if it does the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from firnline.context.plan import is_question
from firnline.language.stop_words import (
    PERSONS,
    fold,
    has_reference,
    is_content,
    split_words,
    word_root,
)
from firnline.log.entry import Entry
from firnline.log.regex import regex
from firnline.topics.followup import is_followup

LOOK_BACK: Final = 12
"""Newest entries of the topic that are used."""
SUBJECT_WORDS_MAX: Final = 8
"""The most words that are added to a question."""
SUBJECT_CHARS_MAX: Final = 160
"""The most characters that are added."""
ENTRY_CHARS: Final = 600
"""Characters of an entry that are used, also in the prompt."""
GROWTH: Final = 3
"""The longest answer of a model, as a multiple of the question or the longest subject."""

PROMPT: Final = (
    "Rewrite the last question so that it can be understood without the conversation: put what "
    'words like "it" or "there" stand for in their place. Use only words of the conversation. '
    "Keep the language and the meaning. If it can be understood already, repeat it. Answer with "
    "the question alone, on one line."
)

_PHRASE_END: Final = regex(r"[.,;:!?()\[\]\"“”…\n]")
_SENTENCE_END: Final = (".", "!", "?", ":", "\n", "")


def standalone(question: str, entries: Sequence[Entry], title: str = "") -> str:
    """The question followed by its subject in parentheses; unchanged if it names its subject.

    `entries` are the topic's, newest last, without the question. Every word of the result is in the
    question, the entries or the title: "What does it cost?" becomes "What does it cost? (Alfama
    apartment, Lisbon)".
    """
    found = split_words(question)
    if not is_followup(question) and not has_reference(found):
        return question
    known = {word_root(word) for word in found}
    recent = entries[-LOOK_BACK:]
    phrases = [*_persons(found, recent), *_subject(recent, title)]
    added = _fit_phrases(phrases, known)
    return f"{question.rstrip()} ({', '.join(added)})" if added else question


def _subject(entries: Sequence[Entry], title: str) -> list[str]:
    """The phrases of the newest question with a subject, or of the title, or of an answer."""
    newest_first = [(e.message.text[:ENTRY_CHARS], e.message) for e in reversed(entries)]
    questions = [text for text, message in newest_first if is_question(message)]
    answers = [text for text, message in newest_first if not is_question(message)]
    clear = (text for text in questions if not is_followup(text) and not _has_reference(text))
    subject = next(clear, "")
    # A question that depends on an earlier one has words of the subject, too, but comes second.
    dependent = [text for text in questions[:1] if text != subject]
    for texts in ([subject, *dependent], [title], answers[:1]):
        if phrases := [phrase for text in texts for phrase in _phrases(text)]:
            return phrases
    return []


def _has_reference(text: str) -> bool:
    return has_reference(split_words(text))


def _phrases(text: str) -> Iterator[str]:
    """Runs of content words, as written."""
    for piece in _PHRASE_END.split(text):
        run: list[str] = []
        for word in split_words(piece):
            if is_content(word):
                run.append(word)
            elif run:
                yield " ".join(run)
                run = []
        if run:
            yield " ".join(run)


def _persons(found: Iterable[str], entries: Sequence[Entry]) -> list[str]:
    """Names in the newest answer, if the question is about a person."""
    if not any(fold(word) in PERSONS for word in found):
        return []
    answers = (e.message.text for e in reversed(entries) if e.message.role == "assistant")
    text = next(answers, "")[:ENTRY_CHARS]
    return [run for run in _phrases(text) if _is_name(run, text)][:2]


def _is_name(phrase: str, text: str) -> bool:
    """Two capitalized words, or one that does not start a sentence."""
    parts = phrase.split()
    if not all(part[0].isupper() for part in parts):
        return False
    before = text[: text.find(phrase)].rstrip(" ")[-1:]
    return len(parts) > 1 or before not in _SENTENCE_END


def _fit_phrases(phrases: Iterable[str], known: set[str]) -> list[str]:
    """The phrases without known words, as many as fit."""
    added: list[str] = []
    count = chars = 0
    for phrase in phrases:
        fresh = [word for word in phrase.split() if word_root(word) not in known]
        text = " ".join(fresh)
        if not fresh or chars + len(text) > SUBJECT_CHARS_MAX:
            continue
        if count + len(fresh) > SUBJECT_WORDS_MAX:
            break
        known |= {word_root(word) for word in fresh}
        added.append(text)
        count, chars = count + len(fresh), chars + len(text) + 2
    return added


# -- by a model -------------------------------------------------------------------------------


def standalone_messages(question: str, entries: Sequence[Entry]) -> list[dict[str, str]]:
    """The prompt for a model, in the OpenAI chat shape; its answer is for `check_rewrite`."""
    lines = [f"{e.message.role}: {_line(e.message.text)}" for e in entries[-LOOK_BACK:]]
    talk = "\n".join(line for line in lines if not line.endswith(": "))
    prompt = f"Conversation:\n{talk}\n\nLast question: {_line(question)}"
    return [{"role": "system", "content": PROMPT}, {"role": "user", "content": prompt}]


def check_rewrite(answer: str, question: str, entries: Sequence[Entry], title: str = "") -> str:
    """A model's answer if it can be trusted, otherwise the result of the rules.

    It must be one line, not much longer than the question, and its content words must be in the
    conversation. A plural counts as its singular.
    """
    text = answer.strip()
    room = GROWTH * max(len(question), SUBJECT_CHARS_MAX)
    if text and len(text.splitlines()) == 1 and len(text) <= room:
        sources = (question, title, *(entry.message.text for entry in entries[-LOOK_BACK:]))
        known = {_stem(word) for source in sources for word in split_words(source)}
        if all(_stem(word) in known or not is_content(word) for word in split_words(text)):
            return text
    return standalone(question, entries, title)


def _stem(word: str) -> str:
    stem = word_root(word)
    return stem.rstrip("s") or stem


def _line(text: str) -> str:
    return " ".join(text[:ENTRY_CHARS].split())
