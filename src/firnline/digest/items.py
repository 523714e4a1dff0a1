"""Important data: facts of a conversation, each with the entries and the quote that prove it.

Items without evidence are set aside and listed; replaced items are kept, so it can be undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from firnline.digest.claims import url_key
from firnline.digest.succession import SpokenStatement, current, outdated
from firnline.errors import InputError, StoreCorrupt
from firnline.language import prose
from firnline.language.names import fold_name
from firnline.language.statements.reader import statements
from firnline.log import limits
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

_SLOT_FIELDS: Final = ("key_decisions", "important_facts")
"""Fields of sentences, which may state what a newer one outdates."""
_WORDS_APART_MAX: Final = 5
"""Words around a statement with which the sentence still says nothing else."""
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
    there, too. `stated`: the application states it, too, so no message replaces it.
    """

    field: Field
    name: str
    value: Json
    seqs: tuple[int, ...]
    quote: str
    superseded_by: int | None = None
    speaker: str = ""
    in_company: bool = False
    stated: bool = False


SetAside: TypeAlias = dict[str, Json]
"""An item without evidence, unchanged, and the reason: ``{"item": {...}, "reason": "..."}``."""


# -- merging ----------------------------------------------------------------------------------


def merge(old: Sequence[Item], new: Sequence[Item]) -> tuple[Item, ...]:
    """Old and new items as one list, in the order of their entries.

    In lists, a known value only gains evidence. In the other fields the newest value of a name is
    in force; the replaced one is kept and marked. What the application states counts as newest. If
    several users speak, no user's preference replaces another's. A newer decision or fact replaces
    an older one about the same if both are plain statements ("I live in Berlin", "I moved to
    Lisbon"; see `language.statements`) and the old one says nothing else. Merging the same items
    again changes nothing. At most `ITEMS_MAX` are kept: the oldest entities are dropped first.
    """
    merged: list[Item] = []
    subjects: dict[tuple[str, ...], _Positions] = {}
    apart = _has_several_speakers((*old, *new))
    for item in (*old, *sorted(new, key=_first_seq)):
        _merge_item(
            merged, subjects.setdefault(_subject(item, apart=apart), _Positions({}, [])), item
        )
    return _drop_excess(_supersede(sorted(merged, key=_first_seq)))


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
    """An item with the evidence of another one of the same value, and the newer quote."""
    newer = bool(one.seqs) and bool(other.seqs) and other.seqs[-1] > one.seqs[-1]
    return replace(
        one,
        seqs=_joined_seqs(one, other),
        quote=other.quote if newer else one.quote,
        speaker=one.speaker or other.speaker,
        in_company=one.in_company or other.in_company,
        stated=_is_stated(one) or (bool(one.seqs) and _is_stated(other)),
    )


def _is_stated(item: Item) -> bool:
    return item.stated or (item.field in LIST_FIELDS and not item.seqs)


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


# -- statements that outdate others -----------------------------------------------------------


def _supersede(items: Sequence[Item]) -> list[Item]:
    """The items, with those marked whose statements are all outdated by newer ones.

    An item that says more stays, as does what the application states. What `restore` has undone,
    which is marked by an older entry than its own, replaces nothing.
    """
    by = _outdated_items(items)
    found = []
    for place, item in enumerate(items):
        if item.field not in _SLOT_FIELDS or _is_undone(item):
            found.append(item)
            continue
        successors = by.get(place, {})
        stated = statements(item.quote)
        words = prose.count_words(item.quote) - sum(
            prose.count_words(item.quote[one.start : one.end]) for one in stated
        )
        whole = stated and len(successors) == len(stated) and words <= _WORDS_APART_MAX
        newest = max((one.seq for one in successors.values()), default=None) if whole else None
        found.append(item if item.superseded_by == newest else replace(item, superseded_by=newest))
    return found


def _outdated_items(items: Sequence[Item]) -> dict[int, dict[SpokenStatement, SpokenStatement]]:
    """The outdated statements of each item, by its position, and what outdates them."""
    places: dict[SpokenStatement, int] = {}
    for place, item in enumerate(items):
        if item.field in _SLOT_FIELDS and item.seqs and not item.stated and not _is_undone(item):
            for one in statements(item.quote):
                places[SpokenStatement(_newest_seq(item), name_key(item.speaker), one)] = place
    found: dict[int, dict[SpokenStatement, SpokenStatement]] = {}
    for old, new in outdated(places).items():
        found.setdefault(places[old], {})[old] = new
    return found


def _is_undone(item: Item) -> bool:
    """Whether `restore` has put an older item in force in its place."""
    return item.superseded_by is not None and item.superseded_by < _newest_seq(item)


def _notes(items: Sequence[Item]) -> dict[int, str]:
    """What items outdate, or what of them is outdated, by position."""
    by = {old: new for pairs in _outdated_items(items).values() for old, new in pairs.items()}
    before: dict[SpokenStatement, list[SpokenStatement]] = {}
    for old in by:
        before.setdefault(current(by, old), []).append(old)
    notes: dict[int, str] = {}
    for place, item in enumerate(items):
        lines = []
        for one in statements(item.quote) if item.field in _SLOT_FIELDS else ():
            mine = SpokenStatement(_newest_seq(item), name_key(item.speaker), one)
            if mine in by:
                new = current(by, mine)
                now = f", now {new.statement.value}" if new.statement.value else ""
                lines.append(f"outdated by message {new.seq}: {_label(mine)}{now}")
            elif mine in before and one.value:
                past = ", ".join(dict.fromkeys(o.statement.value for o in before[mine]))
                label = _label(before[mine][-1]._replace(statement=one), before[mine][-1])
                lines.append(f"{label}, since message {mine.seq}; before: {past}")
        if lines:
            notes[place] = f" ({'; '.join(lines)})"
    return notes


def _label(one: SpokenStatement, of: SpokenStatement | None = None) -> str:
    """A statement as its slot and value: "home city: Lisbon"."""
    slot = (of or one).statement.slot
    subject = (of or one).statement.subject
    return f"{subject} {slot}".strip() + f": {one.statement.value}"


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
    replaced = {
        _subject(item, apart=apart): items[place]
        for place, pairs in _outdated_items(items).items()
        for new in pairs.values()
        for item in items
        if items[place].superseded_by == seq and _states(item, new)
    }
    undone = []
    for item in items:
        subject = _subject(item, apart=apart)
        earlier = back.get(subject) or replaced.get(subject)
        if item.superseded_by == seq:
            undone.append(replace(item, superseded_by=None))
        elif earlier is not None and item.superseded_by is None and _newest_seq(item) == seq:
            undone.append(replace(item, superseded_by=_newest_seq(earlier)))
        else:
            undone.append(item)
    return tuple(undone)


def _states(item: Item, one: SpokenStatement) -> bool:
    return (
        item.field in _SLOT_FIELDS
        and one.seq == _newest_seq(item)
        and one.statement in statements(item.quote)
    )


# -- shapes -----------------------------------------------------------------------------------


def important_data(items: Iterable[Item]) -> dict[str, Any]:
    """The seven fields with the values in force; without items, the empty structure.

    If several users speak, a preference has its speaker after its name, "tea (Ana)", a decision or
    a fact before it, "Ana: I live in Porto". A fact that outdates another has a note: "I moved to
    Lisbon. (home city: Lisbon, since message 41; before: Berlin)".
    """
    data: dict[str, Any] = {name: {} if name in DICT_FIELDS else [] for name in FIELDS}
    all_items = tuple(items)
    notes = _notes(all_items)
    for place, item in enumerate(items_with_speakers(all_items)):
        if item.superseded_by is not None:
            continue
        if item.field in DICT_FIELDS:
            data[item.field][item.name] = item.value
        else:
            data[item.field].append(f"{item.value}{notes[place]}" if place in notes else item.value)
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
    if item.stated:
        data["stated"] = True
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
    stated = fields.get("stated") is True
    return Item(cast("Field", field), *texts, superseded_by, speaker, in_company, stated)
