"""Important data: facts of a conversation, each with the entries and the quote that prove it.

Items without evidence are set aside and listed; replaced items are kept, so it can be undone.
"""

# ruff: noqa: RUF001 - other scripts and their marks are meant

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from firnline.context import marks
from firnline.digest.claims import unsupported, url_key
from firnline.errors import InputError, StoreCorrupt
from firnline.language import prose
from firnline.language.names import fold_name
from firnline.log import limits
from firnline.log.entry import Entry
from firnline.log.message import encode_json
from firnline.log.text import Json, clean_json

DictField: TypeAlias = Literal["user_preferences", "document_structure", "custom_fields"]
ListField: TypeAlias = Literal["key_decisions", "important_facts", "source_urls", "entities"]
Field: TypeAlias = DictField | ListField

DICT_FIELDS: Final[tuple[DictField, ...]] = get_args(DictField)
LIST_FIELDS: Final[tuple[ListField, ...]] = get_args(ListField)
FIELDS: Final[tuple[Field, ...]] = (
    "user_preferences",
    "key_decisions",
    "important_facts",
    "source_urls",
    "document_structure",
    "entities",
    "custom_fields",
)
"""The fields of important data, in their order."""

_STATEMENT_FIELDS: Final = ("user_preferences", "key_decisions", "important_facts")
"""Fields of statements that belong to their speaker: "I live in Porto"."""
_QUOTE_CHARS_MIN: Final = 3
_DROPPED_FIRST: Final = ("entities", "superseded", "important_facts", "source_urls")
"""What is dropped first if there are too many items."""


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of important data and its evidence.

    `name` is the subject or attribute in the three fields that are objects, empty in the lists.
    `seqs` are the entries that prove it and `quote` their words; both are empty if the application
    stated it. `superseded_by` is the sequence number of the newer item that replaced it, -1 if that
    came from the application. `speaker` is the name of the user who stated a preference, a decision
    or a fact, empty if the message had none; `in_company` means that users with other names spoke
    there, too.
    """

    field: Field
    name: str
    value: Json
    seqs: tuple[int, ...]
    quote: str
    superseded_by: int | None = None
    speaker: str = ""
    in_company: bool = False


SetAside: TypeAlias = dict[str, Json]
"""An item without evidence, unchanged, and the reason: ``{"item": {...}, "reason": "..."}``."""


# -- evidence ---------------------------------------------------------------------------------


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
    return replace(item, seqs=tuple(sorted(set(seqs)))), ""


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


# -- merging ----------------------------------------------------------------------------------


def merge(old: Sequence[Item], new: Sequence[Item]) -> tuple[Item, ...]:
    """Old and new items as one list, in the order of their entries.

    In lists, a known value only gains evidence. In the other fields the newest value of a name is
    in force; the replaced one is kept and marked. What the application states counts as newest. If
    several users speak, no user's preference replaces another's. Merging the same items again
    changes nothing. At most `ITEMS_MAX` are kept: the oldest entities are dropped first.
    """
    merged: list[Item] = []
    subjects: dict[tuple[str, ...], _Positions] = {}
    apart = _has_several_speakers((*old, *new))
    for item in (*old, *sorted(new, key=_first_seq)):
        _merge_item(
            merged, subjects.setdefault(_subject(item, apart=apart), _Positions({}, [])), item
        )
    return _drop_excess(sorted(merged, key=_first_seq))


def _first_seq(item: Item) -> int:
    return item.seqs[0] if item.seqs else -1


def _newest_seq(item: Item) -> int:
    return item.seqs[-1] if item.seqs else -1


@dataclass(slots=True)
class _Positions:
    """The positions of the items on one subject: of each value, and a heap of those in force."""

    of_value: dict[str, int]
    in_force: list[int]

    def first_in_force(self, merged: Sequence[Item]) -> int | None:
        while self.in_force and merged[self.in_force[0]].superseded_by is not None:
            heappop(self.in_force)
        return self.in_force[0] if self.in_force else None


def _merge_item(merged: list[Item], same: _Positions, item: Item) -> None:
    """Add one item to the list: as evidence for a known value, as a successor, or as new."""
    live = same.first_in_force(merged)
    place = same.of_value.setdefault(value_key(item.field, item.value), len(merged))
    known = place < len(merged)
    if known:
        merged[place] = _add_evidence(merged[place], item)
    else:
        merged.append(item)
        heappush(same.in_force, place)
    if live is None or live == place or item.superseded_by is not None:
        return
    if _replaces(item, merged[live], known=known):
        merged[live] = replace(merged[live], superseded_by=_newest_seq(item))
        merged[place] = replace(merged[place], superseded_by=None)
        heappush(same.in_force, place)
    elif not known:
        merged[place] = replace(merged[place], superseded_by=_newest_seq(merged[live]))


def _add_evidence(one: Item, other: Item) -> Item:
    """An item with the evidence of another one of the same value."""
    return replace(
        one,
        seqs=_joined_seqs(one, other),
        speaker=one.speaker or other.speaker,
        in_company=one.in_company or other.in_company,
    )


def _joined_seqs(one: Item, other: Item) -> tuple[int, ...]:
    """The first and the newest entries of both; more evidence adds nothing."""
    seqs = sorted({*one.seqs, *other.seqs})
    return (*seqs[:1], *seqs[1:][-limits.EVIDENCE_MAX + 1 :])


def _replaces(item: Item, live: Item, *, known: bool) -> bool:
    """Whether it is newer than the live one; what the application states always is.

    Of two values in one message the later one counts, but a known value only comes back if a newer
    message repeats it.
    """
    if not item.seqs:
        return True
    return _newest_seq(item) > _newest_seq(live) or (
        not known and _newest_seq(item) == _newest_seq(live)
    )


def _has_several_speakers(items: Iterable[Item]) -> bool:
    """Whether these are from a conversation of several users with names."""
    all_items = list(items)
    names = {name_key(item.speaker) for item in all_items if item.speaker}
    return len(names) > 1 or any(item.in_company for item in all_items)


def _shown_name(item: Item, *, apart: bool) -> str:
    """An item's display name: with its speaker, if there are several."""
    return f"{item.name} ({item.speaker})" if apart and item.speaker else item.name


def _shown_value(item: Item, *, apart: bool) -> Json:
    """An item's display value: in the lists after its speaker, if there are several."""
    labelled = apart and item.speaker and item.field in LIST_FIELDS
    return f"{item.speaker}: {item.value}" if labelled else item.value


def _subject(item: Item, *, apart: bool) -> tuple[str, ...]:
    """An item's subject: its display name, or in the lists its value."""
    if item.field in DICT_FIELDS:
        return (item.field, name_key(_shown_name(item, apart=apart)))
    return (item.field, value_key(item.field, _shown_value(item, apart=apart)))


def name_key(name: str) -> str:
    """A name for comparison: "Favorite_Color" is "favorite color"."""
    return fold_name(name.replace("_", " ")) or prose.fold_text(name)


def value_key(field: str, value: Json) -> str:
    """A value for comparison: URLs and entities in their plain form, the rest as folded text."""
    if not isinstance(value, str):
        return encode_json(value)
    if field == "source_urls":
        return url_key(value)
    if field == "entities":
        return fold_name(value).removeprefix("the ") or prose.fold_text(value)
    return prose.fold_text(value).rstrip(".!;, ")


def _drop_excess(items: list[Item]) -> tuple[Item, ...]:
    excess = len(items) - limits.ITEMS_MAX
    if excess <= 0:
        return tuple(items)

    def rank(item: Item) -> tuple[int, int]:
        kind = "superseded" if item.superseded_by is not None else item.field
        place = _DROPPED_FIRST.index(kind) if kind in _DROPPED_FIRST else len(_DROPPED_FIRST)
        return place, _newest_seq(item)

    order = sorted(range(len(items)), key=lambda i: (rank(items[i]), i))
    leaving = set(order[:excess])
    return tuple(item for i, item in enumerate(items) if i not in leaving)


def restore(items: Sequence[Item], seq: int) -> tuple[Item, ...]:
    """Undo the replacements by the entry `seq`: the previous values are in force again."""
    apart = _has_several_speakers(items)
    back = {_subject(item, apart=apart): item for item in items if item.superseded_by == seq}
    undone = []
    for item in items:
        earlier = back.get(_subject(item, apart=apart))
        if item.superseded_by == seq:
            undone.append(replace(item, superseded_by=None))
        elif earlier is not None and item.superseded_by is None and _newest_seq(item) == seq:
            undone.append(replace(item, superseded_by=_newest_seq(earlier)))
        else:
            undone.append(item)
    return tuple(undone)


# -- shapes -----------------------------------------------------------------------------------


def important_data(items: Iterable[Item]) -> dict[str, Any]:
    """The seven fields with the values in force; without items, the empty structure.

    If several users speak, a preference has its speaker after its name, "tea (Ana)", a decision or
    a fact before it, "Ana: I live in Porto".
    """
    data: dict[str, Any] = {name: {} if name in DICT_FIELDS else [] for name in FIELDS}
    for item in items_with_speakers(items):
        if item.superseded_by is not None:
            continue
        if item.field in DICT_FIELDS:
            data[item.field][item.name] = item.value
        else:
            data[item.field].append(item.value)
    return data


def items_with_speakers(items: Iterable[Item]) -> tuple[Item, ...]:
    """The items for display: if several users speak, each statement with its speaker."""
    all_items = tuple(items)
    apart = _has_several_speakers(all_items)
    return tuple(
        replace(item, name=_shown_name(item, apart=apart), value=_shown_value(item, apart=apart))
        for item in all_items
    )


def items_from_data(data: Mapping[str, Any]) -> tuple[Item, ...]:
    """Items that the application states, from some or all of the seven fields.

    They need no evidence. An unknown field raises `InputError`.
    """
    if not isinstance(data, Mapping):
        raise InputError(f"important data: expected an object, got {type(data).__name__}")
    items: list[Item] = []
    size = 0
    for field, value in data.items():
        wanted, shape = ("an object", dict) if field in DICT_FIELDS else ("a list", list)
        if field not in FIELDS or not isinstance(value, shape):
            raise InputError(f"{field}: expected one of {', '.join(FIELDS)}, with {wanted} in it")
        clean = clean_json(value, field)
        size += len(encode_json(clean))
        listed: list[Json] = clean if isinstance(clean, list) else []
        named = clean if isinstance(clean, dict) else {}
        items += [Item(field, name, item, (), "") for name, item in named.items()]
        items += [Item(field, "", item, (), "") for item in listed]
    limits.check_size("important data", size)
    return tuple(items)


def to_json(items: Iterable[Item], set_aside: Iterable[SetAside] = ()) -> dict[str, Json]:
    """Items for `Digest.data`."""
    return {"items": [_item_json(item) for item in items], "set_aside": list(set_aside)}


def _item_json(item: Item) -> Json:
    data: dict[str, Json] = {
        "field": item.field,
        "name": item.name,
        "value": item.value,
        "seqs": list(item.seqs),
    }
    # Every context reads this, and most values equal their quote.
    if item.quote != item.value:
        data["quote"] = item.quote
    if item.superseded_by is not None:
        data["superseded_by"] = item.superseded_by
    if item.speaker:
        data["speaker"] = item.speaker
    if item.in_company:
        data["in_company"] = True
    return data


def from_json(data: Mapping[str, Json]) -> tuple[Item, ...]:
    """The items of a `Digest.data`; none if it is empty, `StoreCorrupt` if it is damaged."""
    rows = data.get("items", [])
    if not isinstance(rows, list):
        raise StoreCorrupt("a digest's items are not a list")
    return tuple(map(_item_from_json, rows))


def set_aside(data: Mapping[str, Json]) -> tuple[SetAside, ...]:
    """The set-aside items of a `Digest.data`; `StoreCorrupt` if it is damaged."""
    rows = data.get("set_aside", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise StoreCorrupt("the set-aside items of a digest are not a list of objects")
    return tuple(row for row in rows if isinstance(row, dict))


def _item_from_json(row: Json) -> Item:
    fields: dict[str, Any] = row if isinstance(row, dict) else {}
    field, name, seqs = fields.get("field"), fields.get("name"), fields.get("seqs")
    quote, superseded_by = fields.get("quote", fields.get("value")), fields.get("superseded_by")
    speaker = fields.get("speaker", "")
    valid = (
        field in FIELDS
        and all(isinstance(text, str) for text in (name, quote, speaker))
        and isinstance(seqs, list)
        and all(type(seq) is int for seq in seqs)
        and "value" in fields
        and (superseded_by is None or type(superseded_by) is int)
    )
    if not valid:
        raise StoreCorrupt("an item of a digest's data is damaged")
    in_company = fields.get("in_company") is True
    texts = (str(name), fields["value"], tuple(seqs or ()), str(quote))
    return Item(cast("Field", field), *texts, superseded_by, speaker, in_company)
