"""People: whom conversations are with."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from firnline.log import limits
from firnline.log.entry import Key
from firnline.protocols import Store
from firnline.store import journal

_RECORDED_MAX: Final = limits.HEADS_REMEMBERED


class People:
    """The people of a tenant."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store, self._tenant = store, tenant
        self._recorded: OrderedDict[Key, str] = OrderedDict()

    async def on_append(self, key: Key, person: str) -> None:
        """After an append: the conversation is with this person, which the journal records."""
        if self._recorded.get(key) != person:
            stated = await journal.read(self._store, key)
            if stated is None:
                await journal.adopt(self._store, key)
            elif stated.person != person:
                await journal.record(self._store, key, "describe", person=person)
            self._recorded[key] = person
            if len(self._recorded) > _RECORDED_MAX:
                self._recorded.popitem(last=False)

    def forget(self, key: Key) -> None:
        """Drop what is cached for an erased conversation."""
        self._recorded.pop(key, None)
