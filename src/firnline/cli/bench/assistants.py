"""LongMemEval and BEAM: a user talks with an assistant; questions are about old messages."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from firnline.cli.bench.cases import BenchCase, BenchQuestion, CaseBuilder, GoldEvidence
from firnline.cli.bench.location import DEPTH_MAX, JsonSpot, texts_in
from firnline.cli.bench.talks import later
from firnline.log.message import Message
from firnline.log.regex import regex
from firnline.log.text import clean_name

ABSTENTION: Final = "abstention: made to have no answer"

_ANSWERS: Final = ("answer", "ideal_response", "ideal_answer", "ideal_summary", "rubric")
"""What BEAM calls the answer, depending on the kind of question."""
_WEEKDAY: Final = regex(r"(?:(?<!\s)\s+)?\([^)]{0,40}\)\s*")


# -- LongMemEval ------------------------------------------------------------------------------


def longmemeval(spot: JsonSpot, name: str) -> BenchCase:
    """An instance of LongMemEval: one question and its own haystack of sessions.

    The evidence is the turns marked ``has_answer``, or else the sessions it names.
    """
    named = spot.get("question_id")
    name = clean_name(named.label if named else name, spot.where)
    sessions = _sessions(spot)
    messages: list[Message] = []
    marked: list[int] = []
    spans: dict[str, frozenset[int]] = {}
    for session, started, turns in sessions:
        first, time = len(messages), started
        for turn in turns.each("turn"):
            answer = turn.get("has_answer")
            if answer is not None and answer.value is True:
                marked.append(len(messages))
            messages.append(_message(turn, time))
            time = later(time)
        spans[session] = frozenset(range(first, len(messages)))
    if not messages:
        raise spot.wrong("haystack_sessions with turns in them")
    builder = CaseBuilder(range(len(messages)))
    question, kind = spot["question"].text, spot["question_type"].label
    if name.endswith("_abs"):
        builder.left_out[ABSTENTION] += 1
    elif marked or not (held := _answer_sessions(spot, spans)):
        builder.ask(name, question, kind, marked, texts_in(spot.get("answer")))
    else:
        builder.questions.append(BenchQuestion(name, question, kind, held, by_session=True))
    return builder.case(name, messages)


def _sessions(spot: JsonSpot) -> list[tuple[str, datetime, JsonSpot]]:
    """Id, time, and turns of each session, by time."""
    sessions = list(spot["haystack_sessions"].each("session"))
    dates = list(spot["haystack_dates"].each("date"))
    given = spot.get("haystack_session_ids")
    names = [i.label for i in given.each("id")] if given else [str(n) for n in range(len(sessions))]
    if not len(sessions) == len(dates) == len(names):
        raise spot.wrong(
            f"as many haystack_dates ({len(dates)}) and haystack_session_ids ({len(names)}) "
            f"as haystack_sessions ({len(sessions)})"
        )
    found = zip(names, map(_date, dates), sessions, strict=True)
    return sorted(found, key=lambda session: session[1])


def _date(spot: JsonSpot) -> datetime:
    try:
        text = _WEEKDAY.sub(" ", spot.text).strip()
        return datetime.strptime(text, "%Y/%m/%d %H:%M").replace(tzinfo=UTC)
    except ValueError:
        raise spot.wrong("a time such as '2023/05/20 (Sat) 02:21'") from None


def _answer_sessions(spot: JsonSpot, spans: dict[str, frozenset[int]]) -> tuple[GoldEvidence, ...]:
    """The sessions with the answer that are in the haystack."""
    given = spot.get("answer_session_ids")
    names = dict.fromkeys(i.label for i in given.each("id")) if given else ()
    return tuple(GoldEvidence(i, spans[i]) for i in names if spans.get(i))


# -- BEAM -------------------------------------------------------------------------------------


def beam(spot: JsonSpot, name: str) -> BenchCase:
    """A chat of BEAM and its probing questions, which name their messages."""
    named = spot.get("conversation_id")
    name = clean_name(named.label if named else name, spot.where)
    turns = list(_messages(spot["chat"]))
    if not turns:
        raise spot["chat"].wrong("batches of turns, each with role and content")
    anchors = [_anchor(turn.get("time_anchor")) for turn in turns]
    time = next(filter(None, anchors), None)
    messages = []
    for turn, anchor in zip(turns, anchors, strict=True):
        time = anchor or time
        messages.append(_message(turn, time))
        time = later(time) if time else None
    ids = (turn.get("id") for turn in turns)
    builder = CaseBuilder(str(at) if i is None else i.label for at, i in enumerate(ids))
    for category, asked in _probes(spot["probing_questions"]):
        number = len(builder.questions) + builder.left_out.total() + 1
        evidence = list(dict.fromkeys(_sources(asked.get("source_chat_ids"))))
        answer = " ".join(texts_in(asked.get(field)) for field in _ANSWERS)
        builder.ask(f"{name}/{number}", asked["question"].text, category, evidence, answer)
    return builder.case(name, messages)


def _messages(spot: JsonSpot, depth: int = 0) -> Iterator[JsonSpot]:
    """The messages in lists, batches with ``turns``, or plans by name."""
    if isinstance(spot.value, list) and depth < DEPTH_MAX:
        for item in spot.each("item"):
            yield from _messages(item, depth + 1)
    elif "role" in spot.fields:
        yield spot
    elif depth < DEPTH_MAX:
        turns = spot.get("turns")
        plans = [spot.get(name) for name in spot.fields if name.startswith("plan-")]
        inner = [turns] if turns else [plan for plan in plans if plan]
        if not inner:
            raise spot.wrong("a message with role and content, or a batch with turns")
        for part in inner:
            yield from _messages(part, depth + 1)


def _anchor(spot: JsonSpot | None) -> datetime | None:
    """The date of a message, if it has a valid one."""
    try:
        text = str(spot.value) if spot else ""
        return datetime.strptime(text, "%B-%d-%Y").replace(tzinfo=UTC)
    except ValueError:
        return None


def _probes(spot: JsonSpot) -> Iterator[tuple[str, JsonSpot]]:
    """The questions with their kind; the hub stores them as the text of a literal."""
    if isinstance(spot.value, str):
        spot = JsonSpot(_literal(spot), spot.where)
    for category in spot.fields:
        given = spot.get(category)
        for asked in given.each("question") if given else ():
            yield category, asked


def _literal(spot: JsonSpot) -> object:
    for read in (json.loads, ast.literal_eval):
        try:
            return json.loads(json.dumps(read(spot.text)))  # nothing but JSON comes out of it
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
    raise spot.wrong("probing questions as JSON")


def _sources(spot: JsonSpot | None, depth: int = 0) -> Iterator[str]:
    """The ids of the messages with the evidence, flat or grouped."""
    if spot is None:
        return
    if depth < DEPTH_MAX and isinstance(spot.value, dict):
        for name in spot.value:
            yield from _sources(spot.get(name), depth + 1)
    elif depth < DEPTH_MAX and isinstance(spot.value, list):
        for item in spot.each("id"):
            yield from _sources(item, depth + 1)
    else:
        yield spot.label


# -- both -------------------------------------------------------------------------------------


def _message(turn: JsonSpot, time: datetime | None) -> Message:
    role = turn["role"]
    if role.value == "user":
        return Message.user(turn["content"].text, created_at=time)
    if role.value == "assistant":
        return Message.assistant(turn["content"].text, created_at=time)
    raise role.wrong("'user' or 'assistant'")
