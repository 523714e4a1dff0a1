"""A context: sections with exact token counts, never more than the budget. Pure.

Sections are ordered by how often they change: stable ones first, so that providers' prompt caches
work; what was recalled for this question last, right before the question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from firnline.context.budget import Budget
from firnline.context.plan import is_question
from firnline.errors import ConflictError, InputError
from firnline.log import fence
from firnline.log.entry import Entry
from firnline.log.hit import Hit
from firnline.log.media_wire import place_tool_media
from firnline.log.message import Message, encode
from firnline.log.wire import dump_anthropic, dump_openai_request

NO_ROOM_FOR_DIGESTS: Final = "not all digests fit"
NO_ROOM_FOR_ENTRIES: Final = "are in no digest and do not fit"
BY_WORDS_ONLY: Final = "searched by their words only"
MORE_TO_FOLD: Final = "more digests are pending than one context waits for"
DAMAGED: Final = "{} damaged digests were set aside; {} statements were restored from the journal"

SectionName: TypeAlias = Literal[
    "system",
    "pinned",
    "task",
    "profile",
    "important",
    "digests",
    "recent",
    "retrieved",
    "opened",
    "recalled",
    "elsewhere",
]


class Piece(NamedTuple):
    """A message of the context and its exact tokens.

    `entry` is the entry it shows; `whole` is false if only its beginning and end are shown.
    `quoted` are the entries that it quotes word for word.
    `before` is the entry in front of which it stands, if it is not a section's usual place.
    `origin` says where it is from, if that is another conversation of the project.
    """

    message: Message
    tokens: int
    entry: Entry | None = None
    whole: bool = True
    quoted: tuple[Entry, ...] = ()
    before: int | None = None
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the context, and the reason for it."""

    name: SectionName
    pieces: tuple[Piece, ...] = ()
    why: str = ""

    @property
    def tokens(self) -> int:
        """The tokens of its messages."""
        return sum(piece.tokens for piece in self.pieces)

    @property
    def messages(self) -> tuple[Message, ...]:
        """Its messages."""
        return tuple(piece.message for piece in self.pieces)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries that it shows word for word, as messages or quoted in one."""
        shown = ((piece.entry,) if piece.entry and piece.whole else () for piece in self.pieces)
        quoted = (piece.quoted for piece in self.pieces)
        return tuple(entry for found in (*shown, *quoted) for entry in found)


class LeftOut(NamedTuple):
    """Something that is missing from the context or shortened, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting:
    """Where a request's tokens went."""

    window: int
    reserve: int
    tools: int
    system: int
    pinned: int
    task: int
    profile: int
    important: int
    digests: int
    history: int
    recalled: int
    elsewhere: int
    retrieved: int
    framing: int
    free: int

    def __str__(self) -> str:
        names = self.__slots__[2:]
        parts = ", ".join(f"{name} {getattr(self, name):,}" for name in names)
        return f"window {self.window:,} (reserve {self.reserve:,}): {parts}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a model should see of a conversation.

    `degraded` lists why it shows less than the strategy wanted; `crowded` is true if a larger
    window would have helped. `stability` is the share of the last prompt that this one repeats from
    its start, which a provider can cache; None for the first one. `hits` are the entries that
    are quoted because they match the question, best first, with the parts of their scores.
    `log_tokens` are those of the whole conversation. `estimate` says how tokens are estimated if
    the model's tokenizer is not known; empty if they are exact.
    """

    conversation: str
    strategy: str
    budget: Budget
    sections: tuple[Section, ...]
    tools_tokens: int = 0
    framing_tokens: int = 0
    left_out: tuple[LeftOut, ...] = ()
    degraded: tuple[str, ...] = ()
    crowded: bool = False
    stability: float | None = None
    reason: str = ""
    hits: tuple[Hit, ...] = ()
    log_tokens: int = 0
    estimate: str = ""

    @property
    def tokens(self) -> int:
        """The tokens of the request: all messages, tool schemas and framing."""
        return self.tools_tokens + self.framing_tokens + sum(s.tokens for s in self.sections)

    @property
    def whole_tokens(self) -> int:
        """The tokens of a request with the whole conversation."""
        given = sum(piece.tokens for piece in self["system"].pieces if piece.entry is None)
        return self.log_tokens + given + self.tools_tokens + self.framing_tokens

    @property
    def seqs(self) -> tuple[int, ...]:
        """The sequence numbers of all entries that are there word for word, quoted ones too."""
        return tuple(sorted({entry.seq for s in self.sections for entry in s.entries}))

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All messages in sending order, with their tokens."""
        ordered: list[Piece] = []
        late = [
            piece
            for part in self.sections
            for piece in part.pieces
            if part.name in _LATE or piece.before is not None
        ]
        for part in self.sections:
            usual = [piece for piece in part.pieces if piece.before is None]
            if part.name == "recent":
                ordered += _with_late(usual, late)
                late = []
            elif part.name not in _LATE:
                ordered += usual
        return (*ordered, *late)

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages in sending order."""
        return tuple(piece.message for piece in self.pieces)

    def __getitem__(self, name: SectionName) -> Section:
        """The section `name`; empty if the context does not have it."""
        return next((s for s in self.sections if s.name == name), Section(name))

    def to_openai(self, *, merge: bool = False) -> list[dict[str, Any]]:
        """The messages in OpenAI's chat format.

        `merge` joins neighbors of one role, for local models whose templates require alternating
        roles.
        """
        pieces = self.pieces
        messages = dump_openai_request(piece.message for piece in pieces)
        return place_tool_media(_merged(messages, pieces) if merge else messages)

    def to_anthropic(self) -> dict[str, Any]:
        """``system`` and ``messages`` in Anthropic's format."""
        return dump_anthropic(self.messages)

    def room_for_retrieval(self) -> int:
        """The tokens that are left for documents."""
        return max(self.budget.limit - self.tokens, 0)

    @property
    def reserved_tokens(self) -> int:
        """The tokens of the window in use before retrieval, including the reserve."""
        return self.tokens + self.budget.reserve_tokens

    @property
    def accounting(self) -> Accounting:
        """Where the tokens went."""
        size = {s.name: s.tokens for s in self.sections}
        return Accounting(
            window=self.budget.window_tokens,
            reserve=self.budget.reserve_tokens,
            tools=self.tools_tokens,
            system=size.get("system", 0),
            pinned=size.get("pinned", 0),
            task=size.get("task", 0),
            profile=size.get("profile", 0),
            important=size.get("important", 0),
            digests=size.get("digests", 0),
            history=size.get("recent", 0) + size.get("opened", 0),
            recalled=size.get("recalled", 0),
            elsewhere=size.get("elsewhere", 0),
            retrieved=size.get("retrieved", 0),
            framing=self.framing_tokens,
            free=self.room_for_retrieval(),
        )

    def up_to(self, seq: int) -> Context:
        """The same without the entries after `seq`.

        Concurrent questions in one conversation each get the answer to their own question.
        `ConflictError` if later messages took so much room that entry `seq` is not shown.
        """
        recent = self["recent"].pieces
        kept = [p for p in recent if p.entry is None or p.entry.seq <= seq]
        own = self.with_recent(kept)
        shown = any(p.entry is not None and p.entry.seq == seq for p in own.pieces)
        if len(kept) < len(recent) and not shown:
            raise ConflictError("concurrent messages filled the window; retry")
        return own

    def with_recent(self, pieces: Sequence[Piece]) -> Context:
        """The same with these recent messages."""
        sections = (
            replace(section, pieces=tuple(pieces)) if section.name == "recent" else section
            for section in self.sections
        )
        return replace(self, sections=tuple(sections))

    def with_section(self, section: Section, left_out: Sequence[LeftOut] = ()) -> Context:
        """The same context with one more section, which must fit."""
        return replace(
            self, sections=(*self.sections, section), left_out=(*self.left_out, *left_out)
        )

    def explain(self) -> str:
        """What is in the context, what is not, why, and the tokens of each part."""
        most = (
            "a window that is unknown" if self.budget.is_whole else f"{self.budget.limit:,} tokens"
        )
        share = f"{self.tokens:,} of {most}"
        lines = [f"{self.conversation}: {share}, strategy {self.strategy}"]
        if self.estimate:
            lines.append(f"  tokens are estimates: {self.estimate}")
        lines += [f"  {_described(section)}" for section in self.sections]
        if self.tools_tokens:
            lines.append(f"  {'tools':<10} {self.tools_tokens:>7,}")
        lines.append(f"  {'framing':<10} {self.framing_tokens:>7,}")
        lines += [f"  left out: {what} ({why})" for what, why in self.left_out]
        lines += [f"  degraded: {why}" for why in self.degraded]
        if self.stability is not None:
            lines.append(f"  {self.stability:.1%} of the last prompt is repeated")
        return "\n".join(lines)


QUOTES: Final[tuple[SectionName, ...]] = ("opened", "recalled")
"""The sections whose messages quote entries."""
_LATE = ("retrieved", *QUOTES, "elsewhere")


def as_system(system: str | Message | None) -> tuple[Message, ...]:
    """The system message as a context accepts it."""
    if system is None:
        return ()
    if not isinstance(system, str | Message):
        raise InputError(f"system: expected a string or a Message, got {type(system).__name__}")
    return (Message.system(system) if isinstance(system, str) else system,)


def kind_of(why: str) -> Literal["digests", "entries", "backlog", "vectors", "model"]:
    """The kind of a reason in `degraded`; ``model``: a model failed or was not available."""
    if why == NO_ROOM_FOR_DIGESTS or why.endswith(DAMAGED.rpartition("}")[2]):
        return "digests"
    if why == MORE_TO_FOLD:
        return "backlog"
    if why.endswith(BY_WORDS_ONLY):
        return "vectors"
    return "entries" if why.endswith(NO_ROOM_FOR_ENTRIES) else "model"


def _described(section: Section) -> str:
    seqs = ranges([entry.seq for entry in section.entries])
    about = ", ".join(part for part in (f"messages {seqs}" if seqs else "", section.why) if part)
    return f"{section.name:<10} {section.tokens:>7,}  {about}".rstrip()


def ranges(seqs: Sequence[int]) -> str:
    """Numbers as ranges: 0-4, 7, 9-12."""
    runs: list[tuple[int, int]] = []
    for seq in sorted(seqs):
        if runs and seq == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], seq)
        else:
            runs.append((seq, seq))
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _merged(messages: Sequence[Mapping[str, Any]], pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    """Join neighbors of one role if both are plain text.

    Where an entry is joined with a section, its text can no longer be told from it by the message
    it is in, so no line of it may read as one of the section's markers.
    """
    groups: list[list[int]] = []
    for at, message in enumerate(messages):
        before = messages[groups[-1][-1]] if groups else {}
        alike = before.get("role") == message["role"]
        if alike and _is_plain(before) and _is_plain(message):
            groups[-1].append(at)
        else:
            groups.append([at])
    joined: list[dict[str, Any]] = []
    for group in groups:
        first = dict(messages[group[0]])
        if len(group) > 1:
            first["content"] = "\n\n".join(_joinable(messages[at], pieces[at]) for at in group)
        joined.append(first)
    return joined


def _is_plain(message: Mapping[str, Any]) -> bool:
    return set(message) == {"role", "content"} and isinstance(message["content"], str)


def _joinable(message: Mapping[str, Any], piece: Piece) -> str:
    text = str(message["content"])
    return text if piece.entry is None else fence.escape(text)


def _with_late(recent: Sequence[Piece], late: Sequence[Piece]) -> list[Piece]:
    """The newest messages, with late ones before the question, or where they belong."""
    usual = _question_at(recent)
    places = {piece.entry.seq: at for at, piece in enumerate(recent) if piece.entry}
    at_place: dict[int, list[Piece]] = {}
    for piece in late:
        at = usual if piece.before is None else min(places.get(piece.before, usual), usual)
        at_place.setdefault(at, []).append(piece)
    ordered = []
    for at in range(len(recent) + 1):
        ordered += [*at_place.get(at, ()), *recent[at : at + 1]]
    return ordered


def _question_at(pieces: Sequence[Piece]) -> int:
    """The position of the user's newest question; the end if there is none."""
    for at in range(len(pieces) - 1, -1, -1):
        if is_question(pieces[at].message):
            return at
    return len(pieces)


# -- how much of the last prompt is repeated --------------------------------------------------

Prompt: TypeAlias = tuple[tuple[str, int], ...]
"""A prompt for comparison: a hash and the tokens of each message."""


def prompt_of(context: Context) -> Prompt:
    """The prompt of a context."""
    return tuple((_fingerprint(piece), piece.tokens) for piece in context.pieces)


def _fingerprint(piece: Piece) -> str:
    if piece.entry and piece.whole:
        return piece.entry.hash
    return hashlib.sha256(encode(piece.message)).hexdigest()


def repeated(last: Prompt, new: Prompt) -> float:
    """The share of the last prompt that the new one repeats from its start."""
    same = 0
    for old, now in zip(last, new, strict=False):
        if old[0] != now[0]:
            break
        same += old[1]
    return same / max(sum(size for _, size in last), 1)
