"""Store tests for erasing some messages of a conversation."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from firnline.errors import ConflictError, InputError, KeyReused, UnknownConversation
from firnline.log.chain import Audit
from firnline.log.entry import ERASED, Card, Digest, EntryDraft, Erasure, Idempotency, Key, Topic
from firnline.protocols import Store, Vector
from firnline.testing.drafts import FOREIGN, KEY, OTHER, START, drafts

TEXTS = [f"word{i} common{i % 2}" for i in range(10)]
LATER = START + timedelta(days=30)
CARDS = (("prompt", "a", "m"), ("draft", "", "z"))


class ErasingConformance:
    """The tests that `StoreConformance` inherits."""

    @pytest.mark.promise("erase-total")
    @pytest.mark.promise("tamper-evident")
    async def test_an_erased_entry_leaves_its_place_in_the_chain(self, store: Store) -> None:
        for key in (KEY, OTHER, FOREIGN):
            await store.append(key, drafts(TEXTS))
        await store.archive(KEY, 0, 6)
        before = await store.records(KEY, 0, 20)
        head = await store.head(KEY)
        erased = await store.erase_entries(KEY, Erasure(seqs=(0, 3, 4, 8)))
        await store.scrub()
        assert (erased.entries, erased.spans) == (4, ((0, 0), (3, 4), (8, 8)))
        assert erased.tokens == sum(before[seq].tokens for seq in (0, 3, 4, 8))
        after = await store.records(KEY, 0, 20)
        assert [record.erased for record in after] == [n in (0, 3, 4, 8) for n in range(10)]
        kept = [(r.seq, r.tokens, r.total, r.hash, r.tokenizer) for r in before]
        assert [(r.seq, r.tokens, r.total, r.hash, r.tokenizer) for r in after] == kept
        assert [r.body for r in after if not r.erased] == [
            r.body for r in before if r.seq not in (0, 3, 4, 8)
        ]
        now = await store.head(KEY)
        assert head is not None
        assert now == replace(head, archived=4)
        audit = Audit(KEY)
        audit.take(after)
        result = audit.close(now)
        assert (result.ok, result.erased) == (True, 4)
        entries = await store.read(KEY)
        assert [e.seq for e in entries if e.erased_at is not None] == [0, 3, 4, 8]
        assert all(e.message == ERASED and e.tokens == 0 for e in entries if e.erased_at)
        assert [e.seq for e in await store.newest(KEY, 10**6)] == list(range(10))
        assert [e.message.text for e in await store.at(KEY, [3, 5])] == ["", TEXTS[5]]
        assert await store.tokens_between(KEY, 0, 9) == head.tokens
        for key in (OTHER, FOREIGN):
            assert [e.message.text for e in await store.read(key)] == TEXTS

    @pytest.mark.promise("erase-total")
    async def test_nothing_finds_an_erased_entry(self, store: Store) -> None:
        await store.append(KEY, drafts(TEXTS))
        await store.pin(KEY, 3)
        await store.pin(KEY, 5)
        assert next(hit.seq for hit in await store.search("acme", "word3")) == 3
        vectors = [Vector(seq, part, b"%d" % seq) for seq in range(10) for part in range(2)]
        await store.put_vectors(KEY, "m", vectors, first_seq=0, next_seq=10)
        erased = await store.erase_entries(KEY, Erasure(seqs=(3, 6)))
        assert erased.vectors == 4
        # Nor by the words of the entry before it.
        assert await store.search("acme", "word3") == []
        assert {hit.seq for hit in await store.search("acme", "common0 common1")} == {
            *range(10)
        } - {3, 6}
        assert [e.seq for e in await store.dated(KEY, START, LATER, 20)] == [0, 1, 2, 4, 5, 7, 8, 9]
        assert [e.seq for e in await store.pinned(KEY)] == [5]
        assert {vector.seq for vector in await store.vectors(KEY, "m", 0, 100)} == {*range(10)} - {
            3,
            6,
        }
        assert await store.vectors_at(KEY, "m", [3]) == []
        await _assert_healthy(store)
        await store.rebuild_index()
        await _assert_healthy(store)
        assert await store.search("acme", "word3") == []
        assert next(hit.seq for hit in await store.search("acme", "word4")) == 4

    async def test_late_work_does_not_bring_an_erased_entry_back(self, store: Store) -> None:
        first = Idempotency("k", "f")
        await store.append(KEY, drafts(TEXTS), idempotency=first)
        await store.append(KEY, drafts(["after"]), idempotency=Idempotency("l", "g"))
        await store.erase_entries(KEY, Erasure(seqs=(2,)))
        with pytest.raises(KeyReused, match="erased"):
            await store.append(KEY, drafts(TEXTS), idempotency=first)
        await _assert_healthy(store)
        again = await store.append(KEY, drafts(["after"]), idempotency=Idempotency("l", "g"))
        assert again.replayed
        vectors = [Vector(seq, 0, b"v") for seq in range(4)]
        assert await store.put_vectors(KEY, "m", vectors, first_seq=0, next_seq=4)
        assert [vector.seq for vector in await store.vectors(KEY, "m", 0, 10)] == [0, 1, 3]
        # It is never archived, and its neighbors are.
        assert (await store.archive(KEY, 0, 5)).entries == 5
        assert [e.archived for e in await store.read(KEY, 0, 5)] == [1, 1, 0, 1, 1, 1]
        assert await store.restore(KEY, 0, 5) == 5
        assert (await store.read(KEY, 2, 2))[0].erased_at is not None

    async def test_what_depends_on_it_is_written_with_it(self, store: Store) -> None:
        await store.append(KEY, drafts(TEXTS))
        done = Digest(
            version=1, first_seq=0, last_seq=5, status="completed", text="t", created_at=START
        )
        await store.put_digests(KEY, [done])
        topic = Topic(id=0, title="word0", created_at=START, last_active_at=START, entries=10)
        members = dict.fromkeys(range(10), 0)
        revision = await store.assign(KEY, [topic], members, revision=0, next_seq=10)
        cards = [
            Card(tenant="acme", kind=kind, name=name, body=b"x", conversation=KEY.conversation)
            for kind, name in (("prompt", "b"), ("prompt", "x"), ("draft", "d"), ("prefix", "c"))
        ]
        await store.put_cards(cards)
        gone = replace(done, status="undone", text="")
        erasure = Erasure(
            seqs=(0,),
            digests=(gone,),
            version=1,
            topics=(replace(topic, title="", entries=9),),
            revision=revision,
            cards=CARDS,
        )
        for stale in (replace(erasure, version=0), replace(erasure, revision=revision - 1)):
            with pytest.raises(ConflictError):
                await store.erase_entries(KEY, stale)
        assert (await store.read(KEY, 0, 0))[0].erased_at is None
        erased = await store.erase_entries(KEY, erasure)
        assert (erased.digests, erased.topics) == (1, 1)
        assert dict(erased.cards) == {"prompt": 1, "draft": 1}
        assert await store.digests(KEY) == [gone]
        assert await store.newest_digest(KEY) is None
        await _assert_healthy(store)
        known = await store.topics(KEY)
        assert known.topics[0].title == ""
        assert known.revision > revision
        assert await store.members(KEY, 0) == list(range(1, 10))
        assert [card.name for card in await store.cards("prompt", tenant="acme")] == ["x"]
        assert len(await store.cards("prefix", tenant="acme")) == 1

    async def test_a_digest_in_progress_cannot_be_finished(self, store: Store) -> None:
        await store.append(KEY, drafts(TEXTS))
        lease = await store.lease(KEY, "w", 60)
        assert lease is not None
        begun = await store.begin_digest(lease, Digest(version=0, first_seq=0, last_seq=5))
        withdrawn = replace(begun, status="undone")
        await store.erase_entries(KEY, Erasure(seqs=(1,), digests=(withdrawn,), version=1))
        with pytest.raises(ConflictError):
            await store.finish_digest(lease, replace(begun, status="completed", text="word1"))

    async def test_an_erasure_is_repeatable_and_checked(self, store: Store) -> None:
        with pytest.raises(UnknownConversation):
            await store.erase_entries(KEY, Erasure(seqs=(0,)))
        await store.append(KEY, drafts(TEXTS))
        for seqs in ((10,), (-1,)):
            with pytest.raises(InputError):
                await store.erase_entries(KEY, Erasure(seqs=seqs))
        first = await store.erase_entries(KEY, Erasure(seqs=(1, 9)))
        known = await store.topics(KEY)
        again = Erasure(seqs=(1, 2, 9), revision=known.revision)
        second = await store.erase_entries(KEY, again)
        assert (first.entries, second.entries) == (2, 1)
        await store.scrub()
        await store.scrub()
        await store.append(KEY, drafts(["new"]))
        assert [e.message.text for e in await store.read(KEY, 8)] == [TEXTS[8], "", "new"]
        await store.close()
        await store.open()
        assert (await store.read(KEY, 9, 9))[0].erased_at == first.erased_at
        await store.erase(KEY)
        assert await store.head(KEY) is None

    @pytest.mark.promise("round-trip")
    async def test_a_copy_of_a_log_keeps_its_tombstones(self, store: Store) -> None:
        await store.append(KEY, drafts(TEXTS))
        await store.erase_entries(KEY, Erasure(seqs=(0, 5, 9)))
        stored = await store.records(KEY, 0, 20)
        originals = drafts(TEXTS)
        copies = [
            EntryDraft(ERASED, r.body, r.tokens, r.tokenizer, hash=r.hash)
            if r.erased
            else originals[r.seq]
            for r in stored
        ]
        await store.erase(KEY)
        await store.append(KEY, copies)
        again = await store.records(KEY, 0, 20)
        assert [replace(r, archived=False) for r in again] == [
            replace(r, archived=False) for r in stored
        ]
        assert await store.search("acme", "system") == []
        await _assert_healthy(store)
        other = Key("acme", "copy")  # another chain
        await store.append(other, [copy._replace(hash="") for copy in copies])
        assert [r.erased for r in await store.records(other, 0, 20)] == [r.erased for r in stored]
        assert len(await store.read(other)) == 10


async def _assert_healthy(store: Store) -> None:
    assert await store.damage(KEY) == []
    broken = [one for one in await store.check(thorough=True) if one.state == "broken"]
    assert not broken, broken
