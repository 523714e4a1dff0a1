"""The shapes of responses in the OpenAPI document.

Most are derived from the classes of the library and of the client (`model_of`), so that a field is
listed in one place only. `responses` fills them.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from inspect import cleandoc
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, Field, WithJsonSchema, create_model

from firnline import topics
from firnline.client import values
from firnline.client.wire import HASH, Doc, WireEntry
from firnline.context.budget import Budget
from firnline.context.context import Accounting, LeftOut
from firnline.digest import fact
from firnline.engine import person, stats
from firnline.engine.digest_history import Difference, State
from firnline.errors import FirnlineError
from firnline.log import entry as log
from firnline.log import hit
from firnline.log.chain import Verification
from firnline.log.message import Message
from firnline.server.rest.requests import MESSAGE
from firnline.topics import TopicStats
from firnline.transfer.formats.records import NoteCount
from firnline.transfer.importer import Report
from firnline.transfer.jsonl import Manifest

_INSTANT: Final = Annotated[datetime, Field(examples=["2026-03-04T10:15:00.000000Z"])]
_MESSAGE: Final = Annotated[dict[str, Any], WithJsonSchema(MESSAGE)]


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: str = Field(examples=["urn:firnline:UnknownConversation"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["there is no conversation 'support-4711'"])
    instance: str = Field(examples=["/api/v1/conversations/support-4711"])
    code: str = Field(description="Machine-readable code.", examples=["UnknownConversation"])
    retryable: bool = Field(description="Whether retrying can help.")
    floor: int | None = Field(None, description="Tokens that the context needs at least.")
    available: int | None = Field(None, description="Tokens available for it.")
    blockers: dict[str, Any] | None = Field(None, description="What uses these tokens.")
    retry_after: float | None = Field(None, description="Seconds to wait before retrying.")


class Page(BaseModel):
    """Part of a list."""

    next_cursor: str | None = Field(description="Cursor of the next page; null on the last.")
    has_more: bool


# -- models from classes ----------------------------------------------------------------------

Model = type[BaseModel]

_WIRE: Final[dict[Any, Any]] = {datetime: _INSTANT, Message: _MESSAGE, FirnlineError: Problem}
"""What stands in the document for a class of the library."""


def _model(name: str, doc: str, base: Model = BaseModel, /, **hints: Any) -> Model:
    """A model with these fields, all of them required."""
    made: Any = {field: _field(hint) for field, hint in hints.items()}
    return create_model(name, __base__=base, __doc__=cleandoc(doc), **made)


def model_of(
    kind: type,
    name: str = "",
    /,
    doc: str = "",
    *,
    base: Model = BaseModel,
    omit: Collection[str] = (),
    **more: Any,
) -> Model:
    """The fields of a dataclass or named tuple as a model; `more` adds fields or describes them."""
    hints = get_type_hints(kind, include_extras=True)
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else kind._fields  # type: ignore[attr-defined]
    chosen = {field: hints[field] for field in names if field not in omit}
    for field, hint in more.items():
        chosen[field] = Annotated[chosen[field], hint] if isinstance(hint, Doc) else hint
    made = _model(name or kind.__name__, doc or kind.__doc__ or "", base, **chosen)
    _WIRE[kind] = made
    return made


def _field(hint: Any) -> tuple[Any, Any]:
    docs = [doc for doc in getattr(hint, "__metadata__", ()) if isinstance(doc, Doc)]
    about: dict[str, Any] = {}
    for doc in docs:
        about |= {"description": doc.text} if doc.text else {}
        about |= {"examples": [doc.example]} if doc.example is not None else {}
    return _wire(hint.__origin__ if docs else hint), Field(**about)


def _wire(hint: Any) -> Any:
    """The type of a field as it is in the document."""
    if isinstance(hint, type | types.UnionType) and hint in _WIRE:
        return _WIRE[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is tuple:
        return list[_wire(inner[0])]  # type: ignore[misc]
    if origin in (Union, types.UnionType):
        return Union[tuple(map(_wire, inner))]  # noqa: UP007 - of a list of types
    if origin in (list, dict, Mapping):
        return (list if origin is list else dict)[*map(_wire, inner)]
    return hint


def _page_of(name: str, doc: str, item: Model, base: Model = Page, **more: Any) -> Model:
    return _model(name, doc, base, data=list[item], **more)  # type: ignore[valid-type]


def _list_of(name: str, doc: str, item: Model) -> Model:
    return _page_of(name, doc, item, BaseModel)


# -- the log ----------------------------------------------------------------------------------

_OBJECT: Final = dict[str, Any]
_URL: Final = Annotated[str, Doc("", "/api/v1/conversations/support-4711")]

Entry: Final = model_of(WireEntry, "Entry", message=_MESSAGE)
_WIRE[log.Entry] = Entry
EntryPage: Final = _page_of("EntryPage", "Part of a conversation, word for word.", Entry)
Span: Final = _model(
    "Span",
    "The time range that a date expression means.",
    since=datetime,
    until=datetime,
    when=Annotated[str, Doc("", "yesterday")],
)
DatedPage: Final = _page_of(
    "DatedPage",
    "Part of the messages in a time range.",
    Entry,
    since=datetime,
    until=datetime,
    when=Annotated[str, Doc("", "yesterday")],
)
Appended: Final = _model(
    "Appended",
    "The messages that an append stored.",
    data=tuple[log.Entry, ...],
    seq=Annotated[int, Doc("Sequence number of the last message.")],
    replayed=Annotated[bool, Doc("Whether an earlier request had stored them.")],
)
Head: Final = model_of(
    log.Head,
    doc="The current end of a conversation.",
    omit={"strategy"},
    conversation=Doc("", "support-4711"),
    seq=Doc("Sequence number of the last message; -1 if the conversation is empty."),
    hash=HASH,
    entries=int,
    metadata=_OBJECT,
    title=Annotated[str, Doc("The title in the metadata, or else how its first user begins.")],
    url=_URL,
)
HeadPage: Final = _page_of("HeadPage", "Part of the list of conversations.", Head)
MemoryState: Final = model_of(
    State,
    "State",
    "The digests in force as one record.",
    last_keep_window_index=Doc("The first message after the summary."),
)
Strategy: Final = model_of(values.StrategyInfo, "Strategy")
Conversation: Final = model_of(values.Conversation, base=Head, omit={"head"})
Verified: Final = model_of(
    Verification,
    "Verified",
    "The result of recomputing every hash.",
    head=HASH,
    ok=bool,
    problems=list[str],
)
Checkpoint: Final = _model("Checkpoint", "A log as it is now, as a signed note.", checkpoint=str)
Proof: Final = _model("Proof", "A proof, for `firnline check-proof`.", proof=str)
Archived: Final = model_of(log.Archived, doc="What was moved to compressed segments.")
Restored: Final = _model("Restored", "What was restored.", entries=int)
Erased: Final = model_of(
    log.Erased,
    doc="The certificate of an erasure.",
    head=HASH,
    cards=Doc("The erased cards by kind: recorded prompts, drafts of answers and the like."),
    branches=Doc("Conversations that held copies of its messages and were erased, too."),
    survives=Doc("Conversations that still hold copies of its messages."),
)
ErasedList: Final = _model("ErasedList", "Certificates of erasure.", data=list[log.Erased])
Branches: Final = _model(
    "Branches", "The conversations that hold copies of a conversation's messages.", data=list[str]
)
Pinned: Final = _model(
    "Pinned", "Whether a message is in every context.", conversation=str, seq=int, pinned=bool
)
Project: Final = model_of(
    log.Project,
    doc="A project that conversations belong to.",
    name=Doc("", "garden"),
    status=Doc("", "active"),
    schedule=Doc("", "Mondays"),
    metadata=_OBJECT,
    url=Annotated[str, Doc("", "/api/v1/projects/garden")],
)
ConversationState: Final = model_of(values.ConversationState)
ProjectBoard: Final = model_of(
    values.Board,
    "ProjectBoard",
    base=Project,
    omit={"name", "status", "schedule", "task", "metadata"},
)
ProjectPage: Final = _page_of(
    "ProjectPage",
    "The dashboard: every project.",
    ProjectBoard,
    active=Annotated[str | None, Doc("The active project with the latest activity.")],
)

# -- people -----------------------------------------------------------------------------------

Evidence: Final = model_of(fact.Evidence)
Fact: Final = model_of(fact.Fact, kind=str, recorded_at=_INSTANT)
Facts: Final = _list_of("Facts", "Facts of a person.", Fact)
Profile: Final = model_of(person.Profile, receipt=_OBJECT, url=_URL)
Person: Final = model_of(person.Person, url=_URL)
PersonPage: Final = _page_of("PersonPage", "Part of the list of people.", Person)
ErasedPerson: Final = model_of(person.ErasedPerson)

# -- contexts, turns and recall ---------------------------------------------------------------

model_of(hit.TextSpan)
Hit: Final = model_of(
    hit.Hit,
    doc="A message that was found, and why.",
    parts=Doc("The parts of the score."),
    chance=Doc("The probability that the message is evidence for the question."),
    also_in=Doc("Other conversations with this message at this number: branches."),
    superseded_by=Doc("The newer message that outdates what this one states."),
    passage=Doc("The parts of a long message that answer, in Unicode characters; else empty."),
    text=Annotated[str, Doc("The message's text, or its passage with [...] for what is left out.")],
    explanation=Annotated[str, Doc("", "score 2.10: words +1.40, meaning +0.70; chance 62%")],
)
Hits: Final = _page_of(
    "Hits",
    "The messages that were found, best first.",
    Hit,
    BaseModel,
    earned=Annotated[int, Doc("How many of the first are likely enough to be evidence.")],
    degraded=Annotated[
        list[str],
        Doc("Why messages may be missing: their vectors are not created yet. Usually empty."),
    ],
)
model_of(Budget, doc="The budget of a context.")
model_of(Accounting, doc="Where the tokens went; all fields but `window` add up to it.")
model_of(LeftOut, doc="What is not in the context.")
model_of(values.Section)
Context: Final = model_of(values.Context)
Turn: Final = model_of(values.Turn)
StoppedTurns: Final = _model("StoppedTurns", "How many answers were stopped.", stopped=int)
PastTurnPage: Final = _page_of(
    "PastTurnPage", "Part of the list of turns, newest first.", model_of(values.PastTurn)
)
for _kind in (values.SentMessage, values.SentSection, values.PastHit):
    model_of(_kind)
Prompt: Final = model_of(values.Prompt)
Topic: Final = model_of(TopicStats, "Topic", "A topic and its statistics.")
Topics: Final = _list_of("Topics", "The topics, the active one first.", Topic)
TopicMatch: Final = _model(
    "TopicMatch",
    "The topic that is most similar to a text; all null if there is nothing to compare.",
    **{field: hint | None for field, hint in get_type_hints(topics.TopicMatch).items()},
)

# -- digests ----------------------------------------------------------------------------------

Digest: Final = model_of(
    log.Digest,
    doc="A summary and important data for a span of messages.",
    data=_OBJECT,
    receipt=_OBJECT,
    in_force=bool,
)
DigestPage: Final = _page_of("DigestPage", "Part of the chain of digests.", Digest)
Digests: Final = _list_of("Digests", "Some digests.", Digest)
DigestCount: Final = model_of(values.DigestCount)
DigestDifference: Final = model_of(
    Difference,
    "DigestDifference",
    "The difference between two digests.",
    text=Doc("A unified diff of the summaries."),
    added=list[dict[str, Any]],
    removed=list[dict[str, Any]],
)
ImportantItem: Final = model_of(values.ImportantItem)
model_of(values.RejectedItem)
Important: Final = model_of(values.Important)
DigestVersion: Final = model_of(values.DigestVersion)
model_of(values.Coverage)
Lineage: Final = model_of(values.Lineage)

# -- statistics, jobs and the caller ----------------------------------------------------------

model_of(stats.Cost, doc="The prompt of one answer.", price=Doc("US dollars."))
ConversationStats: Final = model_of(
    stats.Stats,
    "Stats",
    "The size of a conversation, and what an answer costs in three ways.",
    lean=Doc("Only the newest messages."),
    with_tools=Doc("The same plus the results of recall tools."),
    whole=Doc("The full history in every request."),
)
TenantStats: Final = model_of(values.TenantStats)
model_of(values.CostPoint)
Costs: Final = model_of(values.Costs)
model_of(values.StuckDigest)
model_of(values.FailedDigest)
Work: Final = model_of(values.Work)
model_of(
    NoteCount,
    "ImportNote",
    "How often something was found that could not be imported as it is.",
    examples=Doc("Where it was found first."),
)
model_of(
    Report,
    "ImportReport",
    "The result of importing another program's file.",
    formats=Doc("", ["chatgpt"]),
    known=Doc("Messages that were already stored."),
)
model_of(Manifest, doc="The contents of an export.")
Job: Final = model_of(values.Job, url=str)
Jobs: Final = _list_of("Jobs", "The tenant's jobs, newest first.", Job)
model_of(values.ServerLimits)
model_of(values.ServerInfo)
Me: Final = model_of(values.Me)
