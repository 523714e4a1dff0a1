"""The memory of a conversation as people and other programs read it: `memory_compression`.

Plain documents, beside each completed digest, in the shape that chat applications keep on the
document of a chat session. They are made of the digest, and never read by Firnline itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from firnline.digest import items
from firnline.log.entry import Digest
from firnline.store.mongo.connection import Doc

_INT64: Final = 1 << 63


def of(in_force: Sequence[Digest]) -> Doc:
    """The record that digests in force add up to, by their spans."""
    ordered = sorted(in_force, key=lambda digest: (digest.first_seq, digest.version))
    known: tuple[items.Item, ...] = ()
    for digest in ordered:
        known = items.merge(known, items.from_json(digest.data))
    newest = max(ordered, key=lambda digest: digest.version)
    return {
        "important_data": storable(items.important_data(known)),
        "conversation_summary": "\n\n".join(digest.text for digest in ordered),
        "summary_version": newest.layer + 1,
        "last_summarized_at": newest.created_at,
        "messages_summarized_count": sum(d.last_seq - d.first_seq + 1 for d in ordered),
        "last_keep_window_index": ordered[-1].last_seq + 1,
    }


def storable(value: Any) -> Any:
    """JSON as BSON can hold it: no NUL in a name, no number of more than 64 bits."""
    if isinstance(value, Mapping):
        return {str(name).replace("\0", ""): storable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    if type(value) is int and not -_INT64 <= value < _INT64:
        return str(value)
    return value
