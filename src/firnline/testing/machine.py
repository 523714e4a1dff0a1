"""A Hypothesis state machine: random steps on a store and a reference, compared each time."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from firnline.digest.withdraw import withdraw
from firnline.errors import FirnlineError
from firnline.log.chain import Audit
from firnline.log.entry import Card, Digest, Erasure, Idempotency, Key, Lease
from firnline.log.message import Message
from firnline.protocols import Clock, Store
from firnline.store.ram import RamStore
from firnline.testing.drafts import START, Ticking, draft

MakeStore = Callable[[Path, Clock], Store]

_KEYS = st.sampled_from([Key(tenant, name) for tenant in "ab" for name in ("x", "y")])
_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
_MESSAGES = st.builds(
    Message.user,
    st.one_of(_TEXTS, st.sampled_from(["red rope", "東京", "the tent"])),
    name=st.one_of(st.none(), st.just("Ana")),
    metadata=st.dictionaries(st.text("ab", max_size=2), st.integers(), max_size=2),
)
_SEQS = st.integers(-1, 25)
_CARD_NAMES = st.sampled_from(["", "a", "ab", "b", "é"])
_CARDS = st.builds(
    Card,
    tenant=st.sampled_from(["", "a", "b"]),
    kind=st.sampled_from("kl"),
    name=_CARD_NAMES,
    body=st.binary(max_size=3),
    conversation=st.sampled_from([None, "x", "y", "z"]),
)


def store_machine(make_store: MakeStore) -> type[RuleBasedStateMachine]:
    """A state machine class that compares the stores of `make_store` with the reference."""

    class StoreMachine(_StoreMachine):
        def make_store(self, folder: Path, clock: Clock) -> Store:
            return make_store(folder, clock)

    return StoreMachine


class _StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp(prefix="firnline-machine-"))
        self._clock = Ticking()
        self._runner = asyncio.Runner()
        self._model = RamStore(clock=self._clock)
        self._store = self.make_store(self._folder, self._clock)
        self._leases: list[dict[Store, Lease]] = []
        self._run(self._model.open())
        self._run(self._store.open())

    def make_store(self, folder: Path, clock: Clock) -> Store:
        raise NotImplementedError

    def teardown(self) -> None:
        self._run(self._store.close())
        self._runner.close()
        shutil.rmtree(self._folder)

    def _run(self, awaitable: Awaitable[Any]) -> Any:
        async def call() -> Any:
            return await awaitable

        return self._runner.run(call())

    def _both(self, step: Callable[[Store], Awaitable[Any]]) -> Any:
        """Run a step on both stores; they must return the same result or raise the same error."""
        results = [self._outcome(step, store) for store in self._stores()]
        assert results[0] == results[1]
        return results[1]

    def _stores(self) -> tuple[Store, Store]:
        return self._model, self._store

    def _outcome(self, step: Callable[[Store], Awaitable[Any]], store: Store) -> Any:
        try:
            return self._run(step(store))
        except FirnlineError as error:
            return type(error), {**error.context, "fence": 0}

    @rule(
        key=_KEYS,
        messages=st.lists(_MESSAGES, min_size=1, max_size=4),
        tokens=st.integers(0, 9),
        expected_seq=st.one_of(st.none(), st.integers(0, 6)),
        name=st.one_of(st.none(), st.sampled_from(["k1", "k2"])),
        fingerprint=st.sampled_from("fg"),
        pins=st.integers(0, 15),
    )
    def append(self, key: Key, messages: list[Message], tokens: int, **given: Any) -> None:
        pins = [bool(given["pins"] >> i & 1) for i in range(len(messages))]
        said = zip(messages, pins, strict=True)
        items = [draft(message, tokens=tokens, pinned=pinned) for message, pinned in said]
        name = given["name"] and Idempotency(given["name"], given["fingerprint"])
        expected = given["expected_seq"]
        self._both(lambda s: s.append(key, items, expected_seq=expected, idempotency=name))

    @rule(key=_KEYS, first=_SEQS, last=st.one_of(st.none(), _SEQS), limit=st.integers(0, 9))
    def read(self, key: Key, first: int, last: int | None, limit: int) -> None:
        self._both(lambda s: s.read(key, first, last))
        self._both(lambda s: s.read(key, first, last, limit))

    @rule(key=_KEYS, tokens_max=st.integers(0, 60), first=_SEQS, last=_SEQS)
    def count(self, key: Key, tokens_max: int, first: int, last: int) -> None:
        self._both(lambda s: s.newest(key, tokens_max))
        self._both(lambda s: s.tokens_between(key, first, last))

    @rule(key=_KEYS, first=_SEQS, last=_SEQS)
    def archive(self, key: Key, first: int, last: int) -> None:
        async def entries(store: Store) -> int:
            return (await store.archive(key, first, last)).entries

        self._both(entries)

    @rule(key=_KEYS)
    def restore(self, key: Key) -> None:
        self._both(lambda s: s.restore(key, 0, 10**6))

    @rule(key=_KEYS, project=st.sampled_from([None, "p", "q"]), strategy=st.booleans())
    def describe(self, key: Key, project: str | None, strategy: bool) -> None:
        chosen = {"s": project} if strategy else None
        about = {"metadata": {"p": project}, "strategy": chosen}
        self._both(lambda s: s.describe(key, project=project, person=project, **about))  # type: ignore[arg-type]

    @rule(key=_KEYS, seq=_SEQS, pinned=st.booleans())
    def pin(self, key: Key, seq: int, pinned: bool) -> None:
        self._both(lambda s: s.pin(key, seq, pinned=pinned))

    @rule(key=_KEYS, minute=st.integers(0, 3), postpone=st.booleans())
    def owe(self, key: Key, minute: int, postpone: bool) -> None:
        due = START + timedelta(minutes=minute)
        self._both(lambda s: s.mark_pending(key, due, postpone=postpone))

    @rule(key=_KEYS, last_seq=_SEQS)
    def settle(self, key: Key, last_seq: int) -> None:
        self._both(lambda s: s.clear_pending(key, last_seq))

    @rule(minute=st.integers(0, 3), limit=st.integers(0, 5))
    def owed(self, minute: int, limit: int) -> None:
        now = START + timedelta(minutes=minute)
        self._both(lambda s: s.due(now, limit))
        self._both(lambda s: s.pending(now, stuck_before=now, cards="k"))
        self._both(lambda s: s.pending(now, stuck_before=now, cards="k", tenant="a"))

    @rule(key=_KEYS)
    def erase(self, key: Key) -> None:
        async def erased(store: Store) -> Any:
            return replace(await store.erase(key), segments=0)

        self._both(erased)

    @rule(key=_KEYS, seqs=st.sets(_SEQS, max_size=4), scrub=st.booleans())
    def erase_entries(self, key: Key, seqs: set[int], scrub: bool) -> None:
        async def erased(store: Store) -> Any:
            digests, topics = await store.digests(key), await store.topics(key)
            erasure = Erasure(
                seqs=tuple(sorted(seqs)),
                digests=tuple(withdraw(digests, sorted(seqs), START)),
                version=max((digest.version for digest in digests), default=0),
                revision=topics.revision,
                cards=(("k", "", "a"),),
            )
            done = replace(await store.erase_entries(key, erasure), segments=0)
            if scrub:
                await store.scrub()
            return done

        self._both(erased)

    @rule(query=st.one_of(_TEXTS, st.sampled_from(["rope", "東京", "TENT red"])))
    def search(self, query: str) -> None:
        async def found(store: Store) -> Any:
            hits = await store.search("a", query, limit=1_000)
            return {(hit.conversation, hit.seq) for hit in hits}

        self._both(found)

    @rule(key=_KEYS, seconds=st.sampled_from([5, 50]))
    def lease(self, key: Key, seconds: int) -> None:
        taken: dict[Store, Lease] = {}

        async def take(store: Store) -> Any:
            lease = await store.lease(key, "w", seconds)
            if lease is None:
                return None
            taken[store] = lease
            return replace(lease, fence=0)  # fences only have to increase, not to be equal

        self._both(take)
        if taken:
            self._leases.append(taken)

    @rule(seconds=st.sampled_from([1, 20]))
    def wait(self, seconds: int) -> None:
        self._clock.pass_(seconds)

    @rule(data=st.data(), base=st.sampled_from([None, 1, 2]), completed=st.booleans())
    def digest(self, data: st.DataObject, base: int | None, completed: bool) -> None:
        if not self._leases:
            return
        leases = data.draw(st.sampled_from(self._leases))
        wanted = Digest(version=0, first_seq=0, last_seq=3, base=base)
        begun = self._both(lambda s: s.begin_digest(leases[s], wanted))
        if isinstance(begun, Digest) and completed:
            done = replace(begun, status="completed", text="x")
            self._both(lambda s: s.finish_digest(leases[s], done))

    @rule(data=st.data(), version=st.integers(1, 3))
    def undo(self, data: st.DataObject, version: int) -> None:
        if self._leases:
            leases = data.draw(st.sampled_from(self._leases))
            self._both(lambda s: s.undo_digest(leases[s], version))
            self._both(lambda s: s.fail_damaged(leases[s]))

    @rule(key=_KEYS, versions=st.lists(st.integers(-1, 5), max_size=3))
    def digests(self, key: Key, versions: list[int]) -> None:
        self._both(lambda s: s.digests(key, versions))

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if self._leases:
            leases = data.draw(st.sampled_from(self._leases))
            self._both(lambda s: s.release(leases[s]))

    @rule(cards=st.lists(_CARDS, max_size=4), absent=st.booleans())
    def put_cards(self, cards: list[Card], absent: bool) -> None:
        self._both(lambda s: s.put_cards(cards, absent=absent))

    @rule(
        tenant=st.sampled_from([None, "", "a", "b"]),
        names=st.one_of(st.none(), st.lists(_CARD_NAMES, max_size=3)),
        prefix=_CARD_NAMES,
        after=_CARD_NAMES,
        limit=st.integers(0, 5),
    )
    def cards(self, tenant: str | None, names: list[str] | None, **given: Any) -> None:
        self._both(lambda s: s.cards("k", tenant=tenant, names=names, **given))

    @rule(
        tenant=st.sampled_from(["", "a", "b"]),
        names=st.one_of(st.none(), st.lists(_CARD_NAMES, max_size=3)),
        prefix=st.one_of(st.none(), _CARD_NAMES),
    )
    def drop_cards(self, tenant: str, names: list[str] | None, prefix: str | None) -> None:
        self._both(lambda s: s.drop_cards("k", tenant, names=names, prefix=prefix))

    @rule()
    def reopen(self) -> None:
        if not isinstance(self._store, RamStore):
            before = self._store
            self._run(before.close())
            self._store = self.make_store(self._folder, self._clock)
            self._run(self._store.open())
            for leases in self._leases:
                leases[self._store] = leases.pop(before)

    @invariant()
    def heads_pins_digests_cards_and_chains_agree(self) -> None:
        for kind in "kl":
            self._both(lambda s, k=kind: s.cards(k))  # type: ignore[misc]
        for tenant in "ab":
            heads = self._both(lambda s, t=tenant: s.conversations(t))  # type: ignore[misc]
            for head in heads:
                key = Key(tenant, head.conversation)
                self._both(lambda s, k=key: s.digests(k))  # type: ignore[misc]
                self._both(lambda s, k=key: s.newest_digest(k))  # type: ignore[misc]
                self._both(lambda s, k=key: s.pinned(k))  # type: ignore[misc]
                audit = Audit(key)
                audit.take(self._run(self._store.records(key, 0, 10**6)))
                assert audit.close(head).problems == ()
