"""Which sentence of a conversation needs another one to be understood: answers, "yes", "it".

An answer needs its question, and a question that was asked needs its answer. A sentence that says
"ok, let's do that" needs what it agrees to, and one that starts with "it" the one before. What is
only supposed is marked, also in the answer to "what if".
"""

# ruff: noqa: RUF001 - question marks of other scripts

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from firnline.context.render import SUPPOSED
from firnline.digest import rules
from firnline.language import prose
from firnline.language.prose import half_words
from firnline.language.statements import speaker as statement
from firnline.language.stop_words import CONTENT_MAX, has_reference, split_words
from firnline.log import limits
from firnline.log.message import Message

SPEAKERS: Final = {"user": "User", "assistant": "Assistant", "tool": "Tool"}
"""Labels of speakers in a summary, unless a user has a name; other roles are system text."""

_ASSISTANT: Final = SPEAKERS["assistant"]
_TOOL: Final = SPEAKERS["tool"]
_ANSWER_SENTENCES: Final = 2
_ELLIPTIC_HALVES: Final = 10
_DEPENDENT_HALVES: Final = 18
_QUESTION_ENDS: Final = ("?", "？", "؟")
TOGETHER_MAX: Final = 6
"""Sentences that are shown together at most."""


class Said(NamedTuple):
    """A sentence: who said it, in an earlier summary or not.

    `needs` is the number of the sentence without which it says little, and `answer` that of the
    one that answers it; -1 if there is none.
    """

    speaker: str
    text: str
    earlier: bool = False
    needs: int = -1
    answer: int = -1


def linked(texts: Sequence[tuple[str, Sequence[str], bool]]) -> list[Said]:
    """All sentences of messages, in order: each is its speaker, its sentences, and `earlier`."""
    found: list[Said] = []
    asked, asker, before = -1, "", False
    for speaker, pieces, earlier in texts:
        if not pieces:
            continue
        if earlier != before:
            asked, before = -1, earlier
        question = asked if speaker not in (asker, _TOOL) else -1
        first = len(found)
        found += _message(found, speaker, pieces, earlier=earlier, question=question)
        if question >= 0 and (answer := _answer(found, first, question)) >= 0:
            found[question] = found[question]._replace(answer=answer)
        last = _question(pieces, whole=speaker != _ASSISTANT)
        if last >= 0:
            asked, asker = first + last, speaker
        elif speaker not in (_ASSISTANT, _TOOL):
            asked, asker = _still_asked(found, first, question), speaker
    return found


def _still_asked(found: Sequence[Said], first: int, question: int) -> int:
    """What was asked before, if a message only answers the question back; otherwise -1.

    "Book a flight." "Which day?" "Friday." What comes now is about the flight.
    """
    if question < 0 or found[first].needs != question:
        return -1
    before = found[question].needs
    return before if before >= 0 and found[before].speaker == found[first].speaker else -1


def _message(
    before: Sequence[Said], speaker: str, pieces: Sequence[str], *, earlier: bool, question: int
) -> list[Said]:
    """The sentences of one message; `question` is the one that waits for its answer, or -1."""
    first = len(before)
    replied = first - 1 if before and before[-1].speaker not in (speaker, _TOOL) else -1
    if replied >= 0 and before[replied].earlier != earlier:
        replied = -1
    # The assistant answers with all it says; a user answers, and goes on.
    answers = len(pieces)
    if speaker != _ASSISTANT:
        short = takewhile(_is_elliptic, pieces[:_ANSWER_SENTENCES])
        answers = sum(1 for _ in short)
    scene = answers if question >= 0 and _is_scene(before[question].text) else 0
    found = []
    for number, piece in enumerate(_marked(pieces, scene)):
        needs = -1
        if number and _depends(piece):
            needs = first + number - 1
        elif question >= 0 and number < answers:
            needs = question
        elif not number and _depends(piece):
            needs = replied
        found.append(Said(speaker, piece, earlier, needs))
    return found


def _answer(found: Sequence[Said], first: int, question: int) -> int:
    """The sentence from `first` on that answers a question; -1 for a request, or if none does."""
    if not _is_question(found[question].text):
        return -1
    for number in range(first, len(found)):
        one = found[number]
        reacts = half_words(one.text) <= _ELLIPTIC_HALVES and statement.is_comment(one.text)
        if one.needs == question and not reacts:
            return -1 if _is_question(one.text) else number
    return -1


def _question(pieces: Sequence[str], *, whole: bool) -> int:
    """The number of the last question or request of a message, or -1.

    The assistant's question counts only at the end of what it says.
    """
    last = len(pieces) - 1
    for number in range(last, -1 if whole else max(last - 1, -1), -1):
        if rules.cues(pieces[number]).question or (whole and asks_for(pieces[number])):
            return number
    return -1


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("\"'”’)* ").endswith(_QUESTION_ENDS)


def _is_elliptic(sentence: str) -> bool:
    """Whether an answer says little without its question: "Yes, both", "At seven"."""
    return half_words(sentence) <= _ELLIPTIC_HALVES or statement.is_reply(sentence)


def _depends(sentence: str) -> bool:
    """Whether a sentence says little without the one before: "yes", "I'll add them", "It is"."""
    text = sentence.removeprefix(SUPPOSED).strip()
    if statement.is_reply(text) or statement.points_back(text):
        return True
    # "If we moved, it might be seven": a condition names nothing that "it" could be.
    words_max = _DEPENDENT_HALVES if text != sentence else CONTENT_MAX
    found = split_words(text)
    return half_words(text) <= _DEPENDENT_HALVES and has_reference(found, words_max)


def asks_for(sentence: str) -> bool:
    """Whether a sentence requests something."""
    return statement.is_request(sentence) or statement.is_order(sentence)


def is_bare_answer(message: Message) -> bool:
    """Whether a message is so short an answer that it says little without its question."""
    if message.role not in ("user", "assistant") or len(message.text) > limits.ANSWER_CHARS_MAX:
        return False
    pieces = prose.sentences(message.text)
    short = half_words(message.text) <= _DEPENDENT_HALVES
    short = short or all(_is_elliptic(piece) or _depends(piece) for piece in pieces)
    return short and not all(map(statement.is_comment, pieces))


def asks(message: Message) -> bool:
    """Whether a message is a question or request that is short enough to be quoted with others."""
    if len(message.text) > limits.QUESTION_CHARS_MAX:
        return False
    return _question(prose.sentences(message.text), whole=message.role == "user") >= 0


# -- suppositions -----------------------------------------------------------------------------


def _marked(pieces: Sequence[str], scene: int) -> Iterator[str]:
    """The sentences of a message; what is only supposed is marked.

    The first `scene` of them answer a question about a supposition.
    """
    supposed = False
    for number, piece in enumerate(pieces):
        supposed = number < scene if number in (0, scene) else supposed
        ends = rules.cues(piece).decision or statement.ends_scene(piece)
        supposed = statement.starts_scene(piece) or (supposed and not ends)
        unsure = statement.is_unreal(piece) and not statement.is_joke(piece) and not asks_for(piece)
        marked = supposed or (unsure and not rules.cues(piece).decision)
        if marked and not _is_question(piece) and not piece.startswith(SUPPOSED):
            yield f"{SUPPOSED} {piece}"
        else:
            yield piece


def _is_scene(question: str) -> bool:
    """Whether a question is about what is not so: "Suppose we had …, would it …?"."""
    if statement.starts_scene(question) or statement.is_imagined(question):
        return True
    return statement.is_conditional(question) and statement.is_hedged(question)


# -- chains -----------------------------------------------------------------------------------


def together(found: Sequence[Said], number: int) -> list[int]:
    """The numbers of a sentence and of all that it needs, in order: questions with their answers.

    Empty if that is too much: far from what it needs, a sentence is better left out.
    """
    there: set[int] = set()
    while number >= 0 and number not in there:
        there.add(number)
        if found[number].answer >= 0:
            there.add(found[number].answer)
        if len(there) > TOGETHER_MAX:
            return []
        number = found[number].needs
    return sorted(there)
