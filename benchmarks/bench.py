"""What the figures share: sizes, the sample, and databases that are built once, when needed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import cycle, islice
from pathlib import Path
from typing import Unpack

from benchmarks import texts
from benchmarks.table import progress
from firnline import Memory, Message
from firnline.engine.options import MemoryOptions
from firnline.log.limits import BATCH_MESSAGES_MAX

LONG = "long"
"""The one conversation of a database made by `Bench.database`, or the long one of two."""
SHORT = "short"
SHORT_ENTRIES = 1_000


@dataclass
class Bench:
    """One run. `build_rates` holds the messages per second at which each database was built."""

    folder: Path
    quick: bool
    sample: Path | None = None
    build_rates: dict[Path, float] = field(default_factory=dict)

    def size(self, full: int, quick: int) -> int:
        """`full`, or `quick` in a quick run."""
        return quick if self.quick else full

    @cached_property
    def messages(self) -> list[Message]:
        """Real chat messages."""
        return texts.packaged() if self.sample is None else texts.from_file(self.sample)

    def endless_messages(self) -> Iterator[Message]:
        """The messages over and over."""
        return cycle(self.messages)

    def new_path(self, name: str) -> Path:
        """Where a database of this name lies; all of them go when the run ends."""
        return self.folder / f"{name}.db"

    async def small(self) -> Path:
        """A database with one short conversation."""
        path = self.new_path("small")
        if not path.exists():
            await self._build(path, {SHORT: SHORT_ENTRIES})
        return path

    async def million(self) -> Path:
        """A database with a million entries in one conversation, and a short one before it.

        The short one lies in front of the long one in the same B-tree, where an append is not at
        the end of the table.
        """
        path = self.new_path("million")
        if not path.exists():
            long = self.size(1_000_000, 20_000)
            await self._build(path, {SHORT: SHORT_ENTRIES, LONG: long - SHORT_ENTRIES})
        return path

    async def searched(self) -> Path:
        """A database to be searched, read and verified."""
        path = self.new_path("searched")
        if not path.exists():
            await self._build(path, {LONG: self.searched_entries})
        return path

    @property
    def searched_entries(self) -> int:
        """The entries of `searched`."""
        return self.size(100_000, 2_000)

    async def _build(self, path: Path, conversations: dict[str, int]) -> None:
        started = time.perf_counter()
        batch = list(islice(self.endless_messages(), BATCH_MESSAGES_MAX))
        async with opened(url(path)) as memory:
            for name, entries in conversations.items():
                for done in range(0, entries, len(batch)):
                    progress(f"building {path.stem}: {done:,} of {entries:,} entries")
                    await memory.append(name, batch[: entries - done])
        self.build_rates[path] = sum(conversations.values()) / (time.perf_counter() - started)


def opened(url: str, **options: Unpack[MemoryOptions]) -> Memory:
    """A memory without an embedder, whose background work would be measured too."""
    return Memory.open(url, **{"embedder": None, **options})


def url(path: Path, *, read_only: bool = False) -> str:
    return f"sqlite:///{path}{'?mode=ro' if read_only else ''}"
