"""LoCoMo and REALTALK: two people talk over weeks; questions name the turns with the answer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from firnline.cli.bench.cases import ADVERSARIAL, BenchCase, CaseBuilder
from firnline.cli.bench.location import JsonSpot, texts_in
from firnline.log.message import Message
from firnline.log.regex import regex
from firnline.log.text import clean_name

TurnId: TypeAlias = "tuple[int, int] | str"
"""Session and turn, or the original text if it cannot be parsed."""

_LOCOMO: Final = {
    "1": "multi-hop",
    "2": "temporal",
    "3": "open-domain",
    "4": "single-hop",
    "5": "adversarial",
}
_REALTALK: Final = {"1": "multi-hop", "2": "temporal", "3": "commonsense"}
_SESSION: Final = regex(r"session_([0-9]{1,6})")
_ID: Final = regex(
    r"D[\s:]*([0-9]{1,6})\s*:\s*([0-9]{1,6})"  # D1:3, D 1:3, D:1:3, D1:03
    r"(?:\s*[-\u2013]\s*(?:D[\s:]*([0-9]{1,6})\s*:\s*)?([0-9]{1,6}))?"  # to D1:5, or to 5
)
_SPAN_MAX: Final = 200
_PAUSE: Final = timedelta(seconds=30)  # between turns whose own time is not known


class _SessionTurn(NamedTuple):
    id: TurnId
    speaker: str
    text: str
    time: datetime


def locomo(spot: JsonSpot, name: str) -> BenchCase:
    """A conversation of LoCoMo: ``conversation`` has sessions and speakers."""
    talk = spot["conversation"]
    turns = list(_turns(talk, "%I:%M %p on %d %B, %Y", "1:56 pm on 8 May, 2023"))
    first = talk.get("speaker_a")
    named = spot.get("sample_id")
    return _case(spot, named.label if named else name, turns, first.label if first else "", _LOCOMO)


def realtalk(spot: JsonSpot, name: str) -> BenchCase:
    """A chat of REALTALK: sessions, speakers and questions in one object, a time on each turn."""
    turns = list(_turns(spot, "%d.%m.%Y, %H:%M:%S", "29.12.2023, 22:42:04"))
    names = spot.get("name")
    first = names.get("speaker_1") if names else None
    return _case(spot, name, turns, first.label if first else "", _REALTALK)


def _case(
    spot: JsonSpot, name: str, turns: list[_SessionTurn], first: str, categories: dict[str, str]
) -> BenchCase:
    if not turns:
        raise spot.wrong("sessions of turns (session_1, session_2, …)")
    clean_name(name, spot.where)
    first = first or turns[0].speaker
    builder = CaseBuilder(turn.id for turn in turns)
    for number, asked in enumerate(spot["qa"].each("question"), 1):
        category = asked["category"].label
        category = categories.get(category, category)
        text = asked["question"].text
        if category == "adversarial":
            builder.left_out[ADVERSARIAL] += 1
            continue
        evidence = [i for item in _items(asked.get("evidence")) for i in turn_ids(item)]
        builder.ask(f"{name}/{number}", text, category, evidence, texts_in(asked.get("answer")))
    messages = (
        Message(
            "user" if turn.speaker == first else "assistant",
            turn.text,
            turn.speaker or None,
            created_at=turn.time,
        )
        for turn in turns
    )
    return builder.case(name, messages)


def _items(evidence: JsonSpot | None) -> Iterator[str]:
    """The evidence as a list, in any of its forms."""
    if evidence is None:
        return
    if isinstance(evidence.value, list):
        yield from (item.label for item in evidence.each("item"))
    else:
        yield evidence.label


def turn_ids(text: str) -> list[TurnId]:
    """The turns that a text names: ``D1:3`` and its variants.

    Several ids, a range (``D1:3-D1:5``), and extra zeros and colons are accepted. Any other text is
    an unknown id, and an empty one is no id.
    """
    found: list[TurnId] = []
    for match in _ID.finditer(text):
        session, turn = int(match[1]), int(match[2])
        found.append((session, turn))
        if match[4]:
            last_session, last = int(match[3] or session), int(match[4])
            if last_session == session and turn < last <= turn + _SPAN_MAX:
                found += [(session, n) for n in range(turn + 1, last + 1)]
            else:
                found.append((last_session, last))
    return found or ([text] if text.strip() else [])


def _turns(talk: JsonSpot, form: str, example: str) -> Iterator[_SessionTurn]:
    """The turns of all sessions, in the order of the sessions' numbers."""
    numbers = {int(m[1]): m[0] for name in talk.fields if (m := _SESSION.fullmatch(name))}
    for _, session in sorted(numbers.items()):
        turns = talk.get(session)
        if turns is None:
            continue
        started = talk.get(f"{session}_date_time")
        time = None if started is None else _time(started, form, example)
        for turn in turns.each("turn"):
            said = turn.get("date_time")
            if said is not None:
                time = _time(said, form, example)
            if time is None:
                raise talk.wrong(f"{session}_date_time, such as {example!r}")
            dia = turn["dia_id"].label
            yield _SessionTurn(
                (turn_ids(dia) or [dia])[0], turn["speaker"].label, _text(turn), time
            )
            time = later(time)


def _text(turn: JsonSpot) -> str:
    words = turn.get("clean_text") or turn["text"]
    caption = turn.get("blip_caption")
    return f"{words.text} [image: {caption.text}]" if caption else words.text


def _time(spot: JsonSpot, form: str, example: str) -> datetime:
    try:
        return datetime.strptime(spot.text.strip(), form).replace(tzinfo=UTC)
    except ValueError:
        raise spot.wrong(f"a time such as {example!r}") from None


def later(time: datetime) -> datetime:
    """The time of the next turn, if it has none."""
    try:
        return time + _PAUSE
    except OverflowError:  # the last minute of the calendar
        return time
