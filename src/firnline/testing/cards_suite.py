"""Store tests for cards, which edges keep next to the log, and for pending work."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from firnline.errors import InputError, UnknownConversation
from firnline.log import limits
from firnline.log.entry import Card, Digest, Idempotency, Key, Lease, Project, UsedKey
from firnline.protocols import Pending, Store
from firnline.testing.digests_suite import reopen
from firnline.testing.drafts import FOREIGN, KEY, OTHER, START, Ticking, drafts


def _card(name: str, body: bytes = b"", *, kind: str = "draft", tenant: str = "acme") -> Card:
    return Card(tenant=tenant, kind=kind, name=name, body=body)


def _names(cards: Sequence[Card]) -> list[str]:
    return [card.name for card in cards]


async def _begun(store: Store, key: Key, seconds: float) -> Lease:
    lease = await store.lease(key, "w", seconds)
    assert lease is not None
    await store.begin_digest(lease, Digest(version=0, first_seq=0, last_seq=1))
    return lease


class KeepingConformance:
    """The tests that `StoreConformance` inherits."""

    # -- cards --------------------------------------------------------------------------------

    @pytest.mark.promise("byte-exact")
    async def test_a_card_is_read_back_byte_for_byte(self, store: Store, clock: Ticking) -> None:
        await store.append(KEY, drafts(["a"]))
        bodies = [b"", bytes(range(256)), "東京 👩‍👧".encode(), b"x" * limits.CARD_BYTES_MAX]
        given = [_card(f"name/{i} 雪 '%_", body) for i, body in enumerate(bodies)]
        given.append(replace(_card("of a conversation", b"1"), conversation=KEY.conversation))
        assert await store.put_cards(given) == 5
        await reopen(store)
        assert await store.cards("draft", tenant="acme") == [
            replace(card, updated_at=clock.now) for card in given
        ]

    async def test_a_card_is_replaced_or_left_as_it_is(self, store: Store, clock: Ticking) -> None:
        await store.append(KEY, drafts(["a"]))
        assert await store.put_cards([_card("a", b"1")], absent=True) == 1
        before = clock.now
        clock.pass_(5)
        assert await store.put_cards([_card("a", b"2"), _card("b", b"3")], absent=True) == 1
        assert await store.cards("draft", tenant="acme", names=["a"]) == [
            replace(_card("a", b"1"), updated_at=before)
        ]
        new = replace(_card("a", b"4"), conversation=KEY.conversation, updated_at=before)
        assert await store.put_cards([new]) == 1
        assert await store.put_cards([]) == 0
        assert await store.cards("draft", tenant="acme") == [
            replace(new, updated_at=clock.now),
            replace(_card("b", b"3"), updated_at=clock.now),
        ]

    async def test_who_has_something_here_is_known(self, store: Store) -> None:
        assert (await store.tenants(), await store.kinds()) == ([], [])
        await store.append(KEY, drafts(["a"]))
        await store.append(FOREIGN, drafts(["b"]))
        await store.save_project("with a project", Project("p"))
        await store.put_cards([_card("a", kind="Z"), _card("b", tenant=""), _card("c", tenant="é")])
        names = {"", "é", "with a project", KEY.tenant, FOREIGN.tenant}
        assert await store.tenants() == sorted(names, key=str.encode)
        assert await store.kinds() == ["Z", "draft"]
        await store.drop_cards("draft", "é", prefix="")
        await store.drop_cards("draft", "", prefix="")
        await store.erase(FOREIGN)
        assert await store.tenants() == sorted(["with a project", KEY.tenant], key=str.encode)
        assert await store.kinds() == ["Z"]

    async def test_of_one_name_twice_the_last_counts_or_the_first(self, store: Store) -> None:
        twice = [_card("a", b"1"), _card("a", b"2")]
        assert await store.put_cards(twice) == 2
        assert [card.body for card in await store.cards("draft")] == [b"2"]
        await store.drop_cards("draft", "acme", prefix="")
        assert await store.put_cards(twice, absent=True) == 1
        assert [card.body for card in await store.cards("draft")] == [b"1"]

    async def test_one_of_many_writes_a_card_that_is_absent(self, store: Store) -> None:
        tries = [store.put_cards([_card("a", b"%d" % i)], absent=True) for i in range(20)]
        written = await asyncio.gather(*tries)
        assert sorted(written) == [0] * 19 + [1]
        assert [card.body for card in await store.cards("draft")] == [b"%d" % written.index(1)]

    @pytest.mark.promise("tenants-apart")
    async def test_a_card_is_seen_by_its_own_tenant_only(self, store: Store) -> None:
        cards = [_card("same", t.encode(), tenant=t) for t in ("acme", "acme2", "evil", "")]
        await store.put_cards([*cards, _card("same", b"other", kind="key")])
        for card in cards:
            (found,) = await store.cards("draft", tenant=card.tenant)
            assert found.body == card.body
            (named,) = await store.cards("draft", tenant=card.tenant, names=["same"])
            assert named == found
        assert await store.cards("draft", tenant="unknown", names=["same"], prefix="s") == []
        assert await store.drop_cards("draft", "unknown", prefix="") == 0
        assert await store.drop_cards("draft", "acme", names=["same"]) == 1
        left = await store.cards("draft")
        assert [card.tenant for card in left] == ["", "acme2", "evil"], "by tenant, those of all"
        assert len(await store.cards("key", tenant="acme")) == 1

    async def test_cards_are_paged_by_the_bytes_of_their_names(self, store: Store) -> None:
        names = ["a", "a/1", "a/10", "a/2", "a雪", "a\U0001f9ca", "b", "é", "ﬁ"]
        await store.put_cards([_card(name) for name in reversed(names)])
        await store.put_cards([_card("a/3", kind="drafts"), _card("a/3", tenant="evil")])
        assert names == sorted(names, key=str.encode)
        assert _names(await store.cards("draft", tenant="acme")) == names
        assert _names(await store.cards("draft", tenant="acme", limit=2)) == names[:2]
        assert (
            _names(await store.cards("draft", tenant="acme", after="a/10", limit=2)) == names[3:5]
        )
        assert _names(await store.cards("draft", tenant="acme", prefix="a")) == names[:6]
        assert _names(await store.cards("draft", tenant="acme", prefix="a/")) == names[1:4]
        assert _names(await store.cards("draft", prefix="a/", limit=9)) == [*names[1:4], "a/3"]
        found = await store.cards("draft", tenant="acme", prefix="a/", after="a/1")
        assert _names(found) == names[2:4]
        some = ["é", "a", "none", "a", "a/2"]
        assert _names(await store.cards("draft", tenant="acme", names=some)) == ["a", "a/2", "é"]
        found = await store.cards("draft", tenant="acme", names=some, prefix="a", after="a")
        assert _names(found) == ["a/2"]
        assert await store.cards("draft", tenant="acme", names=[]) == []
        for limit in (0, -1):
            assert await store.cards("draft", tenant="acme", limit=limit) == []

    async def test_cards_are_dropped_by_names_or_by_prefix(self, store: Store) -> None:
        names = ["a/1", "a/2", "a/3", "b"]
        await store.put_cards([_card(name) for name in names])
        await store.put_cards([_card("a/1", kind="key"), _card("a/1", tenant="evil")])
        assert await store.drop_cards("draft", "acme", names=["a/2", "a/2", "none"]) == 1
        assert await store.drop_cards("draft", "acme", names=[]) == 0
        assert await store.drop_cards("draft", "acme", names=["a/1", "b"], prefix="a") == 1
        assert await store.drop_cards("draft", "acme", prefix="a") == 1
        await reopen(store)
        assert _names(await store.cards("draft", tenant="acme")) == ["b"]
        with pytest.raises(InputError):
            await store.drop_cards("draft", "acme")
        assert await store.drop_cards("draft", "acme", prefix="") == 1
        assert len(await store.cards("draft")) == len(await store.cards("key")) == 1

    @pytest.mark.promise("erase-total")
    async def test_a_conversation_takes_its_cards_along(self, store: Store) -> None:
        for key in (KEY, OTHER, FOREIGN):
            await store.append(key, drafts(["a"]))
        own = [
            Card(tenant=key.tenant, kind="draft", name=f"{i}", conversation=key.conversation)
            for i, key in enumerate((KEY, OTHER, FOREIGN))
        ]
        moved = replace(own[0], name="moved")
        await store.put_cards([*own, moved, _card("of none")])
        await store.put_cards([replace(moved, conversation=OTHER.conversation)])
        await store.erase(KEY)
        left = await store.cards("draft", tenant="acme")
        assert _names(left) == ["1", "moved", "of none"]
        assert len(await store.cards("draft", tenant="evil")) == 1
        assert await store.put_cards([own[0], own[1]]) == 1, "what was erased does not come back"
        await store.append(KEY, drafts(["again"]))
        assert await store.cards("draft", tenant="acme", names=["0"]) == []
        assert await store.put_cards([own[0]], absent=True) == 1

    @pytest.mark.promise("tenants-apart")
    async def test_a_card_belongs_to_its_own_tenants_conversation(self, store: Store) -> None:
        await store.append(FOREIGN, drafts(["a"]))
        for tenant in ("acme", ""):
            card = replace(_card("a", tenant=tenant), conversation=FOREIGN.conversation)
            assert await store.put_cards([card, replace(card, name="b", conversation="x")]) == 0
        assert await store.cards("draft") == []

    async def test_what_cannot_be_a_card_is_refused_and_nothing_written(self, store: Store) -> None:
        long = "x" * (limits.NAME_CHARS_MAX + 1)
        good = _card("good")
        for wrong in (
            *(replace(good, name=name) for name in ("", long, "a\nb", " a", "\0", "\ud800")),
            *(replace(good, kind=kind) for kind in ("", long, "a\0")),
            *(replace(good, tenant=tenant) for tenant in (long, "\ud800")),
            replace(good, conversation=""),
            replace(good, body=bytes(limits.CARD_BYTES_MAX + 1)),
            replace(good, body="text"),  # type: ignore[arg-type]
        ):
            with pytest.raises(InputError):
                await store.put_cards([good, wrong])
        assert await store.put_cards([_card(long[1:], kind=long[1:], tenant=long[1:])]) == 1
        assert await store.cards("draft") == []

    async def test_what_cannot_be_asked_of_cards_is_refused(self, store: Store) -> None:
        with pytest.raises(InputError):
            await store.cards("draft", after="a")
        long = "x" * (limits.NAME_CHARS_MAX + 1)
        for text in (long, "\0", "\ud800"):
            for wrong in ({"prefix": text}, {"after": text}, {"names": [text]}):
                with pytest.raises(InputError):
                    await store.cards("draft", tenant="acme", **wrong)
            for kind, tenant in ((text, "acme"), ("draft", text), ("", "acme")):
                with pytest.raises(InputError):
                    await store.cards(kind, tenant=tenant)
                with pytest.raises(InputError):
                    await store.drop_cards(kind, tenant, prefix="")
        assert await store.cards("draft", tenant="acme", prefix="a ") == []

    # -- what can be watched ------------------------------------------------------------------

    @pytest.mark.requirement("E7")
    async def test_what_is_pending_can_be_watched(self, store: Store, clock: Ticking) -> None:
        async def seen() -> Pending:
            before = clock.now - timedelta(minutes=5)
            return await store.pending(clock.now, stuck_before=before, cards="draft")

        assert await seen() == Pending()
        for key in (KEY, OTHER, FOREIGN):
            await store.append(key, drafts(["a", "b"]))
        await store.mark_pending(KEY, START + timedelta(days=1))
        await store.mark_pending(FOREIGN, START)
        card = Card(tenant="acme", kind="draft", name="1")
        await store.put_cards([card, replace(card, kind="other"), replace(card, tenant="evil")])
        assert await seen() == Pending(conversations=2, oldest=START, cards=2)
        lease = await _begun(store, KEY, 600)
        await _begun(store, FOREIGN, 60)
        assert await seen() == Pending(
            conversations=2, oldest=START, processing=2, leased=2, cards=2
        )
        one = await store.pending(clock.now, stuck_before=START, cards="draft", tenant="acme")
        day = START + timedelta(days=1)
        assert one == Pending(conversations=1, oldest=day, processing=1, leased=1, cards=1)
        clock.pass_(61)
        assert (await seen())[2:5] == (2, 1, 0)
        clock.pass_(300)
        assert (await seen())[2:5] == (2, 1, 2)
        done = replace((await store.digests(KEY))[0], status="completed", text="x")
        await store.finish_digest(lease, done)
        await store.release(lease)
        await store.clear_pending(FOREIGN, 1)
        assert (await seen())[:5] == (1, START + timedelta(days=1), 1, 0, 1)

    # -- moving to another store --------------------------------------------------------------

    @pytest.mark.promise("round-trip")
    async def test_times_of_another_store_are_kept(self, store: Store, clock: Ticking) -> None:
        long_ago = START - timedelta(days=9_000)
        empty = await store.describe(KEY, created_at=long_ago, project="p")
        assert (empty.created_at, empty.updated_at) == (long_ago, long_ago)
        (entry,) = await store.append(KEY, drafts(["a"]))
        head = await store.describe(KEY, created_at=long_ago + timedelta(microseconds=1))
        assert head.created_at == long_ago + timedelta(microseconds=1)
        assert (head.updated_at, head.project) == (entry.message.created_at, "p")
        cards = [replace(_card(name), updated_at=long_ago) for name in "ab"]
        assert await store.put_cards(cards[:1], keep_times=True) == 1
        assert await store.put_cards([*cards, _card("c")], keep_times=True) == 3
        now = replace(_card("c"), updated_at=clock.now)
        assert await store.cards("draft", tenant="acme") == [*cards, now]

    @pytest.mark.promise("idempotent")
    async def test_idempotency_keys_of_another_store_are_known(self, store: Store) -> None:
        names = ["b", "a b/ü 雪", "Z"]
        for name in names:
            await store.append(KEY, drafts(["x", "y"]), idempotency=Idempotency(name, f"of {name}"))
        used = await store.used_keys(KEY)
        assert [item.idempotency.key for item in used] == sorted(names, key=str.encode)
        assert used[-1] == UsedKey(Idempotency("b", "of b"), 0, 1)
        assert await store.used_keys(KEY, after="Z", limit=1) == used[1:2]
        assert await store.used_keys(KEY, limit=0) == await store.used_keys(OTHER) == []
        await store.append(OTHER, drafts(["x", "y", "x", "y", "x", "y"]))
        await store.put_used_keys(OTHER, used)
        await store.put_used_keys(OTHER, [used[0]._replace(first_seq=0), *used])
        await reopen(store)
        assert await store.used_keys(OTHER) == used
        late = await store.append(OTHER, drafts(["x", "y"]), idempotency=Idempotency("b", "of b"))
        assert (late.replayed, late.seq) == (True, 1)
        with pytest.raises(InputError):
            await store.put_used_keys(OTHER, [used[0]._replace(last_seq=6)])
        with pytest.raises(UnknownConversation):
            await store.put_used_keys(FOREIGN, used)
        await store.erase(OTHER)
        assert await store.used_keys(OTHER) == []
