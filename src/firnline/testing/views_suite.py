"""Store tests for views of the log: search scopes, vectors, topics."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from firnline.errors import ConflictError, InputError, UnknownConversation
from firnline.log.entry import Digest, Scope, Topic
from firnline.log.message import Message
from firnline.protocols import Clock, Store, TopicAssignments, Vector
from firnline.testing.digests_suite import reopen
from firnline.testing.drafts import FOREIGN, KEY, OTHER, START, Ticking, draft, drafts

MODEL, NEWER = "model-1", "model-2"


def _topic(number: int) -> Topic:
    at = START + timedelta(minutes=number)
    return Topic(
        id=number,
        title=f"topic 東京 {number}",
        created_at=at,
        last_active_at=at,
        importance=0.25,
        tags=("a", "b"),
        model=MODEL,
        vectors=2,
        vector=bytes(range(16)),
    )


class ViewingConformance:
    """The tests that `StoreConformance` inherits."""

    def make_store(self, folder: Path, clock: Clock) -> Store:
        """As in `StoreConformance`."""
        raise NotImplementedError

    # -- reading and searching in part --------------------------------------------------------

    async def test_entries_are_read_by_their_numbers(self, store: Store) -> None:
        await store.append(KEY, drafts([f"t{i}" for i in range(40)]))
        await store.archive(KEY, 5, 20)
        found = await store.at(KEY, [30, 7, 6, 7, 99, -1, 0])
        assert [entry.seq for entry in found] == [0, 6, 7, 30]
        assert [entry.message.text for entry in found] == ["t0", "t6", "t7", "t30"]
        assert await store.at(OTHER, [0]) == []

    @pytest.mark.promise("search-total")
    @pytest.mark.requirement("B4")
    async def test_a_search_keeps_to_its_scope(self, store: Store) -> None:
        said = [
            draft(Message.user("rope one"), minute=0),
            draft(Message.assistant("rope two"), minute=10),
            draft(Message.system("rope three"), minute=20),
            draft(Message.user("rope four"), minute=30),
        ]
        await store.append(KEY, said)
        await store.append(OTHER, drafts(["rope other"]))
        await store.append(FOREIGN, drafts(["rope evil"]))
        await store.describe(OTHER, project="climbing", person="ana")
        await store.archive(KEY, 0, 1)

        async def found(**scope: object) -> set[tuple[str, int]]:
            given = Scope(**scope)  # type: ignore[arg-type]
            return {match[:2] for match in await store.search("acme", "rope", scope=given)}

        here, there = KEY.conversation, OTHER.conversation
        assert await found() == {*((here, seq) for seq in range(4)), (there, 0)}
        assert await found(conversation=there) == {(there, 0)}
        assert await found(conversation="unknown") == set()
        assert await found(project="climbing") == {(there, 0)}
        assert await found(person="ana") == await found(person="ana", project="climbing")
        assert await found(person="ana") == {(there, 0)}
        assert await found(person="bob") == await found(person="ana", project="p") == set()
        assert await found(conversation=here, roles=frozenset({"user"})) == {(here, 0), (here, 3)}
        both = frozenset({"assistant", "system"})
        assert await found(roles=both) == {(here, 1), (here, 2)}
        since, until = START + timedelta(minutes=10), START + timedelta(minutes=30)
        assert await found(conversation=here, since=since, until=until) == {(here, 1), (here, 2)}
        assert await found(since=until) == {(here, 3)}
        assert await found(until=since, roles=frozenset({"user"})) == {(here, 0), (there, 0)}
        await store.assign(KEY, [_topic(0)], {0: 0, 3: 0}, revision=0, next_seq=4)
        assert await found(topics=((here, 0),)) == {(here, 0), (here, 3)}
        assert await found(topics=((here, 1), (there, 0))) == set()
        assert await found(topics=()) == set()

    # -- vectors ------------------------------------------------------------------------------

    async def test_vectors_are_kept_by_embedder(self, store: Store) -> None:
        await store.append(KEY, drafts("abcde"))
        first = [Vector(0, 0, b"\0a"), Vector(1, 0, b"b0"), Vector(1, 1, b"b1"), Vector(3, 0, b"d")]
        assert await store.embedded(KEY, MODEL) == 0
        assert await store.put_vectors(KEY, MODEL, first, first_seq=0, next_seq=4)
        assert await store.embedded(KEY, MODEL) == 4
        assert await store.embedded(KEY, NEWER) == 0
        assert await store.embedders(KEY) == {MODEL: 4}
        assert await store.embedders(OTHER) == await store.embedders(FOREIGN) == {}
        await reopen(store)
        assert await store.vectors(KEY, MODEL, 0, 100) == first
        assert await store.vectors(KEY, MODEL, 1, 100) == first[1:]
        assert await store.vectors(KEY, MODEL, 0, 2) == first[:3], "a message's parts together"
        assert await store.vectors_at(KEY, MODEL, [3, 1, 2]) == first[1:]
        for key, model in ((KEY, NEWER), (OTHER, MODEL), (FOREIGN, MODEL)):
            assert await store.vectors(key, model, 0, 100) == []
            assert await store.vectors_at(key, model, [0]) == []

    async def test_the_progress_of_an_embedder_is_known_for_all_conversations(
        self, store: Store
    ) -> None:
        for key in (KEY, OTHER):
            await store.append(key, drafts("abc"))
            await store.put_vectors(key, MODEL, [], first_seq=0, next_seq=2)
        await store.describe(KEY, project="p", person="ana")
        await store.append(FOREIGN, drafts("abc"))
        await store.put_vectors(FOREIGN, MODEL, [], first_seq=0, next_seq=3)
        ours, theirs = KEY.conversation, OTHER.conversation

        async def reach(model: str, scope: Scope) -> dict[str, int]:
            found = await store.embedded_in("acme", model, scope)
            return {name: done.next_seq for name, done in found.items()}

        assert await reach(MODEL, Scope()) == {ours: 2, theirs: 2}
        assert await reach(NEWER, Scope()) == {}
        for scope in (Scope(project="p"), Scope(person="ana"), Scope(conversation=ours)):
            assert await reach(MODEL, scope) == {ours: 2}
        assert await reach(MODEL, Scope(project="p", person="bob")) == {}
        before = (await store.embedded_in("acme", MODEL, Scope()))[ours]
        await store.erase(KEY)
        await store.append(KEY, drafts("xyz"))
        await store.put_vectors(KEY, MODEL, [], first_seq=0, next_seq=2)
        assert (await store.embedded_in("acme", MODEL, Scope()))[ours] != before, "another one"

    async def test_whoever_was_slower_keeps_no_vectors(self, store: Store) -> None:
        await store.append(KEY, drafts("abc"))
        late = [Vector(0, 0, b"late")]
        assert await store.put_vectors(KEY, MODEL, [Vector(0, 0, b"x")], first_seq=0, next_seq=2)
        assert not await store.put_vectors(KEY, MODEL, late, first_seq=0, next_seq=1)
        assert not await store.put_vectors(KEY, MODEL, [], first_seq=2, next_seq=4)
        assert not await store.put_vectors(OTHER, MODEL, late, first_seq=0, next_seq=1)
        assert await store.vectors(KEY, MODEL, 0, 9) == [Vector(0, 0, b"x")]
        assert await store.head(OTHER) is None

    async def test_another_embedder_takes_over_when_it_has_been_through_all(
        self, store: Store
    ) -> None:
        await store.append(KEY, drafts("abc"))
        old, new = [Vector(0, 0, b"old")], [Vector(0, 0, b"new")]
        await store.put_vectors(KEY, MODEL, old, first_seq=0, next_seq=3)
        assert await store.unembedded("acme", MODEL) == []
        assert await store.unembedded("acme", NEWER) == [KEY]
        await store.put_vectors(KEY, NEWER, new, first_seq=0, next_seq=2)
        assert await store.vectors(KEY, MODEL, 0, 9) == old
        assert await store.embedders(KEY) == {MODEL: 3, NEWER: 2}
        await store.put_vectors(KEY, NEWER, [], first_seq=2, next_seq=3)
        assert await store.vectors(KEY, MODEL, 0, 9) == []
        assert await store.vectors(KEY, NEWER, 0, 9) == new
        assert await store.embedders(KEY) == {NEWER: 3}
        await store.append(KEY, drafts("d"))
        await store.append(FOREIGN, drafts("d"))
        assert await store.unembedded("acme", NEWER) == [KEY]
        assert await store.unembedded("acme", NEWER, limit=0) == []

    # -- topics -------------------------------------------------------------------------------

    @pytest.mark.requirement("C9")
    async def test_topics_and_their_members_are_kept(self, store: Store) -> None:
        await store.append(KEY, drafts("abcdef"))
        assert await store.topics(KEY) == TopicAssignments({}, 0, 0)
        first, second = _topic(0), replace(_topic(2), dormant=True, merged_into=0, tags=())
        members = {0: 0, 1: 0, 2: 2, 4: 0}
        assert await store.assign(KEY, [first, second], members, revision=0, next_seq=5) == 1
        await reopen(store)
        assert await store.topics(KEY) == TopicAssignments({0: first, 2: second}, 5, 1)
        assert await store.members(KEY, 0) == [0, 1, 4]
        assert await store.members(KEY, 0, first_seq=1) == [1, 4]
        assert await store.topics_of(KEY, [0, 2, 3, 9]) == {0: 0, 2: 2}
        again = replace(first, access_count=7)
        assert await store.assign(KEY, [again], {2: 0, 4: None}, revision=1) == 2
        assert await store.topics(KEY) == TopicAssignments({0: again, 2: second}, 5, 2)
        assert await store.members(KEY, 0) == [0, 1, 2]
        for key in (OTHER, FOREIGN):
            assert await store.topics(key) == TopicAssignments({}, 0, 0)
            assert await store.members(key, 0) == []
            assert await store.topics_of(key, [0]) == {}

    @pytest.mark.requirement("C7")
    async def test_of_many_who_assign_at_once_one_wins(self, store: Store) -> None:
        await store.append(KEY, drafts("abcdef"))
        tries = [
            store.assign(KEY, [_topic(i)], {i: i}, revision=0, next_seq=i + 1) for i in range(6)
        ]
        done = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(result == 1 for result in done) == 1
        assert sum(isinstance(result, ConflictError) for result in done) == 5
        assert len((await store.topics(KEY)).topics) == 1

    @pytest.mark.requirement("C7")
    async def test_topics_are_read_as_they_were_saved_while_others_save(
        self, store: Store, tmp_path: Path, clock: Ticking
    ) -> None:
        """What is read is of one moment: no topic has an entry that is not assigned yet."""
        count = 150
        await store.append(KEY, drafts(map(str, range(count))))
        other = self.make_store(tmp_path, clock)  # it caches nothing of what the first one saves
        await other.open()
        reader = other if await other.head(KEY) else store
        saved = asyncio.Event()

        async def save() -> None:
            for seq in range(count):
                topics = [replace(_topic(0), last_seq=seq, entries=seq + 1)]
                if seq > 1:
                    topics.append(replace(_topic(1), last_seq=seq, entries=seq))
                await store.assign(KEY, topics, {seq: 0}, revision=seq, next_seq=seq + 1)
            saved.set()

        async def read() -> None:
            while not saved.is_set():
                known = await reader.topics(KEY)
                assert known.next_seq == known.revision
                for topic in known.topics.values():
                    assert topic.last_seq == known.next_seq - 1
                members = await reader.members(KEY, 0)
                assert members == list(range(len(members)))
                assert len(members) >= known.next_seq

        try:
            await asyncio.gather(save(), *(read() for _ in range(4)))
            assert (await reader.topics(KEY)).next_seq == count
        finally:
            await other.close()

    async def test_an_assignment_that_cannot_be_is_refused(self, store: Store) -> None:
        with pytest.raises(UnknownConversation):
            await store.assign(KEY, [], {}, revision=0)
        await store.append(KEY, drafts("ab"))
        for topics, members, reach in (([_topic(2)], {}, 1), ([], {5: 0}, 1), ([], {}, 3)):
            with pytest.raises(InputError):
                await store.assign(KEY, topics, members, revision=0, next_seq=reach)
        assert await store.topics(KEY) == TopicAssignments({}, 0, 0)

    @pytest.mark.requirement("C2")
    async def test_each_topic_has_its_own_chain_of_digests(self, store: Store) -> None:
        await store.append(KEY, drafts("abcdef"))
        lease = await store.lease(KEY, "w", 60)
        assert lease is not None

        async def made(topic: int | None, base: int | None) -> Digest:
            plain = Digest(version=0, first_seq=0, last_seq=3, base=base, topic=topic)
            begun = await store.begin_digest(lease, plain)
            return await store.finish_digest(lease, replace(begun, status="completed", text="t"))

        whole, first, other = await made(None, None), await made(0, None), await made(2, None)
        assert [whole.version, first.version, other.version] == [1, 2, 3]
        second = await made(0, first.version)
        with pytest.raises(ConflictError):
            await made(2, second.version)
        await reopen(store)
        assert await store.newest_digest(KEY) == whole
        assert await store.newest_digest(KEY, 0) == second
        assert await store.newest_digest(KEY, 2) == other
        assert await store.newest_digest(KEY, 5) is None
        with pytest.raises(ConflictError):
            await store.undo_digest(lease, first.version)
        await store.undo_digest(lease, second.version)
        assert await store.newest_digest(KEY, 0) == first
        assert await store.newest_digest(KEY, 2) == other

    # -- erasing ------------------------------------------------------------------------------

    async def test_views_are_erased_with_the_log(self, store: Store) -> None:
        for key in (KEY, OTHER):
            await store.append(key, drafts(["rope", "b"]))
            await store.put_vectors(key, MODEL, [Vector(0, 0, b"v")], first_seq=0, next_seq=2)
            await store.assign(key, [_topic(0)], {0: 0}, revision=0, next_seq=2)
        await store.erase(KEY)
        assert await store.vectors(KEY, MODEL, 0, 9) == []
        assert await store.topics(KEY) == TopicAssignments({}, 0, 0)
        await store.append(KEY, drafts(["new"]))
        assert await store.embedded(KEY, MODEL) == 0
        assert await store.topics_of(KEY, [0]) == {}
        assert [len(await store.vectors(OTHER, MODEL, 0, 9)), await store.members(OTHER, 0)] == [
            1,
            [0],
        ]
        found = await store.search("acme", "rope")
        assert [match[:2] for match in found] == [(OTHER.conversation, 0)]
