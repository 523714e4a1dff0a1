"""Separates the items of important data that the log proves from the others. Pure."""

# ruff: noqa: RUF001 - other scripts and their marks are meant

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from firnline.context import marks
from firnline.digest.claims import unsupported
from firnline.digest.items import DICT_FIELDS, FIELDS, Field, Item, SetAside, name_key
from firnline.errors import InputError
from firnline.language import prose
from firnline.log import limits
from firnline.log.entry import Entry
from firnline.log.message import encode_json
from firnline.log.text import Json, clean_json

_STATEMENT_FIELDS: Final = ("user_preferences", "key_decisions", "important_facts")
"""Fields of statements that belong to their speaker: "I live in Porto"."""
_QUOTE_CHARS_MIN: Final = 3


def check_items(
    raw_items: Iterable[Mapping[str, Any]], entries: Sequence[Entry]
) -> tuple[tuple[Item, ...], tuple[SetAside, ...]]:
    """Separate the items that the entries prove from the others.

    An item's quote must occur in the entries it names, ignoring case and spaces; if it names none,
    or wrong ones, the quote is searched. Names, numbers, dates and URLs of its value must occur in
    these entries, too. Recalled and injected text proves nothing. A preference, a decision or a
    fact belongs to the user whose message proves it.
    """
    texts = {entry.seq: marks.said(entry.message) for entry in entries}
    folded = {seq: prose.fold_text(text) for seq, text in texts.items()}
    speakers = {entry.seq: _speaker(entry) for entry in entries}
    items: list[Item] = []
    aside: list[SetAside] = []
    for raw in raw_items:
        item, reason = _prove_item(raw, texts, folded)
        if item is None:
            aside.append({"item": _storable(raw), "reason": reason})
        else:
            items.append(_with_speaker(item, speakers))
    return tuple(items), tuple(aside[-limits.SET_ASIDE_MAX :])


def said_since(items: Sequence[Item], first_seq: int) -> tuple[Item, ...]:
    """The items without what was last said before `first_seq`, but with what was stated."""
    kept = (
        replace(item, seqs=tuple(seq for seq in item.seqs if seq >= first_seq)) for item in items
    )
    return tuple(
        now
        for item, now in zip(items, kept, strict=True)
        if now.seqs or not item.seqs or item.stated
    )


def _prove_item(
    raw: Mapping[str, Any], texts: Mapping[int, str], folded: Mapping[int, str]
) -> tuple[Item | None, str]:
    item, reason = _parse_item(raw)
    if item is None:
        return None, reason
    wanted = prose.fold_text(item.quote).strip("\"'“”‘’«».… ")
    if (
        len(wanted) < min(_QUOTE_CHARS_MIN, len(prose.fold_text(_value_text(item.value))))
        or not wanted
    ):
        return None, "it has no quote"
    named = [seq for seq in item.seqs if wanted in folded.get(seq, "")]
    seqs = named or [seq for seq, text in folded.items() if wanted in text][:1]
    if not seqs:
        return None, "its quote is in none of the messages"
    value = _value_text(item.value)
    # Most values are words of the message itself; only others have to be analyzed.
    if not any(prose.fold_text(value) in folded[seq] for seq in seqs):
        foreign = unsupported(value, [texts[seq] for seq in seqs])
        if sure := [claim for claim in foreign if claim.sure]:
            return None, f"its messages do not mention {sure[0].value}"
    quote = _quote_of(item, [texts[seq] for seq in seqs])
    if not quote:
        return None, "its value is not in its quote"
    return replace(item, seqs=tuple(sorted(set(seqs))), quote=quote), ""


def _quote_of(item: Item, texts: Iterable[str]) -> str:
    """The quote if the value is in its words, else the sentence of a message that has it, or ""."""
    values = [prose.fold_text(value) for value in _texts_in(item.value)]
    if all(value in prose.fold_text(item.quote) for value in values):
        return item.quote
    for text in texts:
        for sentence in (*prose.sentences(text), text):
            if all(value in prose.fold_text(sentence) for value in values):
                return prose.beginning(sentence, limits.ITEM_CHARS_MAX).strip()
    return ""


def _texts_in(value: Json) -> list[str]:
    """The texts that a value is made of."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        return [text for one in value for text in _texts_in(one)]
    return [_value_text(value)]


def _speaker(entry: Entry) -> str:
    """The name of the entry's user, on one line."""
    message = entry.message
    return " ".join((message.name or "").split()) if message.role == "user" else ""


def _with_speaker(item: Item, speakers: Mapping[int, str]) -> Item:
    """The item with its speaker, if it is a statement of a single user."""
    its_speakers = {speakers[seq] for seq in item.seqs}
    if item.field not in _STATEMENT_FIELDS or len(its_speakers) != 1:
        return item
    names = {name_key(name) for name in speakers.values() if name}
    return replace(item, speaker=its_speakers.pop(), in_company=len(names) > 1)


def _parse_item(raw: Mapping[str, Any]) -> tuple[Item | None, str]:
    """The item, or the reason why it is malformed."""
    field = raw.get("field") if isinstance(raw, Mapping) else None
    if field not in FIELDS:
        return None, "it has no such field"
    try:
        value = clean_json(raw.get("value"), "value")
    except InputError as error:
        return None, str(error)
    name = raw.get("name") if field in DICT_FIELDS else ""
    if value in (None, "", [], {}):
        return None, "it has no value"
    if not isinstance(name, str) or (field in DICT_FIELDS and not name.strip()):
        return None, "it has no name"
    raw_seqs = raw.get("seqs")
    seqs = raw_seqs if isinstance(raw_seqs, list | tuple) else [raw_seqs]
    numbers = tuple(seq for seq in seqs if type(seq) is int)
    quote = raw.get("quote")
    quote = quote if isinstance(quote, str) and quote.strip() else _value_text(value)
    if field == "source_urls" and isinstance(value, str):
        value = value.strip()
    return Item(cast("Field", field), name.strip(), value, numbers, quote), ""


def _storable(raw: object) -> Json:
    """The raw item in a form that can be stored."""
    try:
        return clean_json(raw)
    except InputError:
        return str(raw)[: limits.ITEM_CHARS_MAX].encode(errors="replace").decode()


def _value_text(value: Json) -> str:
    """The text of a value."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(map(_value_text, value))
    if isinstance(value, dict):
        return ", ".join(map(_value_text, value.values()))
    return "" if value is None or isinstance(value, bool) else encode_json(value)
