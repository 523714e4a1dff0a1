"""Topic encoding and the rules for saving topics, shared by all backends."""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from firnline.errors import ConflictError, InputError, StoreCorrupt
from firnline.log import limits
from firnline.log.entry import Key, Topic
from firnline.log.message import encode_json, format_time, parse_time
from firnline.log.text import clean_fields
from firnline.store.digests import checksum_of


def encode_topic(topic: Topic) -> bytes:
    """The topic's canonical form."""
    fields = asdict(replace(topic, vector=b""))
    fields["vector"] = base64.b64encode(topic.vector).decode()
    fields["tags"] = list(topic.tags)
    for name in ("created_at", "last_active_at"):
        fields[name] = format_time(fields[name])
    return encode_json(clean_fields(fields, "topic")).encode()


def decode_topic(body: bytes, checksum: bytes | None = None) -> Topic:
    """The inverse of `encode_topic`; damage raises `StoreCorrupt`."""
    if checksum is not None and checksum_of(body) != checksum:
        raise StoreCorrupt("a topic does not match its checksum")
    try:
        fields = json.loads(body)
        for name in ("created_at", "last_active_at"):
            fields[name] = parse_time(fields[name])
        fields["vector"] = base64.b64decode(fields["vector"], validate=True)
        fields["tags"] = tuple(fields["tags"])
        return Topic(**fields)
    except (ValueError, KeyError, TypeError, InputError) as error:
        raise StoreCorrupt("the stored value is not a topic") from error


def check_assignment(
    key: Key,
    topics: Sequence[Topic],
    members: Mapping[int, int | None],
    *,
    revision: tuple[int, int],
    next_seq: tuple[int, int],
) -> None:
    """Raise unless the assignment is valid and based on the current revision.

    `revision` is (given, current); `next_seq` is (given, end of the log).
    """
    given, present = revision
    if given != present:
        raise ConflictError(
            f"{key.conversation}: its topics are at revision {present}, not {given}",
            expected_revision=given,
            actual_revision=present,
        )
    reach, end = next_seq
    if not 0 <= reach <= end:
        raise InputError(f"{key.conversation} has {end} messages; {reach} cannot be assigned")
    seqs = [*members, *(topic.id for topic in topics)]
    if any(not 0 <= seq < end for seq in seqs):
        raise InputError(
            f"{key.conversation}: a topic or a member is not one of its {end} messages"
        )


class TopicCache:
    """Caches topics by conversation and revision; ids are never reused."""

    def __init__(self) -> None:
        self._topics: OrderedDict[int, tuple[int, dict[int, Topic]]] = OrderedDict()

    def get(self, id_: int, revision: int) -> dict[int, Topic] | None:
        """The conversation's topics at this revision, if they are cached."""
        cached = self._topics.get(id_)
        return None if cached is None or cached[0] != revision else cached[1]

    def update(self, id_: int, revision: int, topics: Sequence[Topic]) -> None:
        """Apply a newly saved revision to the cached one."""
        cached = self.get(id_, revision - 1)
        if cached is not None:
            changed = {**cached, **{topic.id: topic for topic in topics}}
            self.put(id_, revision, dict(sorted(changed.items())))

    def put(self, id_: int, revision: int, topics: dict[int, Topic]) -> None:
        """Cache the topics; if there are too many, evicts the oldest."""
        self._topics[id_] = revision, topics
        if len(self._topics) > limits.TOPICS_REMEMBERED:
            self._topics.popitem(last=False)
