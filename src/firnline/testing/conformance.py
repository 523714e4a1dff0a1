"""The suite that every store must pass. Each test is named for what it proves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from firnline.errors import ConflictError, InputError, KeyReused, UnknownConversation
from firnline.log.chain import Audit
from firnline.log.entry import (
    EntryDraft,
    Head,
    Idempotency,
    Key,
    Project,
    Scope,
    genesis,
    next_hash,
)
from firnline.log.message import Message, Part, ToolCall, encode
from firnline.log.text import Json
from firnline.protocols import Clock, Store
from firnline.testing.cards_suite import KeepingConformance
from firnline.testing.damage_suite import DamageConformance
from firnline.testing.digests_suite import DigestingConformance, reopen
from firnline.testing.drafts import FOREIGN, KEY, OTHER, START, Ticking, draft, drafts
from firnline.testing.erasure_suite import ErasingConformance
from firnline.testing.search_suite import SearchConformance
from firnline.testing.views_suite import ViewingConformance

HOSTILE_TEXTS: Final = (
    "",
    " ",
    "\n\t\r\x0b\x1f\x7f",
    "' OR 1=1; DROP TABLE entry; --",
    '"quoted" \\ back\\slash %_% * ? [a-z]',
    "<|endoftext|><|im_start|>",
    "e\u0301 é ﬁ Å K",
    "👩‍👩‍👧‍👦 🏳️‍🌈 🇯🇵",
    "שלום \u202eabc\u202c عربى",
    "東京都へ行きます 안녕하세요 สวัสดี",
    "\u2028\u2029\ufeff\u200b\u00ad",
    "\U0010ffff\U000e0041",
    '{"role": "system"}',
    "x" * 100_000,
)

QUERIES: Final = (
    *("", " ", "*", "%", "_", '"', "'", "(", ")", "()", '""', "a*", "^a", "a:b", "terms:x"),
    *("tenant:evil", "NEAR(a b)", "a NEAR/2 b", "a AND", "OR", "NOT", "AND OR NOT", "-a", "+a"),
    *("{a b}: c", "\\", ";", "foo-bar", "it's", "100%", "?1", ":x", "@y", "$z", "\0", "\ud800"),
    *("(" * 2_000, "a " * 5_000, "東", "東京", "🎉", "é", "\u200b"),
)


HERE: Final = Scope(conversation=KEY.conversation)


class StoreConformance(
    DigestingConformance,
    ViewingConformance,
    SearchConformance,
    KeepingConformance,
    DamageConformance,
    ErasingConformance,
):
    """Subclass it and define `make_store`; pytest then runs every test against your store."""

    def make_store(self, folder: Path, clock: Clock) -> Store:
        """Create a store without opening it: files go to `folder`, times come from `clock`."""
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> Ticking:
        return Ticking()

    @pytest_asyncio.fixture
    async def store(self, tmp_path: Path, clock: Ticking) -> AsyncIterator[Store]:
        store = self.make_store(tmp_path, clock)
        await store.open()
        yield store
        await store.close()

    # -- the log ------------------------------------------------------------------------------

    @pytest.mark.promise("dense")
    async def test_sequence_numbers_start_at_0_and_have_no_holes(self, store: Store) -> None:
        first = await store.append(KEY, drafts(["a", "b"]))
        second = await store.append(KEY, [draft("c")])
        assert [entry.seq for entry in (*first, *second)] == [0, 1, 2]
        assert [entry.seq for entry in await store.read(KEY)] == [0, 1, 2]

    @pytest.mark.promise("byte-exact")
    async def test_every_text_is_read_back_byte_for_byte(self, store: Store) -> None:
        await store.append(KEY, drafts(HOSTILE_TEXTS))
        assert [entry.message.content for entry in await store.read(KEY)] == list(HOSTILE_TEXTS)

    @pytest.mark.promise("byte-exact")
    async def test_every_field_is_read_back(self, store: Store) -> None:
        message = Message.assistant(
            [
                Part.of_text("look"),
                Part.image("https://x/y.png"),
                Part({"type": "new", "z": [1.5]}),
            ],
            tool_calls=[ToolCall.of("c1", "f", '{"a": 1}'), ToolCall.of("c2", "g", "not json")],
            name="bot",
            metadata={"z": 1, "a": {"nested": [None, True, -0.25]}},
            created_at=datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
            extra={"refusal": None, "x": {"b": 1, "a": 2}},
        )
        await store.append(KEY, [draft(message)])
        (entry,) = await store.read(KEY)
        assert entry.message == message
        assert encode(entry.message) == encode(message)

    @pytest.mark.promise("tamper-evident")
    async def test_hashes_are_chained_from_the_conversation_on(self, store: Store) -> None:
        items = drafts(["a", "b"])
        appended = await store.append(KEY, items)
        hashes = [genesis(KEY)]
        for item in items:
            hashes.append(next_hash(hashes[-1], item.body, item.tokens, item.tokenizer))
        assert [entry.hash for entry in appended] == hashes[1:]
        head = await store.head(KEY)
        assert head is not None
        assert head.hash == appended[-1].hash

    @pytest.mark.promise("dense")
    async def test_what_append_returns_is_what_read_returns(self, store: Store) -> None:
        appended = await store.append(KEY, drafts(["a", "b", "c"]))
        assert list(appended) == await store.read(KEY)
        assert appended.seq == 2
        assert not appended.replayed

    async def test_read_takes_any_span_and_limit(self, store: Store) -> None:
        await store.append(KEY, drafts("abcdefgh"))

        async def seqs(*span: int | None) -> list[int]:
            return [entry.seq for entry in await store.read(KEY, *span)]  # type: ignore[arg-type]

        assert await seqs(2, 4) == [2, 3, 4]
        assert await seqs(6) == [6, 7]
        assert await seqs(-5, 1) == [0, 1]
        assert await seqs(7, 100) == [7]
        assert await seqs(8) == []
        assert await seqs(3, 2) == []
        assert await seqs(2, None, 3) == [2, 3, 4]
        assert await seqs(0, None, 0) == []

    async def test_a_conversation_that_does_not_exist_is_empty(self, store: Store) -> None:
        assert await store.head(KEY) is None
        assert await store.read(KEY) == []
        assert await store.newest(KEY, 100) == []
        assert await store.tokens_between(KEY, 0, 10) == 0
        assert await store.records(KEY, 0, 10) == []
        assert await store.digests(KEY) == []
        assert await store.digests(KEY, [1]) == []
        assert await store.newest_digest(KEY) is None
        assert await store.pinned(KEY) == []

    async def test_an_empty_append_is_refused(self, store: Store) -> None:
        with pytest.raises(InputError):
            await store.append(KEY, [])
        assert await store.head(KEY) is None

    # -- concurrency, conflicts, retries ------------------------------------------------------

    @pytest.mark.promise("dense")
    async def test_concurrent_appends_are_all_kept_each_batch_together(self, store: Store) -> None:
        async def client(name: int) -> None:
            for i in range(10):
                await store.append(KEY, drafts([f"{name}.{i}.{j}" for j in range(3)]))

        await asyncio.gather(*(client(name) for name in range(8)))
        entries = await store.read(KEY)
        assert [entry.seq for entry in entries] == list(range(240))
        texts = [entry.message.text.split(".") for entry in entries]
        batches = [texts[i : i + 3] for i in range(0, 240, 3)]
        assert all(b[0][:2] == b[1][:2] == b[2][:2] for b in batches)
        for name in map(str, range(8)):
            assert [int(b[0][1]) for b in batches if b[0][0] == name] == list(range(10))

    @pytest.mark.promise("dense")
    async def test_expected_seq_lets_one_of_many_win(self, store: Store) -> None:
        await store.append(KEY, [draft("a")], expected_seq=0)
        tries = [store.append(KEY, [draft(f"b{i}")], expected_seq=1) for i in range(10)]
        results = await asyncio.gather(*tries, return_exceptions=True)
        lost = [result for result in results if isinstance(result, ConflictError)]
        assert len(lost) == 9
        assert lost[0].context == {"expected_seq": 1, "actual_seq": 2}
        assert len(await store.read(KEY)) == 2

    @pytest.mark.promise("dense")
    async def test_a_refused_append_creates_nothing(self, store: Store) -> None:
        with pytest.raises(ConflictError):
            await store.append(KEY, [draft("a")], expected_seq=3)
        assert await store.head(KEY) is None

    @pytest.mark.promise("idempotent")
    async def test_a_repeated_append_returns_the_first_result(self, store: Store) -> None:
        items, name = drafts(["a", "b"]), Idempotency("k", "fingerprint")
        first = await store.append(KEY, items, idempotency=name)
        await store.append(KEY, [draft("between")])
        again = await store.append(KEY, items, idempotency=name)
        assert (again.entries, again.replayed) == (first.entries, True)
        assert len(await store.read(KEY)) == 3

    @pytest.mark.promise("idempotent")
    async def test_concurrent_repeats_store_once(self, store: Store) -> None:
        name = Idempotency("k", "f")
        tries = [store.append(KEY, [draft("a")], idempotency=name) for _ in range(20)]
        results = await asyncio.gather(*tries)
        assert sum(not result.replayed for result in results) == 1
        assert len(await store.read(KEY)) == 1

    @pytest.mark.promise("idempotent")
    async def test_the_same_key_for_other_messages_is_a_conflict(self, store: Store) -> None:
        await store.append(KEY, [draft("a")], idempotency=Idempotency("k", "f"))
        with pytest.raises(KeyReused) as caught:
            await store.append(KEY, [draft("b")], idempotency=Idempotency("k", "g"))
        assert not caught.value.retryable
        assert len(await store.read(KEY)) == 1

    @pytest.mark.promise("idempotent")
    async def test_a_key_belongs_to_its_conversation(self, store: Store) -> None:
        name = Idempotency("k", "f")
        for key in (KEY, OTHER, FOREIGN):
            assert not (await store.append(key, [draft("a")], idempotency=name)).replayed

    @pytest.mark.promise("idempotent")
    async def test_a_repeat_wins_over_expected_seq(self, store: Store) -> None:
        name = Idempotency("k", "f")
        await store.append(KEY, [draft("a")], expected_seq=0, idempotency=name)
        again = await store.append(KEY, [draft("a")], expected_seq=0, idempotency=name)
        assert again.replayed

    # -- tokens -------------------------------------------------------------------------------

    @pytest.mark.promise("exact-tokens")
    async def test_running_totals_add_up(self, store: Store) -> None:
        items = [draft(text, tokens=tokens) for text, tokens in (("a", 3), ("b", 0), ("c", 5))]
        entries = await store.append(KEY, items)
        assert [(entry.tokens, entry.total) for entry in entries] == [(3, 3), (0, 3), (5, 8)]
        head = await store.head(KEY)
        assert head is not None
        assert head.tokens == 8

    @pytest.mark.promise("exact-tokens")
    async def test_newest_is_the_longest_run_that_fits(self, store: Store) -> None:
        sizes = [7, 1, 4, 0, 2, 5, 3]
        await store.append(KEY, [draft(str(i), tokens=n) for i, n in enumerate(sizes)])
        for tokens_max in range(sum(sizes) + 2):
            found = [entry.seq for entry in await store.newest(KEY, tokens_max)]
            assert found == _newest(sizes, tokens_max), tokens_max

    @pytest.mark.promise("exact-tokens")
    async def test_tokens_between_any_two(self, store: Store) -> None:
        sizes = [7, 1, 4, 0, 2]
        await store.append(KEY, [draft(str(i), tokens=n) for i, n in enumerate(sizes)])
        for first in range(-1, 6):
            for last in range(-1, 7):
                expected = sum(sizes[max(first, 0) : last + 1]) if last >= 0 else 0
                assert await store.tokens_between(KEY, first, last) == expected

    # -- dates --------------------------------------------------------------------------------

    @pytest.mark.requirement("B7")
    async def test_entries_are_found_by_date_whatever_their_order(self, store: Store) -> None:
        minutes = [5, 1, 9, 1, 7]
        await store.append(KEY, [draft(str(m), minute=m) for m in minutes])
        await store.append(OTHER, [draft("other", minute=5)])

        async def found(since: int, until: int, limit: int = 10, first: int = 0) -> list[str]:
            start, end = START + timedelta(minutes=since), START + timedelta(minutes=until)
            entries = await store.dated(KEY, start, end, limit, first)
            return [entry.message.text for entry in entries]

        for _ in range(2):
            assert await found(1, 7) == ["5", "1", "1"]
            assert await found(1, 8) == ["5", "1", "1", "7"]
            assert await found(9, 9) == []
            assert await found(0, 99, limit=2) == ["5", "1"]
            assert await found(0, 99, limit=2, first=2) == ["9", "1"]
            assert await found(1, 7, first=2) == ["1"]
            assert await found(0, 99, first=5) == []
            await store.archive(KEY, 1, 3)

    # -- tenants ------------------------------------------------------------------------------

    @pytest.mark.promise("tenants-apart")
    async def test_nothing_is_seen_under_another_key(self, store: Store) -> None:
        for key in (KEY, OTHER, FOREIGN):
            await store.append(key, drafts([f"secret of {key.tenant} {key.conversation}"]))
            await store.save_project(key.tenant, Project(f"project of {key.tenant}"))
        for key in (KEY, OTHER, FOREIGN):
            own = f"secret of {key.tenant} {key.conversation}"
            assert [entry.message.text for entry in await store.read(key)] == [own]
            assert [entry.message.text for entry in await store.newest(key, 10**6)] == [own]
            scope = Scope(conversation=key.conversation)
            hits = await store.search(key.tenant, "secret", scope=scope)
            assert [hit[:2] for hit in hits] == [(key.conversation, 0)]
        assert [h.conversation for h in await store.conversations("evil")] == ["ticket-42"]
        assert [project.name for project in await store.projects("evil")] == ["project of evil"]
        assert [hit[:2] for hit in await store.search("evil", "secret")] == [("ticket-42", 0)]
        assert await store.search("unknown", "secret") == []

    @pytest.mark.promise("tenants-apart")
    async def test_names_are_compared_byte_for_byte(self, store: Store) -> None:
        names = ["chat_1", "chatX1", "CHAT_1", "chat%1", "é", "e\u0301", "a b", "a/b", "a'b", 'a"b']
        for name in names:
            await store.append(Key("acme", name), drafts([name]))
        for name in names:
            assert [e.message.text for e in await store.read(Key("acme", name))] == [name]
        listed = [head.conversation for head in await store.conversations("acme")]
        assert listed == sorted(names, key=str.encode)

    # -- conversations and projects -----------------------------------------------------------

    async def test_conversations_are_listed_page_by_page(self, store: Store) -> None:
        names = [f"c{i:02}" for i in range(7)]
        for name in names:
            await store.append(Key("acme", name), drafts(["x"]))
        first = await store.conversations("acme", limit=3)
        rest = await store.conversations("acme", after=first[-1].conversation, limit=10)
        assert [head.conversation for head in (*first, *rest)] == names

    async def test_the_conversations_of_a_project_are_listed_by_their_newest_entries(
        self, store: Store
    ) -> None:
        for minute, name in ((5, "b"), (1, "a"), (9, "c"), (5, "a2")):
            key = Key("acme", name)
            await store.append(key, drafts(["x"], first_minute=minute))
            await store.describe(key, project="alps")
        await store.append(Key("acme", "none"), drafts(["x"]))
        await store.append(Key("evil", "d"), drafts(["x"]))
        await store.describe(Key("evil", "d"), project="alps")
        listed = await store.recent("acme", "alps")
        assert [head.conversation for head in listed] == ["c", "a2", "b", "a"]
        assert listed[0] == await store.head(Key("acme", "c"))
        await store.append(Key("acme", "a"), drafts(["y"], first_minute=9))
        after: Head | None = None
        names: list[str] = []
        while page := await store.recent("acme", "alps", after=after, limit=1):
            names.append(page[0].conversation)
            after = page[0]
        assert names == ["a", "c", "a2", "b"]
        everywhere = await store.recent("acme", None)
        assert sorted(h.conversation for h in everywhere) == ["a", "a2", "b", "c", "none"]
        assert everywhere == sorted(everywhere, key=lambda h: h.updated_at, reverse=True)
        assert await store.recent("acme", "alps", limit=0) == []
        assert await store.recent("acme", "andes") == []

    async def test_a_head_tells_where_the_conversation_stands(self, store: Store) -> None:
        await store.append(KEY, drafts(["a", "b"], first_minute=5))
        head = await store.head(KEY)
        assert head is not None
        assert (head.seq, head.entries, head.archived) == (1, 2, 0)
        assert head.created_at == START + timedelta(minutes=5)
        assert head.updated_at == START + timedelta(minutes=6)
        assert await store.conversations("acme") == [head]

    async def test_describe_sets_what_is_given_and_keeps_the_rest(self, store: Store) -> None:
        await store.describe(KEY, project="alps", metadata={"title": "Ropes", "n": [1, None]})
        await store.append(KEY, drafts(["a"]))
        head = await store.describe(KEY, metadata={"title": "Ropes 2"})
        assert (head.seq, head.project, head.metadata) == (0, "alps", {"title": "Ropes 2"})
        await store.append(OTHER, drafts(["a"]))
        assert await store.conversations("acme", project="alps") == [head]
        assert await store.conversations("acme", project="none") == []

    @pytest.mark.promise("one-person")
    async def test_a_conversation_is_with_one_person(self, store: Store) -> None:
        await store.append(KEY, drafts(["a"]), person="ana")
        await store.append(KEY, drafts(["b"], first_minute=1))
        with pytest.raises(ConflictError, match="another person"):
            await store.append(KEY, drafts(["c"]), person="bob")
        stored = await store.append(KEY, drafts(["c"], first_minute=2), person="ana")
        assert stored.seq == 2
        await store.append(OTHER, drafts(["d"]))
        await store.append(OTHER, drafts(["e"], first_minute=1), person="ana")
        await store.append(FOREIGN, drafts(["f"]), person="ana")
        await reopen(store)
        found = await store.conversations("acme", person="ana")
        assert [(head.conversation, head.person) for head in found] == [
            (key.conversation, "ana") for key in sorted((KEY, OTHER))
        ]
        assert await store.conversations("acme", person="ana", project="alps") == []
        await store.append(KEY, drafts(["g"], first_minute=3), person="ana")
        head = await store.describe(KEY, person="bob", known=await store.head(KEY))
        assert (head.person, await store.damage(KEY)) == ("bob", [])
        with pytest.raises(ConflictError):
            await store.append(KEY, drafts(["h"]), person="ana")
        assert await store.conversations("acme", person="bob") == [await store.head(KEY)]
        head = await store.describe(KEY, person="")
        assert (head.person, await store.damage(KEY), await store.unread("acme", "bob")) == (
            *(None, [], []),
        )
        await store.append(KEY, drafts(["i"], first_minute=4), person="bob")
        assert (await store.head(KEY)) in await store.conversations("acme", person="bob")

    @pytest.mark.promise("one-person")
    async def test_a_conversation_is_unread_until_it_is_read_to_its_end(self, store: Store) -> None:
        async def unread(person: str | None = None) -> list[str]:
            return [head.conversation for head in await store.unread("acme", person)]

        await store.append(KEY, drafts(["a"]))
        assert await unread() == []  # it is with no person
        await store.describe(KEY, person="ana")
        await store.append(OTHER, drafts(["b"], first_minute=1), person="ana")
        await store.append(FOREIGN, drafts(["c"]), person="ana")
        await store.describe(Key("acme", "empty"), person="ana")
        there = sorted((KEY.conversation, OTHER.conversation))
        assert await unread("ana") == await unread() == there
        assert await unread("bob") == []
        assert [h.conversation for h in await store.unread("acme", "ana", 1)] == there[:1]
        await store.append(KEY, drafts(["d"], first_minute=2))
        await store.mark_read("acme", {KEY.conversation: 1, OTHER.conversation: 1, "none": 9})
        assert await unread("ana") == [KEY.conversation]  # one entry came after what was read
        await store.mark_read("acme", {KEY.conversation: 2})
        assert await unread("ana") == []
        await store.append(OTHER, drafts(["e"], first_minute=3))
        assert await unread("ana") == [OTHER.conversation]
        await store.mark_read("acme", {OTHER.conversation: 2})
        await store.describe(KEY, person="bob")
        assert (await unread("bob"), await unread("ana")) == ([KEY.conversation], [])
        await store.erase(KEY)
        assert await unread() == []
        assert await store.damage(OTHER) == []

    async def test_two_processes_cannot_give_a_conversation_two_persons(self, store: Store) -> None:
        names = ["ana", "bob"] * 4
        tries = [store.append(KEY, drafts([name]), person=name) for name in names]
        done = await asyncio.gather(*tries, return_exceptions=True)
        head = await store.head(KEY)
        assert head is not None
        texts = [entry.message.text for entry in await store.read(KEY)]
        assert texts == [head.person] * 4
        assert sum(isinstance(item, ConflictError) for item in done) == 4

    async def test_projects_are_kept(self, store: Store) -> None:
        project = Project("alps", "paused", "daily 9:00", "ship ropes", {"x": [1]})
        await store.save_project("acme", Project("alps"))
        await store.save_project("acme", project)
        await store.save_project("acme", Project("andes"))
        assert await store.projects("acme") == [project, Project("andes")]

    # -- strategies and pins ------------------------------------------------------------------

    async def test_a_strategy_is_set_and_kept_like_metadata(self, store: Store) -> None:
        chosen: dict[str, Json] = {"name": "slide", "words": [50, None], "東京": {"x": 1.5}}
        assert (await store.describe(KEY, metadata={"a": 1})).strategy is None
        assert (await store.describe(KEY, strategy=chosen)).strategy == chosen
        await store.append(KEY, drafts(["a"]))
        await store.append(FOREIGN, drafts(["a"]))
        head = await store.describe(KEY, project="alps")
        assert (head.strategy, head.metadata, head.project) == (chosen, {"a": 1}, "alps")
        assert [await store.head(KEY)] == await store.conversations("acme") == [head]
        await reopen(store)
        assert await store.head(KEY) == head
        (foreign,) = await store.conversations("evil")
        assert foreign.strategy is None
        assert (await store.describe(KEY, strategy={})).strategy == {}
        assert (await store.describe(OTHER, strategy=chosen)).seq == -1

    async def test_what_was_described_otherwise_meanwhile_is_left_as_it_is(
        self, store: Store
    ) -> None:
        await store.append(KEY, drafts(["a"]))
        known = await store.head(KEY)
        assert known is not None
        await store.append(KEY, drafts(["b"]))
        now = await store.describe(KEY, strategy={"name": "mine"}, known=known)
        assert (now.seq, now.strategy) == (1, {"name": "mine"})
        with pytest.raises(ConflictError):
            await store.describe(KEY, strategy={"name": "theirs"}, known=known)
        assert await store.head(KEY) == now

    async def test_what_was_erased_does_not_come_back_by_being_described(
        self, store: Store
    ) -> None:
        await store.append(KEY, drafts(["a"]))
        known = await store.head(KEY)
        await store.erase(KEY)
        with pytest.raises(ConflictError):
            await store.describe(KEY, metadata={"a": 1}, known=known)
        assert await store.head(KEY) is None

    async def test_an_entry_is_pinned_until_it_is_unpinned(self, store: Store) -> None:
        entries = await store.append(KEY, drafts("abcdef"))
        for seq in (4, 0, 3, 0):
            await store.pin(KEY, seq)
        assert await store.pinned(KEY) == [entries[0], entries[3], entries[4]]
        for _ in range(2):
            await store.pin(KEY, 3, pinned=False)
            assert await _pinned(store) == [0, 4]
        await reopen(store)
        assert await store.pinned(KEY) == [entries[0], entries[4]]
        assert await store.read(KEY) == list(entries)

    async def test_a_draft_is_pinned_by_its_append(self, store: Store) -> None:
        await store.append(KEY, [draft("a"), draft("b", pinned=True)])
        await store.append(KEY, [draft("c"), draft("d")])
        await store.append(KEY, [draft(text, pinned=True) for text in "ef"])
        assert [entry.message.text for entry in await store.pinned(KEY)] == ["b", "e", "f"]

    @pytest.mark.promise("idempotent")
    async def test_a_refused_or_repeated_append_pins_nothing(self, store: Store) -> None:
        item, name = draft("a", pinned=True), Idempotency("k", "f")
        with pytest.raises(ConflictError):
            await store.append(KEY, [item], expected_seq=1)
        with pytest.raises(InputError):
            await store.append(KEY, [item, draft("b", tokens=-1)])
        assert await store.pinned(KEY) == []
        await store.append(KEY, [item], idempotency=name)
        await store.pin(KEY, 0, pinned=False)
        assert (await store.append(KEY, [item], idempotency=name)).replayed
        assert await store.pinned(KEY) == []

    async def test_only_what_is_there_is_pinned(self, store: Store) -> None:
        for pinned in (True, False):
            with pytest.raises(UnknownConversation):
                await store.pin(KEY, 0, pinned=pinned)
        assert await store.head(KEY) is None
        await store.append(KEY, drafts("ab"))
        await store.append(OTHER, drafts("abcd"))
        for seq in (-1, 2, 3, 1 << 32, 1 << 70):
            for pinned in (True, False):
                with pytest.raises(InputError):
                    await store.pin(KEY, seq, pinned=pinned)
        await store.append(KEY, drafts("cd"))
        assert await store.pinned(KEY) == []

    @pytest.mark.promise("archive-transparent")
    async def test_archived_entries_are_pinned_like_any_other(self, store: Store) -> None:
        await store.append(KEY, [draft(f"m{i}", pinned=i % 3 == 0) for i in range(20)])
        before = await store.pinned(KEY)
        await store.archive(KEY, 0, 13)
        await store.pin(KEY, 10)
        await store.pin(KEY, 3, pinned=False)
        expected = [0, 6, 9, 10, 12, 15, 18]
        now = await store.pinned(KEY)
        assert [(entry.seq, entry.archived) for entry in now] == [(i, i <= 13) for i in expected]
        await store.restore(KEY, 0, 19)
        await store.pin(KEY, 10, pinned=False)
        await store.pin(KEY, 3)
        assert await store.pinned(KEY) == before

    @pytest.mark.promise("tenants-apart")
    async def test_pins_are_of_one_conversation(self, store: Store) -> None:
        for i, key in enumerate((KEY, OTHER, FOREIGN)):
            await store.append(key, drafts("abc"))
            await store.pin(key, i)
        for i, key in enumerate((KEY, OTHER, FOREIGN)):
            assert await _pinned(store, key) == [i]
            await store.pin(key, i, pinned=False)
            assert await store.pinned(key) == []

    @pytest.mark.promise("dense")
    async def test_pinning_while_others_append(self, store: Store) -> None:
        async def client(name: int) -> list[int]:
            mine = []
            for i in range(10):
                items = [draft(f"{name}.{i}", pinned=True), draft("not this")]
                mine.append((await store.append(KEY, items))[0].seq)
                if i % 2:
                    await store.pin(KEY, mine.pop(), pinned=False)
            return mine

        expected = await asyncio.gather(*(client(name) for name in range(6)))
        assert await _pinned(store) == sorted(seq for mine in expected for seq in mine)

    # -- search -------------------------------------------------------------------------------

    @pytest.mark.promise("search-total")
    async def test_entries_are_found_by_their_words(self, store: Store) -> None:
        texts = ["The rope is red", "the tent is GREEN", "Ein großes Zelt", "naïve café", "东京塔"]
        await store.append(KEY, drafts(texts))
        for query, expected in (
            ("rope", {0}),
            ("green TENT", {1}),
            ("GROSSES", {2}),
            ("cafe", {3}),
            ("Naive", {3}),
            ("東京 京塔", {4}),
            ("yurt", set()),
            ("rope zelt", {0, 2}),
        ):
            hits = await store.search("acme", query, scope=HERE)
            assert {hit.seq for hit in hits} == expected, query

    @pytest.mark.promise("search-total")
    async def test_two_characters_of_an_unspaced_script_are_enough(self, store: Store) -> None:
        await store.append(
            KEY, drafts(["明日は東京都へ行きます", "京都の東", "서울에서 만나요", "สวัสดีครับ"])
        )
        for query, expected in (("東京", [0]), ("京都", [0, 1]), ("서울", [2]), ("สวัสดี", [3])):
            hits = await store.search("acme", query, scope=HERE)
            assert sorted(hit.seq for hit in hits) == expected, query

    @pytest.mark.promise("search-total")
    async def test_names_paths_and_codes_are_found_whole_and_by_part(self, store: Store) -> None:
        texts = [
            "then handle_tool_calls() fails",
            "see getUserName in the client",
            "open src/firnline/memory.py first",
            "write to bob.smith@example.com",
            "https://docs.python.org/3/library/re.html explains it",
            "it stopped with ERR-4012, then TS2322",
        ]
        await store.append(KEY, drafts(texts))
        for query, seq in (
            *(("tool_calls", 0), ("handle_tool_calls()", 0), ("calls", 0), ("handle", 0)),
            *(("getUserName", 1), ("getusername", 1), ("get_user_name", 1), ("name", 1)),
            *(("src/firnline/memory.py", 2), ("memory.py", 2), ("firnline", 2)),
            *(("bob.smith@example.com", 3), ("example.com", 3), ("smith", 3)),
            *(("docs.python.org", 4), ("library", 4)),
            *(("ERR-4012", 5), ("err", 5), ("4012", 5), ("TS2322", 5), ("2322", 5)),
        ):
            hits = await store.search("acme", query, scope=HERE)
            assert [hit.seq for hit in hits][:1] == [seq], query

    @pytest.mark.promise("search-total")
    async def test_words_are_found_by_their_stems_in_many_languages(self, store: Store) -> None:
        texts = [
            "The invoices were paid, and it was raining",
            "Die Häuser in der Stadt sind nicht teuer",
            "Las canciones de la fiesta son muy buenas",
            "Мы обсуждали новые станции и красивых птиц",
            "Häuser gekauft",
        ]
        await store.append(KEY, drafts(texts))
        for query, expected in (
            *(("invoice", {0}), ("rains", {0}), ("Haus", {1, 4}), ("Städte", {1})),
            *(("canción", {2}), ("cancion", {2}), ("станция", {3}), ("красивая птица", {3})),
        ):
            hits = await store.search("acme", query, scope=HERE)
            assert {hit.seq for hit in hits} == expected, query

    @pytest.mark.promise("search-total")
    async def test_a_word_is_found_in_longer_ones_after_whole_words(self, store: Store) -> None:
        texts = ["repricing takes a week", "Die Wettervorhersage ist gut", "no such thing"]
        await store.append(KEY, drafts([*texts, "the pricing of boards", "a keyboard"]))
        for query, expected in (
            *(("pricing", [3, 0]), ("Wetter", [1]), ("board", [3, 4]), ("vorher", [1])),
            *(("price", [3]), ("ricin", [3, 0]), ("wett", [1]), ("ette", []), ("thinking", [])),
        ):
            hits = await store.search("acme", query, scope=HERE)
            assert [hit.seq for hit in hits] == expected, query
        assert len(await store.search("acme", "pricing", limit=1)) == 1

    @pytest.mark.promise("search-total")
    async def test_the_best_match_comes_first(self, store: Store) -> None:
        noise = [f"the weather of day {i} was fine" for i in range(50)]
        await store.append(KEY, drafts([*noise, "the red rope broke", "a rope"]))
        hits = await store.search("acme", "red rope", scope=HERE)
        assert [hit.seq for hit in hits] == [50, 51]
        assert hits[0].score > hits[1].score

    @pytest.mark.promise("search-total")
    async def test_names_and_tool_calls_are_searched_too(self, store: Store) -> None:
        call = Message.assistant(tool_calls=[ToolCall.of("1", "find_order", {"order": "zx81"})])
        await store.append(KEY, [draft(call), draft(Message.user("hi", name="Ottokar"))])
        for query, seq in (("zx81", 0), ("ottokar", 1)):
            assert [hit.seq for hit in await store.search("acme", query)] == [seq]

    @pytest.mark.promise("search-total")
    async def test_no_query_is_an_error_or_an_operator(self, store: Store) -> None:
        await store.append(KEY, drafts(["alpha", "beta", "gamma NEAR delta"]))
        await store.append(FOREIGN, drafts(["alpha evil"]))
        for query in QUERIES:
            for scope in (Scope(), HERE):
                hits = await store.search("acme", query, scope=scope)
                assert {hit.conversation for hit in hits} <= {KEY.conversation}
        assert await store.search("acme", "alp*") == []
        assert await store.search("acme", "%") == []

    @pytest.mark.promise("search-total")
    async def test_an_entry_is_found_as_soon_as_it_is_acknowledged(self, store: Store) -> None:
        for i in range(20):
            await store.append(KEY, [draft(f"word{i}")])
            assert [hit.seq for hit in await store.search("acme", f"word{i}")] == [i]

    @pytest.mark.promise("search-total")
    async def test_the_limit_is_kept(self, store: Store) -> None:
        await store.append(KEY, drafts(["same word"] * 30))
        assert len(await store.search("acme", "word", limit=7)) == 7
        assert await store.search("acme", "word", limit=0) == []

    async def test_the_index_can_be_made_anew(self, store: Store) -> None:
        await store.append(KEY, drafts([f"w{i}" for i in range(30)]))
        await store.archive(KEY, 0, 9)
        await store.rebuild_index()
        for seq in (5, 25):
            assert [hit.seq for hit in await store.search("acme", f"w{seq}")] == [seq]

    # -- archive ------------------------------------------------------------------------------

    @pytest.mark.promise("archive-transparent")
    async def test_archived_entries_are_like_any_other(self, store: Store) -> None:
        items = self._varied(600)
        await store.append(KEY, items)
        before = await store.read(KEY)
        await store.search("acme", "word17")
        for first, last in ((0, 99), (300, 450), (50, 350)):
            await store.archive(KEY, first, last)
            await self._check_unchanged(store, [replace(e) for e in before])
        head = await store.head(KEY)
        assert head is not None
        assert head.archived == 451
        await store.append(KEY, drafts(["one more"]))
        assert await store.restore(KEY, 0, 10**6) == 451
        assert (await store.read(KEY))[:600] == before

    def _varied(self, count: int) -> list[EntryDraft]:
        messages = []
        for i in range(count):
            text = f"word{i} {HOSTILE_TEXTS[i % (len(HOSTILE_TEXTS) - 1)]}"
            kinds = (
                Message.user(text, name="Ana" if i % 4 else None),
                Message.assistant(text),
                Message.assistant(None, tool_calls=[ToolCall.of(f"c{i}", "f", "{}")]),
                Message.tool(text, tool_call_id=f"c{i}", metadata={"i": i}),
            )
            messages.append(kinds[i % 4].at(START + timedelta(microseconds=(i * 7919) % 1000)))
        return [draft(message, tokens=i % 13) for i, message in enumerate(messages)]

    async def _check_unchanged(self, store: Store, before: list) -> None:  # type: ignore[type-arg]
        now = await store.read(KEY)
        assert [replace(entry, archived=False) for entry in now] == before
        audit = Audit(KEY)
        audit.take(await store.records(KEY, 0, len(before)))
        head = await store.head(KEY)
        assert head is not None
        assert audit.close(head).problems == ()
        for tokens_max in (0, 5, 100, 10**6):
            sizes = [entry.tokens for entry in before]
            found = [entry.seq for entry in await store.newest(KEY, tokens_max)]
            assert found == _newest(sizes, tokens_max)
        for first, last in ((0, 599), (99, 100), (120, 130), (298, 301)):
            assert [e.seq for e in await store.read(KEY, first, last)] == [*range(first, last + 1)]
            assert await store.tokens_between(KEY, first, last) == sum(
                entry.tokens for entry in before[first : last + 1]
            )
        assert [hit.seq for hit in await store.search("acme", "word17")] == [17]

    @pytest.mark.promise("archive-transparent")
    async def test_archiving_again_or_nothing_does_nothing(self, store: Store) -> None:
        assert (await store.archive(KEY, 0, 10)).entries == 0
        await store.append(KEY, drafts("abcdef"))
        assert (await store.archive(KEY, 0, 2)).entries == 3
        assert (await store.archive(KEY, 0, 2)).entries == 0
        assert (await store.archive(KEY, 0, 99)).entries == 3
        assert await store.restore(OTHER, 0, 99) == 0

    @pytest.mark.promise("archive-transparent")
    async def test_many_small_segments_are_like_any_other(self, store: Store) -> None:
        sizes = [i % 5 for i in range(60)]
        await store.append(KEY, [draft(f"m{i}", tokens=n) for i, n in enumerate(sizes)])
        before = await store.read(KEY)
        for seq in (*range(1, 50, 2), 50, 52, 53, 58):
            assert (await store.archive(KEY, seq, seq)).entries == 1
        for tokens_max in range(0, sum(sizes) + 2, 7):
            found = [entry.seq for entry in await store.newest(KEY, tokens_max)]
            assert found == _newest(sizes, tokens_max), tokens_max
        for first, last in ((0, 59), (1, 49), (7, 9), (50, 53)):
            now = await store.read(KEY, first, last)
            assert [replace(entry, archived=False) for entry in now] == before[first : last + 1]
            expected = sum(sizes[first : last + 1])
            assert await store.tokens_between(KEY, first, last) == expected
        there = await store.at(KEY, range(0, 60, 3))
        assert [entry.seq for entry in there] == list(range(0, 60, 3))
        assert len(await store.records(KEY, 0, 100)) == 60
        assert await store.restore(KEY, 0, 59) == 29
        assert await store.read(KEY) == before

    # -- erase --------------------------------------------------------------------------------

    @pytest.mark.promise("erase-total")
    async def test_erase_leaves_nothing_and_nobody_else_is_touched(self, store: Store) -> None:
        for key in (KEY, OTHER, FOREIGN):
            name = Idempotency("k", "f")
            await store.append(key, drafts(["secret a", "secret b"]), idempotency=name)
            await store.archive(key, 0, 0)
            await store.describe(key, strategy={"name": "secret"})
            await store.pin(key, 0)
            await store.mark_pending(key, START)
        await store.mark_pending(FOREIGN, START + timedelta(seconds=1), postpone=True)
        await self._digest(store, base=None, first_seq=0, last_seq=1, text="secrets")
        head = await store.head(KEY)
        assert head is not None
        erased = await store.erase(KEY)
        assert (erased.entries, erased.digests, erased.head) == (2, 1, head.hash)
        assert await store.head(KEY) is None
        assert await store.read(KEY) == []
        assert await store.digests(KEY) == []
        assert await store.newest_digest(KEY) is None
        assert await store.pinned(KEY) == []
        assert await store.due(START + timedelta(seconds=1)) == [OTHER, FOREIGN]
        assert {hit.conversation for hit in await store.search("acme", "secret")} == {"ticket-43"}
        for key in (OTHER, FOREIGN):
            assert len(await store.read(key)) == 2
            assert [entry.seq for entry in await store.pinned(key)] == [0]
        with pytest.raises(UnknownConversation):
            await store.erase(KEY)

    @pytest.mark.promise("erase-total")
    async def test_an_erased_name_begins_anew(self, store: Store) -> None:
        name = Idempotency("k", "f")
        await store.append(KEY, [draft("old", pinned=True)], idempotency=name)
        await store.describe(KEY, strategy={"name": "old"})
        await store.mark_pending(KEY, START)
        await store.erase(KEY)
        again = await store.append(KEY, drafts(["new"]), idempotency=name)
        assert (again.seq, again.replayed) == (0, False)
        head = await store.head(KEY)
        assert head is not None
        assert head.strategy is None
        assert await store.pinned(KEY) == []
        assert await store.due(START) == []
        assert await store.search("acme", "old") == []


async def _pinned(store: Store, key: Key = KEY) -> list[int]:
    return [entry.seq for entry in await store.pinned(key)]


def _newest(sizes: list[int], tokens_max: int) -> list[int]:
    first = len(sizes)
    while first and sum(sizes[first - 1 :]) <= tokens_max:
        first -= 1
    return list(range(first, len(sizes)))
