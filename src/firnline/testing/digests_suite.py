"""Store tests for digests: leases, digests, and pending work."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from firnline.errors import ConflictError, InputError, UnknownConversation
from firnline.log.entry import Digest, Key, Lease
from firnline.protocols import Store
from firnline.testing.drafts import FOREIGN, KEY, OTHER, START, Ticking, drafts


async def reopen(store: Store) -> None:
    """Close and reopen the store; stored data must survive this."""
    await store.close()
    await store.open()


class DigestingConformance:
    """The tests that `StoreConformance` inherits."""

    # -- leases and digests -------------------------------------------------------------------

    @pytest.mark.promise("one-digester")
    @pytest.mark.requirement("E6")
    async def test_one_of_many_gets_the_lease(self, store: Store) -> None:
        await store.append(KEY, drafts(["a"]))
        tries = [store.lease(KEY, f"worker {i}", 60) for i in range(20)]
        leases = [lease for lease in await asyncio.gather(*tries) if lease is not None]
        assert len(leases) == 1
        assert await store.lease(KEY, "late", 60) is None
        await store.release(leases[0])
        after = await store.lease(KEY, "late", 60)
        assert after is not None
        assert after.fence > leases[0].fence

    @pytest.mark.promise("one-digester")
    @pytest.mark.requirement("E6")
    async def test_a_lease_past_its_time_is_taken_over_once(
        self, store: Store, clock: Ticking
    ) -> None:
        await store.append(KEY, drafts(["a"]))
        old = await store.lease(KEY, "paused", 300)
        assert old is not None
        clock.pass_(299)
        assert await store.lease(KEY, "new", 300) is None
        clock.pass_(2)
        tries = [store.lease(KEY, f"new {i}", 300) for i in range(5)]
        winners = [lease for lease in await asyncio.gather(*tries) if lease is not None]
        assert len(winners) == 1
        assert winners[0].fence > old.fence
        with pytest.raises(ConflictError):
            await store.renew(old, 300)
        await store.release(old)
        assert await store.lease(KEY, "another", 300) is None

    @pytest.mark.promise("one-digester")
    async def test_a_renewed_lease_lasts_longer(self, store: Store, clock: Ticking) -> None:
        await store.append(KEY, drafts(["a"]))
        lease = await store.lease(KEY, "w", 10)
        assert lease is not None
        clock.pass_(9)
        lease = await store.renew(lease, 10)
        clock.pass_(9)
        assert await store.lease(KEY, "other", 10) is None
        assert lease.expires_at == clock.now + timedelta(seconds=1)

    @pytest.mark.promise("one-digester")
    async def test_a_lease_of_a_wrong_clock_is_not_honored(
        self, store: Store, clock: Ticking
    ) -> None:
        await store.append(KEY, drafts(["a"]))
        clock.pass_(365 * 86_400)
        wrong = await store.lease(KEY, "w", 60)
        clock.pass_(-365 * 86_400)
        right = await store.lease(KEY, "other", 60)
        assert wrong is not None
        assert right is not None
        assert right.fence > wrong.fence
        assert right.expires_at == clock.now + timedelta(seconds=60)
        with pytest.raises(ConflictError):
            await store.renew(wrong, 60)
        assert await store.lease(KEY, "third", 60) is None

    async def test_what_a_wrong_clock_postponed_is_due(self, store: Store) -> None:
        for key in (KEY, OTHER):
            await store.append(key, drafts("a"))
        await store.mark_pending(KEY, START + timedelta(days=365))
        await store.mark_pending(OTHER, START + timedelta(minutes=50))
        assert await store.due(START) == [KEY]
        assert await store.due(START + timedelta(minutes=50)) == [OTHER, KEY]
        assert await store.due(START + timedelta(days=900), limit=1) == [OTHER]
        assert await store.clear_pending(KEY, 0)
        assert await store.due(START) == []

    async def test_a_lease_needs_a_conversation_and_a_sane_length(self, store: Store) -> None:
        with pytest.raises(UnknownConversation):
            await store.lease(KEY, "w", 10)
        await store.append(KEY, drafts(["a"]))
        for seconds in (0, -1, 10**9):
            with pytest.raises(InputError):
                await store.lease(KEY, "w", seconds)

    @pytest.mark.promise("digests-additive")
    @pytest.mark.requirement("E3")
    async def test_digests_form_a_chain_beside_the_log(self, store: Store, clock: Ticking) -> None:
        await store.append(KEY, drafts("abcdef"))
        before = await store.read(KEY)
        first = await self._digest(store, base=None, first_seq=0, last_seq=3, text="abcd")
        second = await self._digest(store, base=1, first_seq=0, last_seq=5, text="abcdef")
        assert (first.version, second.version) == (1, 2)
        assert (second.base, second.status, second.created_at) == (1, "completed", clock.now)
        assert await store.digests(KEY) == [first, second]
        assert await store.read(KEY) == before

    async def _digest(self, store: Store, *, base: int | None, **span: object) -> Digest:
        lease = await self._lease(store)
        text = str(span.pop("text"))
        wanted = Digest(version=0, base=base, made_by="test", **span)  # type: ignore[arg-type]
        begun = await store.begin_digest(lease, wanted)
        assert begun.status == "processing"
        done = replace(begun, status="completed", text=text, data={"x": [1]}, receipt={"lost": []})
        done = await store.finish_digest(lease, replace(done, tokens=3, milliseconds=12))
        await store.release(lease)
        return done

    @pytest.mark.promise("one-digester")
    @pytest.mark.requirement("E6")
    async def test_a_worker_that_comes_back_late_is_refused(
        self, store: Store, clock: Ticking
    ) -> None:
        await store.append(KEY, drafts("abcdef"))
        old = await store.lease(KEY, "paused", 10)
        assert old is not None
        digest = Digest(version=0, first_seq=0, last_seq=3)
        begun = await store.begin_digest(old, digest)
        clock.pass_(11)
        new = await store.lease(KEY, "new", 10)
        assert new is not None
        for lease in (old, new):  # the first is not the newest, the second did not begin it
            with pytest.raises(ConflictError):
                await store.finish_digest(lease, replace(begun, status="completed", text="late"))
        again = await store.begin_digest(new, digest)
        done = await store.finish_digest(new, replace(again, status="completed", text="in time"))
        with pytest.raises(ConflictError):
            await store.begin_digest(old, digest)
        abandoned, kept = await store.digests(KEY)
        assert (abandoned.status, abandoned.text, kept) == ("failed", "", done)
        assert abandoned.error

    @pytest.mark.promise("one-digester")
    async def test_a_digest_continues_the_newest_completed_one(self, store: Store) -> None:
        await store.append(KEY, drafts("abcdef"))
        await self._digest(store, base=None, first_seq=0, last_seq=1, text="ab")
        lease = await store.lease(KEY, "w", 60)
        assert lease is not None
        for base in (None, 0, 2):
            wrong = Digest(version=0, first_seq=0, last_seq=3, base=base)
            with pytest.raises(ConflictError):
                await store.begin_digest(lease, wrong)

    async def test_a_digest_is_finished_once_and_never_empty(self, store: Store) -> None:
        await store.append(KEY, drafts("abcdef"))
        lease = await store.lease(KEY, "w", 60)
        assert lease is not None
        begun = await store.begin_digest(lease, Digest(version=0, first_seq=0, last_seq=3))
        for wrong in (replace(begun, text="x"), replace(begun, status="completed", text=" ")):
            with pytest.raises(InputError):
                await store.finish_digest(lease, wrong)
        failed = await store.finish_digest(lease, replace(begun, status="failed", error="model"))
        with pytest.raises(ConflictError):
            await store.finish_digest(lease, replace(begun, status="completed", text="x"))
        assert await store.digests(KEY) == [failed]

    async def test_digests_can_be_put_into_a_conversation_without_any(self, store: Store) -> None:
        done = Digest(version=3, first_seq=0, last_seq=1, status="completed", text="x")
        with pytest.raises(UnknownConversation):
            await store.put_digests(KEY, [done])
        await store.append(KEY, drafts("ab"))
        await store.put_digests(KEY, [done])
        assert await store.digests(KEY) == [done]
        with pytest.raises(ConflictError):
            await store.put_digests(KEY, [done])

    @pytest.mark.promise("digests-additive")
    async def test_every_field_of_a_digest_is_read_back(self, store: Store) -> None:
        await store.append(KEY, drafts("abcdef"))
        await self._digest(store, base=None, first_seq=0, last_seq=1, text="ab")
        lease = await self._lease(store)
        wanted = Digest(version=0, base=1, first_seq=0, last_seq=5, layer=2, strategy="slide")
        begun = await store.begin_digest(lease, replace(wanted, beside=(1,), parts=(3, 1)))
        done = replace(begun, status="completed", text="東京", data={"x": [1]}, receipt={"y": 2.5})
        costs = {"tokens": 3, "calls": 2, "spent_tokens": 900, "milliseconds": 12}
        done = await store.finish_digest(lease, replace(done, made_by="m", **costs))  # type: ignore[arg-type]
        await reopen(store)
        (read,) = await store.digests(KEY, [2])
        assert read == done == await store.newest_digest(KEY)
        assert (read.layer, read.beside, read.parts, read.strategy) == (2, (1,), (3, 1), "slide")
        assert (read.calls, read.spent_tokens) == (2, 900)

    async def _lease(self, store: Store, seconds: float = 60) -> Lease:
        lease = await store.lease(KEY, "w", seconds)
        assert lease is not None
        return lease

    async def test_digests_are_asked_for_by_version(self, store: Store) -> None:
        await store.append(KEY, drafts("ab"))
        await store.append(FOREIGN, drafts("ab"))
        made = [
            Digest(version=version, first_seq=0, last_seq=1, status="failed", error=f"{version}")
            for version in (1, 2, 5, 7)
        ]
        await store.put_digests(KEY, made)
        for asked, expected in (
            ([], []),
            ([5], [5]),
            ([7, 1, 7], [1, 7]),
            ([-1, 0, 2, 3, 1 << 32, 1 << 70], [2]),
            (range(100), [1, 2, 5, 7]),
        ):
            found = await store.digests(KEY, asked)
            assert found == [item for item in made if item.version in expected], asked
            assert await store.digests(FOREIGN, asked) == []

    async def test_the_newest_digest_is_the_newest_completed_one(
        self, store: Store, clock: Ticking
    ) -> None:
        await store.append(KEY, drafts("abcdef"))
        await store.append(FOREIGN, drafts("ab"))
        assert await store.newest_digest(KEY) is None
        first = await self._digest(store, base=None, first_seq=0, last_seq=1, text="ab")
        assert await store.newest_digest(KEY) == first
        second = await self._digest(store, base=1, first_seq=0, last_seq=2, text="abc")
        lease = await self._lease(store, 10)
        begun = await store.begin_digest(lease, Digest(version=0, base=2, first_seq=0, last_seq=3))
        assert await store.newest_digest(KEY) == second
        await store.finish_digest(lease, replace(begun, status="failed", error="model"))
        await store.begin_digest(lease, Digest(version=0, base=2, first_seq=0, last_seq=3))
        clock.pass_(11)
        assert await store.newest_digest(KEY) == second
        await store.undo_digest(await self._lease(store), 2)
        assert await store.newest_digest(KEY) == first
        assert await store.newest_digest(FOREIGN) is None

    @pytest.mark.promise("digests-additive")
    async def test_an_undone_digest_stays_and_the_one_before_is_in_force(
        self, store: Store
    ) -> None:
        await store.append(KEY, drafts("abcdef"))
        before = await store.read(KEY)
        first = await self._digest(store, base=None, first_seq=0, last_seq=1, text="ab")
        second = await self._digest(store, base=1, first_seq=0, last_seq=2, text="abc")
        lease = await self._lease(store)
        undone = await store.undo_digest(lease, 2)
        assert undone == replace(second, status="undone")
        await store.release(lease)
        await reopen(store)
        assert await store.digests(KEY) == [first, undone]
        third = await self._digest(store, base=1, first_seq=0, last_seq=3, text="abcd")
        assert third.version == 3
        lease = await self._lease(store)
        for version in (3, 1):
            await store.undo_digest(lease, version)
        await store.release(lease)
        assert await store.newest_digest(KEY) is None
        fourth = await self._digest(store, base=None, first_seq=0, last_seq=0, text="a")
        assert [item.status for item in await store.digests(KEY)] == ["undone"] * 3 + ["completed"]
        assert fourth.version == 4
        assert await store.read(KEY) == before

    async def test_only_the_newest_completed_digest_is_undone(self, store: Store) -> None:
        await store.append(KEY, drafts("abcdef"))
        lease = await self._lease(store)
        with pytest.raises(ConflictError):
            await store.undo_digest(lease, 1)
        await store.release(lease)
        await self._digest(store, base=None, first_seq=0, last_seq=1, text="ab")
        await self._digest(store, base=1, first_seq=0, last_seq=2, text="abc")
        lease = await self._lease(store)
        begun = await store.begin_digest(lease, Digest(version=0, base=2, first_seq=0, last_seq=3))
        await store.finish_digest(lease, replace(begun, status="failed"))
        await store.begin_digest(lease, Digest(version=0, base=2, first_seq=0, last_seq=3))
        before = await store.digests(KEY)
        for version in (-1, 0, 1, 3, 4, 5, 1 << 32):
            with pytest.raises(ConflictError):
                await store.undo_digest(lease, version)
        assert await store.digests(KEY) == before
        await store.undo_digest(lease, 2)
        with pytest.raises(ConflictError):
            await store.undo_digest(lease, 2)

    @pytest.mark.promise("one-digester")
    async def test_undoing_needs_the_newest_lease(self, store: Store, clock: Ticking) -> None:
        for key in (KEY, OTHER):
            await store.append(key, drafts("abcdef"))
        done = await self._digest(store, base=None, first_seq=0, last_seq=1, text="ab")
        old = await self._lease(store, 10)
        clock.pass_(11)
        new = await self._lease(store, 10)
        # Fences may be times, so those of two conversations may be the same.
        elsewhere = await store.lease(OTHER, "another", 10)
        assert elsewhere is not None
        for wrong in (old, replace(new, owner="x"), elsewhere, replace(elsewhere, key=KEY)):
            with pytest.raises(ConflictError):
                await store.undo_digest(wrong, 1)
        await store.release(new)
        with pytest.raises(ConflictError):
            await store.undo_digest(new, 1)
        assert await store.digests(KEY) == [done]
        last = await self._lease(store)
        await store.erase(KEY)
        with pytest.raises(ConflictError):
            await store.undo_digest(last, 1)
        await store.append(KEY, drafts("ab"))
        with pytest.raises(ConflictError):
            await store.undo_digest(last, 1)

    @pytest.mark.promise("one-digester")
    async def test_one_of_many_undoes_a_digest(self, store: Store) -> None:
        await store.append(KEY, drafts("abcdef"))
        for base in (None, 1, 2):
            await self._digest(store, base=base, first_seq=0, last_seq=1, text="ab")
        lease = await self._lease(store)
        tries = [store.undo_digest(lease, 3) for _ in range(10)]
        results = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(isinstance(result, ConflictError) for result in results) == 9
        newest = await store.newest_digest(KEY)
        assert newest is not None
        assert newest.version == 2

    @pytest.mark.promise("one-digester")
    async def test_what_continues_an_undone_digest_can_only_fail(self, store: Store) -> None:
        await store.append(KEY, drafts("abcdef"))
        await self._digest(store, base=None, first_seq=0, last_seq=1, text="ab")
        lease = await self._lease(store)
        begun = await store.begin_digest(lease, Digest(version=0, base=1, first_seq=0, last_seq=3))
        await store.undo_digest(lease, 1)
        with pytest.raises(ConflictError):
            await store.finish_digest(lease, replace(begun, status="completed", text="x"))
        failed = await store.finish_digest(lease, replace(begun, status="failed", error="undone"))
        assert (await store.digests(KEY))[-1] == failed

    @pytest.mark.promise("one-digester")
    async def test_digests_that_are_whole_are_not_set_aside(
        self, store: Store, clock: Ticking
    ) -> None:
        await store.append(KEY, drafts("abcdef"))
        old = await self._lease(store, 10)
        assert await store.fail_damaged(old) == 0
        begun = await store.begin_digest(old, Digest(version=0, first_seq=0, last_seq=1))
        await store.finish_digest(old, replace(begun, status="completed", text="ab"))
        await store.begin_digest(old, Digest(version=0, base=1, first_seq=0, last_seq=3))
        before = await store.digests(KEY)
        assert await store.fail_damaged(old) == 0
        assert await store.digests(KEY) == before
        clock.pass_(11)
        await self._lease(store)
        with pytest.raises(ConflictError):
            await store.fail_damaged(old)

    # -- pending work -------------------------------------------------------------------------

    async def test_what_is_owed_is_due_from_its_time_on(self, store: Store) -> None:
        await store.append(KEY, drafts("a"))
        assert await store.due(START) == []
        due = START + timedelta(microseconds=1)
        await store.mark_pending(KEY, due)
        assert await store.due(START) == []
        assert await store.due(due) == [KEY]
        await reopen(store)
        assert await store.due(START) == []
        assert await store.due(START + timedelta(days=900)) == [KEY]

    async def test_what_is_owed_keeps_its_time_unless_postponed(self, store: Store) -> None:
        await store.append(KEY, drafts("a"))
        early, middle, late = (START + timedelta(minutes=minute) for minute in (1, 2, 3))
        await store.mark_pending(KEY, middle)
        for due in (early, late):
            await store.mark_pending(KEY, due)
            assert await store.due(early) == []
            assert await store.due(middle) == [KEY]
        await store.mark_pending(KEY, late, postpone=True)
        assert await store.due(middle) == []
        assert await store.due(late) == [KEY]
        await store.mark_pending(KEY, early)
        assert await store.due(middle) == []
        await store.append(OTHER, drafts("a"))
        await store.mark_pending(OTHER, middle, postpone=True)
        assert await store.due(middle) == [OTHER]

    async def test_the_longest_due_of_all_tenants_come_first(self, store: Store) -> None:
        minutes = {KEY: 3, OTHER: 1, FOREIGN: 2, Key("third", "x"): 9}
        for key, minute in minutes.items():
            await store.append(key, drafts("a"))
            await store.mark_pending(key, START + timedelta(minutes=minute))
        now = START + timedelta(minutes=3)
        assert await store.due(now) == [OTHER, FOREIGN, KEY]
        assert await store.due(now, limit=2) == [OTHER, FOREIGN]
        for limit in (0, -1):
            assert await store.due(now, limit=limit) == []
        late, third = START + timedelta(minutes=9), "third"
        for tenants, due in (
            ([KEY.tenant], [OTHER, KEY]),
            ({FOREIGN.tenant, third, "nobody's"}, [FOREIGN, Key(third, "x")]),
            ([], []),
        ):
            assert await store.due(late, tenants=tenants) == due
        assert await store.due(late, limit=1, tenants=[FOREIGN.tenant, third]) == [FOREIGN]
        assert await store.clear_pending(OTHER, 0)
        assert await store.due(now) == [FOREIGN, KEY]

    async def test_nothing_is_owed_for_what_does_not_exist(self, store: Store) -> None:
        await store.append(FOREIGN, drafts("a"))
        for postpone in (True, False):
            await store.mark_pending(KEY, START, postpone=postpone)
        assert await store.clear_pending(KEY, 0)
        assert await store.clear_pending(KEY, -1)
        assert await store.head(KEY) is None
        await store.append(KEY, drafts("a"))
        assert await store.due(START) == []

    async def test_only_who_has_seen_all_entries_settles(self, store: Store) -> None:
        await store.append(KEY, drafts("abc"))
        await store.append(FOREIGN, drafts("a"))
        for i, key in enumerate((KEY, FOREIGN)):
            await store.mark_pending(key, START - timedelta(minutes=2 - i))
        for last_seq in (-1, 0, 1):
            assert not await store.clear_pending(KEY, last_seq)
            assert await store.due(START) == [KEY, FOREIGN]
        for last_seq in (2, 3, 2):
            assert await store.clear_pending(KEY, last_seq)
            assert await store.due(START) == [FOREIGN]
        await store.append(KEY, drafts("d"))
        assert not await store.clear_pending(KEY, 2)
        await store.mark_pending(KEY, START + timedelta(minutes=1))
        assert await store.due(START + timedelta(minutes=1)) == [FOREIGN, KEY]

    async def test_settling_never_forgets_an_append_it_has_not_seen(self, store: Store) -> None:
        async def append(text: str) -> None:
            await store.append(KEY, drafts([text]))
            await store.mark_pending(KEY, START)

        await append("a")
        for i in range(20):
            await asyncio.gather(
                store.clear_pending(KEY, i), append("b"), store.clear_pending(KEY, i)
            )
            assert await store.due(START) == [KEY]

    async def test_digesting_and_owing_do_not_touch_each_other(self, store: Store) -> None:
        await store.append(KEY, drafts("ab"))
        await store.mark_pending(KEY, START)
        head = await store.head(KEY)
        await self._digest(store, base=None, first_seq=0, last_seq=1, text="ab")
        assert await store.due(START) == [KEY]
        lease = await self._lease(store)
        assert await store.clear_pending(KEY, 1)
        await store.undo_digest(lease, 1)
        assert (await store.due(START), await store.head(KEY)) == ([], head)
