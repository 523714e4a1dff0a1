"""The important data of the digests in force, remembered until they change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from firnline.context.render import Sizes, render_data
from firnline.digest import items
from firnline.log import limits
from firnline.log.entry import Digest, Key
from firnline.log.message import Message


@dataclass(frozen=True, slots=True)
class ImportantData:
    """The important data of some digests, and its tokens for each model."""

    stamp: tuple[Any, ...]
    items: tuple[items.Item, ...]
    data: dict[str, Any]
    tokens: dict[str | None, int]

    def not_shown_from(self, first: int | None) -> dict[str, Any]:
        """What the entries from `first` on do not say themselves; all of it without a number."""
        if first is None:
            return self.data
        older = [item for item in self.items if not item.seqs or item.seqs[0] < first]
        return items.important_data(older)


class ImportantDataCache:
    """The important data of the conversations that contexts were made of last."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, ImportantData] = OrderedDict()

    def of(
        self, key: Key, digests: Sequence[Digest], model: str | None, sizes: Sizes
    ) -> ImportantData:
        """The important data of the digests in force, with its tokens for a model."""
        stamp = tuple((digest.version, digest.created_at, digest.text) for digest in digests)
        cached = self._known.get(key)
        if cached is None or cached.stamp != stamp:
            known = _merged_items(digests)
            cached = ImportantData(stamp, known, items.important_data(known), {})
            self._known[key] = cached
            if len(self._known) > limits.DATA_REMEMBERED:
                self._known.popitem(last=False)
        if model not in cached.tokens:
            rendered = Message.user(render_data(cached.data))
            cached.tokens[model] = sizes.of(rendered) if any(cached.data.values()) else 0
        return cached

    def forget(self, key: Key) -> None:
        """Drop what is known of an erased conversation."""
        self._known.pop(key, None)


def _merged_items(digests: Sequence[Digest]) -> tuple[items.Item, ...]:
    """The important data of the digests in force, merged in their order."""
    known: tuple[items.Item, ...] = ()
    for digest in digests:
        known = items.merge(known, items.from_json(digest.data))
    return known
