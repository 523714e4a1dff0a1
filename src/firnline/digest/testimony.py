"""What the messages of a conversation state of the person it is with. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from firnline.context import marks
from firnline.digest.fact import DatedStatement
from firnline.digest.rules import CODE
from firnline.language import prose
from firnline.language.names import fold_name
from firnline.language.statements import patterns as slot_patterns
from firnline.language.statements.patterns import Statement
from firnline.language.statements.reader import statements
from firnline.language.statements.validity import valid_times
from firnline.log.entry import Entry
from firnline.log.message import EPOCH, microseconds


def read_statements(
    conversation: str, person: str, entries: Iterable[Entry], called: str | None = None
) -> list[DatedStatement]:
    """What the messages of a person's conversation state, each with a quote that is in the message.

    Of the assistant's messages only the status of things counts: what it suggests or repeats is
    no fact of the person. The person's messages have no name, the person's, or the one that they
    are `called` by there; a user message with another name is that speaker's.
    """
    own = {"", fold_name(person), fold_name(called or "")}
    found = []
    for entry in entries:
        message = entry.message
        if message.role not in ("user", "assistant") or entry.erased_at is not None:
            continue
        said = marks.said(message)
        text = CODE.sub("\n", said)
        name = "" if message.role == "assistant" else fold_name(message.name or "")
        at = message.created_at or EPOCH
        for one in statements(text):
            quote = _sentence(text, one)
            counts = message.role == "user" or (one.slot == slot_patterns.STATUS and one.thing)
            if counts and quote and quote in said:
                since, until = valid_times(quote, one.slot, at)
                speaker = "" if name in own else name
                where = microseconds(at), conversation, entry.seq, speaker, quote
                found.append(DatedStatement(*where, one, since, until))
    return found


def called_in(entries: Iterable[Entry]) -> str | None:
    """What the person is called in a conversation: the name of the first user message, or "".

    None if there is no user message: the first one to speak is the person, others are not.
    """
    for entry in entries:
        if entry.message.role == "user" and entry.erased_at is None:
            return entry.message.name or ""
    return None


def _sentence(text: str, one: Statement) -> str:
    """The sentence that states it, word for word."""
    for start, end in prose.spans(text):
        if start <= one.start < end:
            return text[start:end].strip()
    return ""
