"""What an import writes to: a memory, for all its conversations or for one person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from firnline.errors import InputError
from firnline.log.entry import Appended, Entry, Head
from firnline.log.text import Json, clean_name
from firnline.log.wire import MessageLike
from firnline.protocols import Progress
from firnline.transfer.jsonl import Manifest


class ImportTarget(Protocol):
    """The part of `Memory` that an import uses."""

    async def append(
        self,
        conversation: str,
        messages: MessageLike | Iterable[MessageLike],
        *,
        expected_seq: int | None = None,
        idempotency_key: str | None = None,
        person: str | None = None,
    ) -> Appended:
        """See `firnline.Memory`."""
        ...

    async def branch(self, conversation: str, seq: int, name: str) -> Head:
        """See `firnline.Memory`."""
        ...

    async def describe(
        self,
        conversation: str,
        *,
        project: str | None = None,
        person: str | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> Head:
        """See `firnline.Memory`."""
        ...

    async def head(self, conversation: str) -> Head | None:
        """See `firnline.Memory`."""
        ...

    async def read(
        self,
        conversation: str,
        *,
        first_seq: int = 0,
        last_seq: int | None = None,
        limit: int | None = None,
    ) -> list[Entry]:
        """See `firnline.Memory`."""
        ...

    async def import_(self, path: Path, *, progress: Progress | None = None) -> Manifest:
        """See `firnline.Memory`."""
        ...


class PersonTarget:
    """A memory into which conversations are imported that are all with one person."""

    def __init__(self, memory: ImportTarget, person: str) -> None:
        self._memory, self._person = memory, clean_name(person, "person")
        self.branch, self.read = memory.branch, memory.read

    async def append(
        self,
        conversation: str,
        messages: MessageLike | Iterable[MessageLike],
        *,
        expected_seq: int | None = None,
        idempotency_key: str | None = None,
        person: str | None = None,
    ) -> Appended:
        """Append messages to a conversation of the person."""
        return await self._memory.append(
            conversation,
            messages,
            expected_seq=expected_seq,
            idempotency_key=idempotency_key,
            person=person or self._person,
        )

    async def describe(
        self,
        conversation: str,
        *,
        project: str | None = None,
        person: str | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> Head:
        """Set the metadata of a conversation, which is with the person."""
        return await self._memory.describe(
            conversation, project=project, person=person or self._person, metadata=metadata
        )

    async def head(self, conversation: str) -> Head | None:
        """The head of a conversation; one that was imported with no person is theirs now."""
        head = await self._memory.head(conversation)
        if head is None or head.person == self._person:
            return head
        if head.person is not None:
            raise InputError(f"{conversation} is with another person; import it without a person")
        return await self._memory.describe(conversation, person=self._person)

    async def import_(self, path: Path, *, progress: Progress | None = None) -> Manifest:
        """Refuse: a Firnline export says itself whom its conversations are with."""
        del progress
        raise InputError(
            f"{path.name} is a Firnline export, which says whom its conversations are with; "
            "import it without a person"
        )
