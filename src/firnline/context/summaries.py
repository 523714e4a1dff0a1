"""What stands for messages that are not shown: important data and digests. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from firnline.context.budget import Budget
from firnline.context.context import Piece, Section
from firnline.context.material import Material
from firnline.context.plan import Plan, View, data_room
from firnline.context.render import NOTHING_YET, Sizes, render_data, render_digest, without_texts
from firnline.context.verbatim import stands_before
from firnline.log.entry import Digest, Entry
from firnline.log.message import Message

_DATA_STEPS: Final = 16


class Summary(NamedTuple):
    """A digest and the message that shows it."""

    digest: Digest
    piece: Piece


class ShownData(NamedTuple):
    """The section of important data, what of it does not fit, and the data it shows."""

    section: Section
    cut: str = ""
    data: Mapping[str, Any] = MappingProxyType({})

    @property
    def tokens(self) -> int:
        """The tokens of the section."""
        return self.section.tokens


class Summaries:
    """The important data and the digests of a plan, in whatever room."""

    def __init__(
        self, view: View, plan: Plan, budget: Budget, material: Material, sizes: Sizes
    ) -> None:
        self._view, self._plan = view, plan
        self._material, self._sizes = material, sizes
        most = plan.data_tokens
        self._data_most = data_room(budget) if most is None else most
        self._known: dict[tuple[int, int | None], ShownData] = {}

    @property
    def covered(self) -> int:
        """The first entry that no digest of the plan covers."""
        shown = [d.last_seq + 1 for d in self._view.digests if d.version in self._plan.digests]
        return max(shown, default=0)

    # -- important data -----------------------------------------------------------------------

    def data(self, room: int, first: int | None = None) -> ShownData:
        """As much important data as fits next to digests.

        Only what the messages from `first` on do not say themselves, or all of it. It gets a third
        of the room, but the newest digest has priority.
        """
        share = room // 3
        if self._plan.digests and (newest := self._view.digests[-1].tokens) <= room:
            share = min(share, room - newest)
        share = min(share, self._data_most)
        if (share, first) not in self._known:
            self._known[share, first] = self._fitting_data(share, first)
        return self._known[share, first]

    def all_data(self, first: int) -> Section:
        """All important data that the messages from `first` on do not say themselves."""
        data = self._material.data(first) if self._plan.important else {}
        if not any(data.values()):
            return Section("important")
        return Section("important", (self._sizes.piece(Message.user(render_data(data))),))

    def _fitting_data(self, room: int, first: int | None) -> ShownData:
        """The newest part of each list that fits, in steps."""
        data = self._material.data(first) if self._plan.important else {}
        if not any(data.values()):
            return ShownData(Section("important"))
        low, high = 0, _DATA_STEPS  # steps that fit, and that may fit
        if first is None and self._view.data_tokens > room:  # skip sizes that certainly do not
            high = min(room * _DATA_STEPS // self._view.data_tokens + 1, _DATA_STEPS)
        best, steps = ShownData(Section("important")), high
        while low < high:
            kept = _newest_part(data, steps / _DATA_STEPS)
            piece = self._sizes.piece(Message.user(render_data(kept)))
            if piece.tokens <= room:
                low, best = steps, ShownData(Section("important", (piece,)), data=kept)
            else:
                high = steps - 1
            steps = (low + high + 1) // 2
        cut = "" if low == _DATA_STEPS else "the older part of the important data"
        return best._replace(cut=cut if low else "the important data")

    def data_without(self, shown: ShownData, texts: Collection[str]) -> Section:
        """The section of important data without what is there as a message."""
        left = {name: _without(value, texts) for name, value in shown.data.items()}
        if left == shown.data:
            return shown.section
        pieces = (self._sizes.piece(Message.user(render_data(left))),)
        return replace(shown.section, pieces=pieces if any(left.values()) else ())

    # -- digests ------------------------------------------------------------------------------

    def before(self, first: int) -> list[Digest]:
        """The digests of the plan that cover entries before `first`, or what the caller stated."""
        return [
            digest
            for digest in self._view.digests
            if digest.version in self._plan.digests
            and digest.text
            and digest.text != NOTHING_YET
            and stands_before(digest, first)
        ]

    def fitting(self, room: int, first: int | None = None) -> list[Summary]:
        """The digests of the plan, or those before `first`; or the newest of them that fit."""
        chosen: list[Summary] = []
        for digest in reversed(self.before(self._view.next_seq if first is None else first)):
            piece = self.piece(digest)
            if piece.tokens > room:
                piece = self.piece(digest, residue=False)
            if piece.tokens > room:
                break
            room -= piece.tokens
            chosen.append(Summary(digest, piece))
        return chosen[::-1]

    def piece(self, digest: Digest, *, residue: bool = True) -> Piece:
        """The message that shows a digest."""
        text = render_digest(digest, self._plan.heading, residue=residue)
        return self._sizes.piece(Message(self._plan.digest_role, text))

    def section(self, shown: Sequence[Summary], entries: Sequence[Entry] = ()) -> Section:
        """The section of digests, without what is there as messages of these entries."""
        pieces = []
        for digest, piece in shown:
            texts = [entry.message.text for entry in entries if entry.seq <= digest.last_seq]
            shorter = without_texts(piece.message, texts)
            pieces.append(piece if shorter is None else self._sizes.piece(shorter))
        why = f"messages {shown[0][0].first_seq}-{shown[-1][0].last_seq}" if shown else ""
        return Section("digests", tuple(pieces), why)


def _without(value: Any, texts: Collection[str]) -> Any:
    """A list without texts that are there already; other values as they are."""
    if not isinstance(value, list):
        return value
    return [item for item in value if not (isinstance(item, str) and item in texts)]


def _newest_part(data: Mapping[str, Any], share: float) -> dict[str, Any]:
    """The newest `share` of each list and mapping; they are ordered by time."""
    kept: dict[str, Any] = {}
    for name, value in data.items():
        most = max(int(len(value) * share), 1) if share < 1 else len(value)
        if isinstance(value, dict):
            kept[name] = dict(list(value.items())[-most:])
        else:
            kept[name] = list(value)[-most:] if value else []
    return kept
