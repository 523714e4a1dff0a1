"""LoCoMo and REALTALK: two people talk over weeks; questions name the turns that answer them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from firnline.cli.bench.cases import ADVERSARIAL, Asking, Case
from firnline.cli.bench.location import Spot
from firnline.log.message import Message
from firnline.log.regex import regex
from firnline.log.text import clean_name

TurnId: TypeAlias = "tuple[int, int] | str"
"""Session and turn; as it is written where it cannot be read."""

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


class _Turn(NamedTuple):
    id: TurnId
    speaker: str
    text: str
    time: datetime


def locomo(spot: Spot, name: str) -> Case:
    """A conversation of LoCoMo: sessions and speakers under ``conversation``, questions beside."""
    talk = spot["conversation"]
    turns = list(_turns(talk, "%I:%M %p on %d %B, %Y", "1:56 pm on 8 May, 2023"))
    first = talk.get("speaker_a")
    named = spot.get("sample_id")
    return _case(spot, named.label if named else name, turns, first.label if first else "", _LOCOMO)


def realtalk(spot: Spot, name: str) -> Case:
    """A chat of REALTALK: sessions, speakers and questions in one object, a time on each turn."""
    turns = list(_turns(spot, "%d.%m.%Y, %H:%M:%S", "29.12.2023, 22:42:04"))
    names = spot.get("name")
    first = names.get("speaker_1") if names else None
    return _case(spot, name, turns, first.label if first else "", _REALTALK)


def _case(
    spot: Spot, name: str, turns: list[_Turn], first: str, categories: dict[str, str]
) -> Case:
    if not turns:
        raise spot.wrong("sessions of turns (session_1, session_2, …)")
    clean_name(name, spot.where)
    first = first or turns[0].speaker
    asking = Asking(turn.id for turn in turns)
    for number, asked in enumerate(spot["qa"].each("question"), 1):
        category = asked["category"].label
        category = categories.get(category, category)
        text = asked["question"].text
        if category == "adversarial":
            asking.left_out[ADVERSARIAL] += 1
            continue
        evidence = [i for item in _items(asked.get("evidence")) for i in turn_ids(item)]
        asking.ask(f"{name}/{number}", text, category, evidence)
    messages = (
        Message(
            "user" if turn.speaker == first else "assistant",
            turn.text,
            turn.speaker or None,
            created_at=turn.time,
        )
        for turn in turns
    )
    return asking.case(name, messages)


def _items(evidence: Spot | None) -> Iterator[str]:
    """The evidence as a list, however it is given."""
    if evidence is None:
        return
    if isinstance(evidence.value, list):
        yield from (item.label for item in evidence.each("item"))
    else:
        yield evidence.label


def turn_ids(text: str) -> list[TurnId]:
    """The turns that a text names: ``D1:3``, and what people make of it when they type it.

    Several in one text, a span (``D1:3-D1:5``), zeros and colons too many are understood; a text
    that names none is an id that will not be found, and an empty one nothing at all.
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


def _turns(talk: Spot, form: str, example: str) -> Iterator[_Turn]:
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
            yield _Turn((turn_ids(dia) or [dia])[0], turn["speaker"].label, _text(turn), time)
            time = later(time)


def _text(turn: Spot) -> str:
    words = turn.get("clean_text") or turn["text"]
    caption = turn.get("blip_caption")
    return f"{words.text} [image: {caption.text}]" if caption else words.text


def _time(spot: Spot, form: str, example: str) -> datetime:
    try:
        return datetime.strptime(spot.text.strip(), form).replace(tzinfo=UTC)
    except ValueError:
        raise spot.wrong(f"a time such as {example!r}") from None


def later(time: datetime) -> datetime:
    """When the next turn was said, if nobody noted it."""
    try:
        return time + _PAUSE
    except OverflowError:  # the last minute of the calendar
        return time
