"""Store tests for damage: a row outside the log that changes or vanishes is noticed and named."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from firnline.errors import StoreCorrupt
from firnline.log.entry import Card, Digest, Key, Project, Topic
from firnline.protocols import Store
from firnline.testing.digests_suite import reopen
from firnline.testing.drafts import KEY, OTHER, START, draft

PROJECTS: Final = Key(KEY.tenant, "")
NEVER: Final = 7

DAMAGES: Final[Mapping[str, Callable[[Store], Awaitable[Any]]]] = {
    "project": lambda store: store.head(KEY),
    "person": lambda store: store.head(KEY),
    "metadata": lambda store: store.head(KEY),
    "strategy": lambda store: store.head(KEY),
    "lease": lambda store: store.head(KEY),
    "pending": lambda store: store.head(KEY),
    "head end": lambda store: store.head(KEY),
    "head tokens": lambda store: store.read(KEY),
    "head hash": lambda store: store.recent(KEY.tenant, None),
    "head time": lambda store: store.conversations(KEY.tenant),
    "head unread": lambda store: store.head(KEY),
    "head": lambda store: store.append(KEY, [draft("more")]),
    "pin gone": lambda store: store.pinned(KEY),
    "pin moved": lambda store: store.pinned(KEY),
    "digest gone": lambda store: store.newest_digest(KEY),
    "digest status": lambda store: store.newest_digest(KEY),
    "digest topic": lambda store: store.newest_digest(KEY),
    "digest text": lambda store: store.newest_digest(KEY),
    "topic gone": lambda store: store.topics(KEY),
    "topic text": lambda store: store.topics(KEY),
    "member gone": lambda store: store.members(KEY, 0),
    "member moved": lambda store: store.members(KEY, 0),
    "progress": lambda store: store.topics(KEY),
    "project gone": lambda store: store.projects(KEY.tenant),
    "project task": lambda store: store.projects(KEY.tenant),
    "card gone": lambda store: store.cards("draft", tenant=KEY.tenant, names=[KEY.conversation]),
    "card of a tenant gone": lambda store: store.cards("key", tenant=KEY.tenant, prefix="b"),
}
"""Each kind of damage, and the read that must notice it."""

OF_TENANT: Final = ("project gone", "project task", "card of a tenant gone")


class DamageConformance:
    """The tests that `StoreConformance` inherits."""

    async def damage_rows(self, folder: Path, what: str) -> bool:
        """Damage the open store's data as `what` says, past the store; False if that cannot be.

        The conversation is the only one of `KEY`'s tenant with digests, pins and topics.
        """
        del folder, what
        return False

    @pytest.mark.promise("tamper-evident")
    @pytest.mark.parametrize("what", DAMAGES)
    async def test_damage_outside_the_log_is_noticed(
        self, store: Store, tmp_path: Path, what: str
    ) -> None:
        await _fill(store)
        assert await store.damage(KEY) == await store.damage(PROJECTS) == []
        if not await self.damage_rows(tmp_path, what):
            pytest.skip("this store cannot be damaged")
        await reopen(store)
        with pytest.raises(StoreCorrupt):
            await DAMAGES[what](store)
        of = PROJECTS if what in OF_TENANT else KEY
        assert await store.damage(of)
        assert await store.damage(OTHER) == []
        about = "cards" if what.startswith("card") else "rows"
        (rows,) = [item for item in await store.check(thorough=True) if item.what == about]
        assert rows.state == "broken"

    async def test_what_was_sealed_stays_sealed_whatever_changes(self, store: Store) -> None:
        await _fill(store)
        await store.pin(KEY, 1, pinned=False)
        await store.describe(KEY, metadata={})
        await store.mark_pending(KEY, START, postpone=True)
        assert await store.clear_pending(KEY, 2)
        await store.archive(KEY, 0, 1)
        await store.restore(KEY, 0, 1)
        lease = await store.lease(KEY, "w", 60)
        assert lease is not None
        await store.renew(lease, 60)
        begun = await store.begin_digest(
            lease, Digest(version=0, first_seq=0, last_seq=1, base=2, text="x")
        )
        await store.undo_digest(lease, 2)
        await store.begin_digest(lease, Digest(version=0, first_seq=0, last_seq=1, base=1))
        await store.release(lease)
        assert begun.version == 3
        known = await store.topics(KEY)
        await store.assign(
            KEY, list(known.topics.values()), {0: 1, 1: None}, revision=known.revision
        )
        await store.save_project(KEY.tenant, Project("p", task="other"))
        await reopen(store)
        assert await store.damage(KEY) == await store.damage(PROJECTS) == []
        assert [entry.seq for entry in await store.pinned(KEY)] == [0]
        assert await store.members(KEY, 1) == [0, 2]
        assert await store.drop_cards("key", KEY.tenant, names=["b"]) == 1
        await store.erase(KEY)
        await reopen(store)
        assert await store.cards("draft")
        assert not await store.cards("key")
        assert {item.state for item in await store.check(thorough=True)} <= {"ok", "warning"}


async def _fill(store: Store) -> None:
    """Everything that a conversation and a tenant can have."""
    await store.append(KEY, [draft(text, pinned=text in "ab") for text in "abc"])
    await store.append(OTHER, [draft("d", pinned=True)])
    await store.describe(
        KEY, project="p", person="ana", metadata={"a": 1}, strategy={"name": "slide"}
    )
    await store.mark_pending(KEY, START + timedelta(days=NEVER))
    done = [
        Digest(version=version, first_seq=0, last_seq=1, text="said", status="completed", base=base)
        for version, base in ((1, None), (2, 1))
    ]
    await store.put_digests(KEY, done)
    topics = [Topic(id=i, title="rope", created_at=START, last_active_at=START) for i in (0, 1)]
    await store.assign(KEY, topics, {0: 0, 1: 0, 2: 1}, revision=0, next_seq=3)
    for name in ("p", "q"):
        await store.save_project(KEY.tenant, Project(name, task="climb"))
    for conversation in (KEY.conversation, OTHER.conversation):
        own = Card(tenant=KEY.tenant, kind="draft", name=conversation, conversation=conversation)
        await store.put_cards([own, replace(own, kind="key", name="b", conversation=None)])
