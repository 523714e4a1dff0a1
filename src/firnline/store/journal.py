"""The journal: what the application stated, so that damaged rows can be restored.

Descriptions, pins, projects, important data, and changes of topics are not in the log. Each is
recorded before it is made, as a card of its conversation or tenant: numbered, chained by hashes,
erased with the conversation. Nothing that a model wrote or recall found is recorded. It is read
only to restore or verify, and replaced by the present state when it gets long.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, NamedTuple

from firnline.digest import items
from firnline.errors import FirnlineError, StoreCorrupt
from firnline.log import limits
from firnline.log.entry import Card, Key, Project, genesis
from firnline.log.message import encode_json
from firnline.log.text import Json
from firnline.protocols import Store
from firnline.store.limits import JOURNAL_PAGE, JOURNAL_TRIES
from firnline.store.seals import ADVICE

KIND: Final = "journal"
_STATE: Final = "state"
_LAST: Final = 10**12  # numbers are counted down from here, so that the newest card sorts first

logger: Final = logging.getLogger("firnline.journal")


@dataclass(frozen=True, slots=True)
class Stated:
    """What the application stated of a conversation, or of a tenant's projects.

    `pinned` maps entries to whether they were pinned or unpinned; entries from `entries` on may be
    pinned by their own messages, too. `data` and `topics` are statements in their order;
    `reverted` are facts of its person.
    """

    project: str | None = None
    metadata: dict[str, Json] = field(default_factory=dict)
    strategy: dict[str, Json] | None = None
    person: str | None = None
    entries: int = 0
    pinned: dict[int, bool] = field(default_factory=dict)
    data: tuple[Mapping[str, Any], ...] = ()
    topics: tuple[Mapping[str, Any], ...] = ()
    reverted: tuple[Mapping[str, Any], ...] = ()
    projects: dict[str, Project] = field(default_factory=dict)


class _Page(NamedTuple):
    number: int
    card: Card | None


async def record(store: Store, key: Key, verb: str, **values: Any) -> None:
    """Add a statement. The first one of a conversation is preceded by its present state.

    Nothing is recorded for a conversation that does not exist.
    """
    for _ in range(JOURNAL_TRIES):
        number, card = await _newest(store, key)
        if card is None or number >= limits.JOURNAL_ENTRIES_MAX + _first_of(card):
            if not await _write_state(store, key, number, card):
                return
            continue
        fields: dict[str, Any] = {"verb": verb, **values}
        if await _put(store, key, number + 1, card, fields) is not False:
            return
    logger.warning("%s: a statement was not recorded: too many others", key.conversation)


async def adopt(store: Store, key: Key) -> None:
    """Record the present state, as the application made it by other ways."""
    number, card = await _newest(store, key)
    await _write_state(store, key, number, card)


async def restart(store: Store, key: Key) -> None:
    """Replace a damaged journal by the present state."""
    await store.drop_cards(KIND, key.tenant, prefix=_prefix(key))
    await adopt(store, key)


async def adopt_new(store: Store, *keys: Key) -> None:
    """Record the present state of those that have no journal yet."""
    for key in keys:
        if await read(store, key) is None:
            await adopt(store, key)


@asynccontextmanager
async def recorded(store: Store, key: Key, verb: str, **values: Any) -> AsyncIterator[None]:
    """Record a statement, then make it; if that fails, the present state is recorded."""
    await record(store, key, verb, **values)
    try:
        yield
    except FirnlineError:
        with suppress(FirnlineError):
            await adopt(store, key)
        raise


async def read(store: Store, key: Key) -> Stated | None:
    """What the journal says; None if there is none. A gap or another hash is `StoreCorrupt`.

    What is read while the journal is replaced is read again: damage stays, a replacement passes.
    """
    cards = await _all(store, key)
    for _ in range(JOURNAL_TRIES):
        if (chain := _chain(cards)) is not None:
            return _replay(chain)
        found = await _all(store, key)
        if found == cards:
            break
        cards = found
    raise StoreCorrupt(f"{key.conversation or key.tenant}: its journal is damaged; {ADVICE}")


def _chain(cards: list[Card]) -> list[dict[str, Any]] | None:
    """The statements from the newest state on, in their order; None if one is missing or changed.

    Cards before the newest state are replaced by it, and may not have been dropped yet.
    """
    chain: list[dict[str, Any]] = []
    for card in cards:  # the newest first
        fields = _decode(card)
        if chain:
            after = chain[-1]
            if after["before"] != _hash(card.body) or after["number"] != fields["number"] + 1:
                return None
        chain.append(fields)
        if fields["first"] == fields["number"]:
            return chain[::-1]
    return None if cards else []


def _replay(chain: list[dict[str, Any]]) -> Stated | None:
    stated: Stated | None = None
    for fields in chain:
        stated = _apply(stated or Stated(), fields["verb"], fields)
    return stated


def _apply(stated: Stated, verb: str, fields: Mapping[str, Any]) -> Stated:
    """The state after a statement."""
    match verb:
        case "state":
            return _from_json(fields)
        case "describe":
            return replace(stated, **_described(fields))
        case "pin":
            return replace(stated, pinned={**stated.pinned, fields["seq"]: fields["pinned"]})
        case "project":
            project = Project(**fields["project"])
            return replace(stated, projects={**stated.projects, project.name: project})
        case "clear" | "undo":
            return replace(stated, data=stated.data[:-1] if verb == "undo" else ())
        case "remember" | "revert":
            return replace(stated, data=(*stated.data, dict(fields)))
        case "revert_fact":
            return replace(stated, reverted=(*stated.reverted, dict(fields)))
        case _:
            return replace(stated, topics=(*stated.topics, dict(fields)))


def _described(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a description sets."""
    names = ("project", "person", "metadata", "strategy")
    given = {name: fields[name] for name in names if fields.get(name) is not None}
    return {**given, "person": None} if given.get("person") == "" else given


# -- the present state ------------------------------------------------------------------------


async def _write_state(store: Store, key: Key, number: int, card: Card | None) -> bool:
    """Replace the journal by the present state; False if there is no conversation."""
    earlier = await read(store, key) if card is not None else None
    stated = await _present(store, key, earlier or Stated())
    if stated is None:
        return False
    written = await _put(store, key, number + 1, None, {"verb": _STATE, **to_json(stated)})
    if written:
        old = [card.name for card in await _all(store, key) if card.name > _name(key, number + 1)]
        if old:
            await store.drop_cards(KIND, key.tenant, names=old)
    return written is not None


async def _present(store: Store, key: Key, earlier: Stated) -> Stated | None:
    if not key.conversation:
        found = await store.projects(key.tenant)
        return Stated(projects={project.name: project for project in found})
    head = await store.head(key)
    if head is None:
        return None
    newest = await store.newest_digest(key)
    known = items.from_json(newest.data) if newest else ()
    own = [item for item in known if not item.seqs]
    data: tuple[Mapping[str, Any], ...] = ()
    if own:
        data = ({"verb": "remember", "items": items.to_json(own)["items"]},)
    return Stated(
        head.project,
        head.metadata,
        head.strategy,
        head.person,
        head.entries,
        {entry.seq: True for entry in await store.pinned(key)},
        data,
        earlier.topics,
        earlier.reverted,
    )


def to_json(stated: Stated) -> dict[str, Any]:
    """The fields of a statement that is the whole state."""
    fields = asdict(stated)
    fields["pinned"] = [[seq, pinned] for seq, pinned in stated.pinned.items()]
    fields["projects"] = [asdict(project) for project in stated.projects.values()]
    return fields


def _from_json(fields: Mapping[str, Any]) -> Stated:
    names = ("project", "metadata", "strategy", "entries")
    return Stated(
        **{name: fields[name] for name in names},
        person=fields.get("person"),
        pinned={seq: pinned for seq, pinned in fields["pinned"]},  # noqa: C416 - checked as pairs
        data=tuple(fields["data"]),
        topics=tuple(fields["topics"]),
        reverted=tuple(fields.get("reverted", ())),
        projects={one["name"]: Project(**one) for one in fields["projects"]},
    )


# -- cards ------------------------------------------------------------------------------------


def _prefix(key: Key) -> str:
    """Fixed in length: a conversation's name may be as long as a card's."""
    return f"{genesis(key).removeprefix('sha256:')}-"


def _name(key: Key, number: int) -> str:
    return f"{_prefix(key)}{_LAST - number:012d}"


async def _newest(store: Store, key: Key) -> _Page:
    found = await store.cards(KIND, tenant=key.tenant, prefix=_prefix(key), limit=1)
    return _Page(_decode(found[0])["number"] if found else 0, found[0] if found else None)


async def _all(store: Store, key: Key) -> list[Card]:
    """All cards, the newest first."""
    found: list[Card] = []
    while True:
        after = found[-1].name if found else ""
        page = await store.cards(
            KIND, tenant=key.tenant, prefix=_prefix(key), after=after, limit=JOURNAL_PAGE
        )
        found += page
        if len(page) < JOURNAL_PAGE:
            return found


async def _put(
    store: Store, key: Key, number: int, before: Card | None, fields: Mapping[str, Any]
) -> bool | None:
    """Write a card; False if there is one of this number, None if it cannot be written."""
    first = number if before is None else _first_of(before)
    chained: dict[str, Any] = {
        "number": number,
        "first": first,
        "before": _hash(before.body) if before else "",
    }
    body = await asyncio.to_thread(lambda: encode_json({**fields, **chained}).encode())
    if len(body) > limits.CARD_BYTES_MAX:
        logger.warning("%s: a statement is too large to be recorded", key.conversation)
        return None
    own = key.conversation or None
    card = Card(tenant=key.tenant, kind=KIND, name=_name(key, number), body=body, conversation=own)
    if await store.put_cards([card], absent=True):
        return True
    there = await store.cards(KIND, tenant=key.tenant, names=[card.name])
    return False if there else None


def _first_of(card: Card) -> int:
    return int(_decode(card)["first"])


def _decode(card: Card) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(card.body)
    return fields


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
