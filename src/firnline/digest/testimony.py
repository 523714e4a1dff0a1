"""What the messages of a conversation state of the person it is with. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from firnline.context import marks
from firnline.digest.fact import MEMORY, NOTED, SAID, SOURCE_KEY, DatedStatement
from firnline.digest.rules import CODE
from firnline.language import prose
from firnline.language.names import fold_name
from firnline.language.statements import patterns as slot_patterns
from firnline.language.statements.patterns import Statement
from firnline.language.statements.reader import CHARS_MAX, statements
from firnline.language.statements.third_person import named_person, own_words
from firnline.language.statements.validity import valid_times
from firnline.language.statements.values import is_in
from firnline.log.entry import Entry
from firnline.log.message import EPOCH, Message, microseconds


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
        source = _source(message)
        mine = message.role == "assistant" or source in NOTED
        name = "" if mine else fold_name(message.name or "")
        at = message.created_at or EPOCH
        for quote, one in _noted(said, called or person) if source == MEMORY else _spoken(said):
            counts = message.role == "user" or source in NOTED or _is_status(one)
            if counts and quote and quote in said:
                since, until = valid_times(quote, one.slot, at)
                speaker = "" if name in own else name
                where = microseconds(at), conversation, entry.seq, speaker, quote
                found.append(DatedStatement(*where, one, since, until, source))
    return found


def _source(message: Message) -> str:
    """What a message is for its facts: said, or a note that another program kept of the person."""
    source = message.metadata.get(SOURCE_KEY)
    return source if isinstance(source, str) and source in NOTED else SAID


def _is_status(one: Statement) -> bool:
    return one.slot == slot_patterns.STATUS and one.thing


def _spoken(said: str) -> Iterator[tuple[str, Statement]]:
    """What a text states, each with its sentence."""
    text = CODE.sub("\n", said)
    for one in statements(text):
        yield _sentence(text, one), one


def _noted(text: str, name: str) -> Iterator[tuple[str, Statement]]:
    """What a note about the person of this name states, each with its sentence."""
    sentences = _sentences(text)
    start = 0
    for sentence, own in zip(sentences, own_words(sentences, name), strict=True):
        start = text.find(sentence, start)
        for one in statements(own):
            if is_in(one.value or one.old, sentence):
                yield sentence, one._replace(start=start, end=start + len(sentence))


def _sentences(text: str) -> list[str]:
    spans = prose.spans(text[:CHARS_MAX])
    return [text[start:end].strip() for start, end in spans]


def called_in(entries: Iterable[Entry]) -> str | None:
    """What the person is called in a conversation: the name of the first user message, or "".

    None if there is no user message: the first one to speak is the person, others are not. Notes
    about the person say the name themselves.
    """
    for entry in entries:
        if _source(entry.message) == MEMORY and entry.erased_at is None:
            return named_person(_sentences(marks.said(entry.message)))
        if entry.message.role == "user" and entry.erased_at is None:
            return entry.message.name or ""
    return None


def _sentence(text: str, one: Statement) -> str:
    """The sentence that states it, word for word."""
    for start, end in prose.spans(text):
        if start <= one.start < end:
            return text[start:end].strip()
    return ""
