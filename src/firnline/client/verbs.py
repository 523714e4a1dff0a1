"""`Client`: every operation of the REST API, named as in `Memory`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar, Unpack

from firnline.client import values
from firnline.client.connection import ApiRequest, Connection
from firnline.client.decode import decode
from firnline.client.encode import (
    ContextOptions,
    TurnOptions,
    idempotency_header,
    message_of,
    messages_of,
    plain,
)
from firnline.client.files import body_of, save
from firnline.client.paths import escape_name
from firnline.context.budget import BudgetLike
from firnline.context.plan import Strategy
from firnline.digest.fact import Fact
from firnline.engine.digest_history import Difference, State
from firnline.engine.person import ErasedPerson, Person, Profile
from firnline.engine.recall import Filters
from firnline.engine.stats import PRICE, Stats
from firnline.errors import FirnlineError, StoreTimeout, UnknownConversation
from firnline.language.dates import Interval
from firnline.log import limits
from firnline.log.chain import Verification
from firnline.log.entry import Appended, Archived, Digest, Entry, Erased, Head, Project
from firnline.log.hit import Hit, Hits
from firnline.log.message import format_time
from firnline.log.wire import MessageLike
from firnline.store.files import local_path, source_path
from firnline.topics import TopicMatch, TopicStats
from firnline.transfer.importer import Report
from firnline.transfer.jsonl import Manifest

T = TypeVar("T")

_JSON_LINES: Final = "application/jsonl"
_BYTES: Final = "application/octet-stream"


class Client:
    """A tenant's conversations on a Firnline server.

    ``async with Client("http://localhost:8080", key="fl_...") as client:`` closes the
    connections at its end. Errors are those of the library; `StoreUnavailable` if the server cannot
    be reached, `StoreTimeout` if the outcome is unknown.

    A request is retried, up to `retries` times, if that is safe: it was not executed (429, 503, no
    connection), it only reads, or it has an idempotency key, as every append and turn does.
    `timeout` is how long to wait for more data, in seconds.
    """

    def __init__(
        self, url: str, *, key: str | None = None, timeout: float = 600.0, retries: int = 3
    ) -> None:
        self._to = Connection(url, key=key, timeout=timeout, retries=retries)

    def __repr__(self) -> str:
        return f"Client({self._to.url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._to.close()

    # -- requests -----------------------------------------------------------------------------

    async def _get(self, kind: type[T], path: str, **query: Any) -> T:
        found = await self._to.json(
            ApiRequest(method="GET", path=path, query=query, repeatable=True)
        )
        return decode(kind, found)

    async def _list(self, kind: type[T], path: str, **query: Any) -> list[T]:
        """A list that is not paged."""
        found = await self._to.json(
            ApiRequest(method="GET", path=path, query=query, repeatable=True)
        )
        return _decode_list(kind, found)

    async def _pages(
        self, kind: type[T], path: str, limit: int | None = None, **query: Any
    ) -> AsyncGenerator[T, None]:
        """A paged list; pages are fetched as you iterate, `limit` items at most."""
        cursor, left = None, limit
        while left is None or left > 0:
            size = limits.PAGE_MAX if left is None else min(left, limits.PAGE_MAX)
            params = {**query, "limit": size, "cursor": cursor}
            page = await self._to.json(
                ApiRequest(method="GET", path=path, query=params, repeatable=True)
            )
            found = _decode_list(kind, page)
            for item in found:
                yield item
            cursor = page["next_cursor"]
            if cursor is None:
                return
            left = None if left is None else left - len(found)

    async def _post(self, path: str, body: Mapping[str, Any] | None = None, **more: Any) -> Any:
        sent = None if body is None else plain(body)
        return await self._to.json(
            ApiRequest(**{"method": "POST", "path": path, "body": sent, **more})
        )

    # -- writing ------------------------------------------------------------------------------

    async def append(
        self,
        conversation: str,
        messages: MessageLike | Iterable[MessageLike],
        *,
        expected_seq: int | None = None,
        idempotency_key: str | None = None,
        person: str | None = None,
    ) -> Appended:
        """Append one message or several, all or none; durable when this returns.

        With the same `idempotency_key` nothing is stored twice; by default, each append has a new
        one, so that it can be retried.
        """
        body: dict[str, Any] = {"messages": messages_of(messages)}
        if expected_seq is not None:
            body["expected_seq"] = expected_seq
        if person is not None:
            body["person"] = person
        stored = await self._to.json(
            ApiRequest(
                method="POST",
                path=_at(conversation, "messages"),
                body=body,
                headers=idempotency_header(idempotency_key),
                repeatable=True,
            )
        )
        return Appended(tuple(_decode_list(Entry, stored)), stored["replayed"])

    async def describe(
        self,
        conversation: str,
        *,
        project: str | None = None,
        person: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Head:
        """Set a conversation's project, person or metadata."""
        body = {"project": project, "person": person, "metadata": metadata}
        return (await self._change(conversation, body)).head

    async def set_strategy(
        self, conversation: str, strategy: Strategy | str
    ) -> values.StrategyInfo:
        """Set the strategy of a conversation, by name or as a `Strategy`."""
        named = {"name": strategy} if isinstance(strategy, str) else strategy.to_json()
        return (await self._change(conversation, {"strategy": named})).strategy

    async def _change(self, conversation: str, body: Mapping[str, Any]) -> values.Conversation:
        changed = await self._post(_at(conversation), body, method="PATCH", repeatable=True)
        return decode(values.Conversation, changed)

    async def branch(self, conversation: str, seq: int, name: str) -> Head:
        """Create a conversation `name` that starts with the entries 0 to `seq`, word for word."""
        body = {"name": name, "seq": seq}
        return decode(Head, await self._post(_at(conversation, "branch"), body, repeatable=True))

    async def pin(self, conversation: str, seq: int) -> None:
        """Include this entry in every context from now on, word for word."""
        path = _at(conversation, "pins", seq)
        await self._to.json(ApiRequest(method="PUT", path=path, repeatable=True))

    async def unpin(self, conversation: str, seq: int) -> None:
        """Remove the pin from an entry."""
        path = _at(conversation, "pins", seq)
        await self._to.json(ApiRequest(method="DELETE", path=path, repeatable=True))

    async def pinned(self, conversation: str) -> list[Entry]:
        """The pinned entries, which every context shows."""
        return await self._list(Entry, _at(conversation, "pins"))

    # -- contexts and turns -------------------------------------------------------------------

    async def context(
        self,
        conversation: str,
        budget: BudgetLike | None = None,
        question: str | None = None,
        **options: Unpack[ContextOptions],
    ) -> values.Context:
        """What a model should see of the conversation now, within `budget`.

        The default is the window of the server's model.
        """
        body = {"budget": budget, "question": question, **options}
        found = await self._post(_at(conversation, "context"), body, repeatable=True)
        return decode(values.Context, found)

    async def turn(
        self,
        conversation: str,
        message: str | MessageLike,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[TurnOptions],
    ) -> values.Turn:
        """Store a user message, let the server's model answer, store the answer."""
        request = _turn(conversation, message, idempotency_key, options)
        return decode(values.Turn, await self._to.json(request))

    async def stream(
        self,
        conversation: str,
        message: str | MessageLike,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[TurnOptions],
    ) -> AsyncGenerator[str | values.Turn, None]:
        """Like `turn`, with the answer's text in pieces as it arrives, and then the `Turn`.

        Text that was received is stored, even if the connection is lost.
        """
        request = _turn(conversation, message, idempotency_key, {**options, "stream": True})
        async with aclosing(self._to.events(request)) as events:
            async for name, data in events:
                if name == "delta":
                    yield str(data["text"])
                elif name == "turn":
                    yield decode(values.Turn, data)
                    return
        raise StoreTimeout(
            "stream ended without a final event; retry with the same idempotency key"
        )

    async def stop(self, conversation: str) -> int:
        """Stop the answers that the server is streaming into the conversation; returns how many."""
        return int((await self._post(_at(conversation, "turns", "stop")))["stopped"])

    def turns(
        self, conversation: str, *, limit: int | None = None
    ) -> AsyncGenerator[values.PastTurn, None]:
        """The turns with a recorded prompt, newest first."""
        return self._pages(values.PastTurn, _at(conversation, "turns"), limit)

    async def prompt(self, conversation: str, seq: int) -> values.Prompt:
        """The exact prompt behind the answer `seq`."""
        return await self._get(values.Prompt, _at(conversation, "turns", seq))

    # -- digests ------------------------------------------------------------------------------

    async def digest(self, conversation: str) -> values.DigestCount:
        """Create pending digests now."""
        return decode(values.DigestCount, await self._post(_at(conversation, "digests")))

    def digests(
        self, conversation: str, *, limit: int | None = None
    ) -> AsyncGenerator[Digest, None]:
        """The conversation's digests in order, including failed and undone ones."""
        return self._pages(Digest, _at(conversation, "digests"), limit)

    async def in_force(self, conversation: str) -> tuple[Digest, ...]:
        """The digests in force, oldest span first."""
        return tuple(await self._list(Digest, _at(conversation, "digests", "in-force")))

    async def version(self, conversation: str, version: int) -> Digest:
        """One digest with its important data, its evidence and its receipt."""
        return await self._get(Digest, _at(conversation, "digests", version))

    def expand(self, conversation: str, version: int) -> AsyncGenerator[Entry, None]:
        """The entries that a digest covers, word for word."""
        return self._pages(Entry, _at(conversation, "digests", version, "messages"))

    async def diff(self, conversation: str, before: int, after: int) -> Difference:
        """What changed from one digest to another."""
        path = _at(conversation, "digests", after, "diff")
        return await self._get(Difference, path, before=before)

    async def lineage(self, conversation: str) -> values.Lineage:
        """The chain of digests, stuck ones, coverage and durations."""
        return await self._get(values.Lineage, _at(conversation, "lineage"))

    async def state(self, conversation: str) -> State:
        """The state of the conversation's memory: important data, summary and coverage."""
        return await self._get(State, _at(conversation, "state"))

    async def important(self, conversation: str) -> values.Important:
        """The important data by item: evidence, replaced and rejected items."""
        return await self._get(values.Important, _at(conversation, "important"))

    async def remember(
        self, conversation: str, important_data: Mapping[str, Any], *, summary: str | None = None
    ) -> Digest:
        """Add important data that the application knows."""
        body = {"important_data": important_data, "summary": summary}
        return decode(Digest, await self._post(_at(conversation, "important"), body))

    async def revert(self, conversation: str, seq: int) -> Digest:
        """Restore the important data that the entry `seq` replaced."""
        path = _at(conversation, "important", "revert")
        return decode(Digest, await self._post(path, {"seq": seq}))

    async def undo(self, conversation: str, *, topic: int | None = None) -> Digest:
        """Undo the newest digest, or a topic's; it is kept, but no longer in force."""
        path = _at(conversation, "digests", "undo")
        return decode(Digest, await self._post(path, {"topic": topic}))

    async def clear(self, conversation: str) -> int:
        """Undo every digest; messages are kept. Returns how many were undone."""
        return int((await self._post(_at(conversation, "digests", "clear")))["digests"])

    async def rebuild(self, conversation: str, *, only_offline: bool = False) -> list[Digest]:
        """Rebuild the digests in force from the log."""
        path = _at(conversation, "digests", "rebuild")
        return _decode_list(Digest, await self._post(path, {"only_offline": only_offline}))

    # -- reading ------------------------------------------------------------------------------

    def read(
        self,
        conversation: str,
        *,
        first_seq: int = 0,
        last_seq: int | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> AsyncGenerator[Entry, None]:
        """The entries from `first_seq` to `last_seq`, one page at a time."""
        query = {"first_seq": first_seq, "last_seq": last_seq}
        order = "desc" if newest_first else "asc"
        return self._pages(Entry, _at(conversation, "messages"), limit, order=order, **query)

    async def entry(self, conversation: str, seq: int) -> Entry:
        """One entry."""
        return await self._get(Entry, _at(conversation, "messages", seq))

    async def interval(self, when: str, *, zone: str = "UTC") -> Interval:
        """The interval that a phrase means now: yesterday, last tuesday, 2026-03."""
        found = await self._get(dict, "/dates", when=when, zone=zone)
        return decode(Interval, {**found, "words": found["when"]})

    def dated(
        self, conversation: str, when: str, *, zone: str = "UTC", limit: int | None = None
    ) -> AsyncGenerator[Entry, None]:
        """The entries of a day or a period, given as a phrase: yesterday, last tuesday."""
        path = _at(conversation, "dates")
        return self._pages(Entry, path, limit, when=when, zone=zone)

    async def head(self, conversation: str) -> Head | None:
        """The head of a conversation, or None if it does not exist."""
        try:
            return await self._get(Head, _at(conversation))
        except UnknownConversation:
            return None

    async def conversation(self, conversation: str) -> values.Conversation:
        """A conversation: head, strategy, state, digests in force, pins."""
        return await self._get(values.Conversation, _at(conversation))

    def conversations(
        self, *, project: str | None = None, person: str | None = None, limit: int | None = None
    ) -> AsyncGenerator[Head, None]:
        """The conversations, sorted by name."""
        return self._pages(Head, "/conversations", limit, project=project, person=person)

    def people(self, *, limit: int | None = None) -> AsyncGenerator[Person, None]:
        """The people by name, with the number of their conversations."""
        return self._pages(Person, "/people", limit)

    async def facts(
        self,
        *,
        person: str,
        as_of: str | None = None,
        known_at: str | None = None,
        history: bool = False,
    ) -> list[Fact]:
        """What a person stated in all their conversations, with quotes and times."""
        path = f"/people/{escape_name(person)}/facts"
        asked = {"as_of": as_of, "known_at": known_at, "history": history or None}
        return await self._list(Fact, path, **asked)

    async def profile(self, person: str) -> Profile:
        """What holds of a person now, and the facts it rests on."""
        return await self._get(Profile, f"/people/{escape_name(person)}")

    async def revert_fact(self, person: str, fact: str) -> Fact:
        """Withdraw a fact by its id: what it replaced holds again."""
        path = f"/people/{escape_name(person)}/facts/{fact}/revert"
        return decode(Fact, await self._post(path))

    async def erase_person(self, person: str) -> ErasedPerson:
        """Erase a person: conversations, branches, facts, profile and prompts."""
        path = f"/people/{escape_name(person)}"
        return decode(ErasedPerson, await self._to.json(ApiRequest(method="DELETE", path=path)))

    def projects(self, *, limit: int | None = None) -> AsyncGenerator[values.Board, None]:
        """The projects by name, each with its totals."""
        return self._pages(values.Board, "/projects", limit)

    async def project(self, name: str) -> values.Board:
        """A project with the state of its newest conversation."""
        return await self._get(values.Board, f"/projects/{escape_name(name)}")

    async def save_project(self, project: Project) -> Project:
        """Create or replace a project."""
        names = ("status", "schedule", "task", "metadata")
        body = {name: getattr(project, name) for name in names}
        path = f"/projects/{escape_name(project.name)}"
        saved_ = await self._post(path, body, method="PUT", repeatable=True)
        return decode(Project, saved_)

    async def recall(
        self,
        conversation: str | None,
        query: str,
        *,
        limit: int | None = None,
        tokens: int | None = None,
        **filters: Unpack[Filters],
    ) -> Hits:
        """Old entries that match `query`, best first; None searches all conversations."""
        body = {"query": query, "limit": limit, "tokens": tokens, **filters}
        path = "/search" if conversation is None else _at(conversation, "search")
        found = await self._post(path, body, repeatable=True)
        degraded, earned = found.get("degraded", ()), found.get("earned", 0)
        return Hits(_decode_list(Hit, found), degraded, earned)

    # -- topics -------------------------------------------------------------------------------

    async def topics(self, conversation: str) -> list[TopicStats]:
        """The conversation's topics, the active one first."""
        return await self._list(TopicStats, _at(conversation, "topics"))

    async def topic_stats(self, conversation: str, topic: int) -> TopicStats:
        """One topic."""
        return await self._get(TopicStats, _at(conversation, "topics", topic))

    def topic_history(self, conversation: str, topic: int) -> AsyncGenerator[Entry, None]:
        """Every message of a topic, archived or not, in order."""
        return self._pages(Entry, _at(conversation, "topics", topic, "messages"))

    async def topic_context(
        self, conversation: str, budget: BudgetLike | None = None
    ) -> values.Context:
        """The active topic: its summary as a system message, then its active messages."""
        path = _at(conversation, "topics", "context")
        found = await self._post(path, {"budget": budget}, repeatable=True)
        return decode(values.Context, found)

    async def match_topic(self, conversation: str, text: str) -> TopicMatch | None:
        """The topic most similar to a text, with the raw cosine and the similarity."""
        path = _at(conversation, "topics", "match")
        found = await self._post(path, {"text": text}, repeatable=True)
        return None if found["topic"] is None else decode(TopicMatch, found)

    async def merge_topics(self, conversation: str, into: int, topic: int) -> TopicStats:
        """Merge `topic` into the topic `into`."""
        path = _at(conversation, "topics", into, "merge")
        return decode(TopicStats, await self._post(path, {"topic": topic}))

    async def tag_topic(
        self, conversation: str, topic: int, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> TopicStats:
        """Add and remove tags of a topic."""
        path = _at(conversation, "topics", topic, "tags")
        body = {"add": add, "remove": remove}
        return decode(TopicStats, await self._post(path, body, method="PATCH", repeatable=True))

    async def feedback(self, conversation: str, seq: int, vote: Literal[1, -1]) -> TopicStats:
        """Rate an entry as useful (1) or not (-1)."""
        body = {"seq": seq, "vote": vote}
        return decode(TopicStats, await self._post(_at(conversation, "feedback"), body))

    # -- verify, archive, erase ---------------------------------------------------------------

    async def verify(self, conversation: str, *, anchor: str | None = None) -> Verification:
        """Compute every hash again on the server; `anchor` must be in the chain."""
        body = {"anchor": anchor}
        found = await self._post(_at(conversation, "verify"), body, repeatable=True)
        return decode(Verification, found)

    async def checkpoint(self, conversation: str) -> str:
        """The log as it is now, as a signed note; if you keep it, a rewritten log shows."""
        return str((await self._post(_at(conversation, "checkpoint")))["checkpoint"])

    async def prove(self, conversation: str, seq: int) -> str:
        """The proof that entry `seq` is in the log; ``firnline check-proof`` checks it."""
        return str((await self._post(_at(conversation, "proof"), {"seq": seq}))["proof"])

    async def prove_growth(self, conversation: str, older: str) -> str:
        """The proof that the log continues the checkpoint `older`."""
        return str((await self._post(_at(conversation, "proof"), {"since": older}))["proof"])

    async def archive(self, conversation: str, *, keep: int = 1_000) -> Archived:
        """Compress all but the newest `keep` entries."""
        return decode(Archived, await self._post(_at(conversation, "archive"), {"keep": keep}))

    async def restore(self, conversation: str) -> int:
        """Decompress all archived entries; returns how many there were."""
        return int((await self._post(_at(conversation, "restore")))["entries"])

    async def branches(self, conversation: str) -> list[str]:
        """The names of the conversations that hold copies of its messages."""
        return await self._list(str, _at(conversation, "branches"))

    async def erase(self, conversation: str, *, branches: bool = False) -> Erased:
        """Erase a conversation, and with `branches` also those that hold copies of its messages.

        The certificate names those that still hold some (`survives`).
        """
        return await self._erase(_at(conversation), branches=branches or None)

    async def erase_messages(
        self,
        conversation: str,
        first_seq: int | None = None,
        last_seq: int | None = None,
        *,
        role: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        branches: bool = False,
    ) -> Erased:
        """Erase a message, a span, or those of `role` or dated in [since, until)."""
        path, dated = _at(conversation, "messages"), {"since": _time(since), "until": _time(until)}
        if first_seq is not None and (last_seq, role, since, until) == (None,) * 4:
            return await self._erase(f"{path}/{first_seq}", branches=branches or None)
        span = {"first_seq": first_seq, "last_seq": last_seq, "role": role, **dated}
        return await self._erase(path, **span, branches=branches or None)

    async def erase_before(
        self,
        until: datetime,
        *,
        project: str | None = None,
        role: str | None = None,
        branches: bool = False,
    ) -> list[Erased]:
        """Erase the messages dated before `until`; a certificate for each conversation."""
        rule = {"until": _time(until), "project": project, "role": role}
        query = {**rule, "branches": branches or None}
        request = ApiRequest(method="DELETE", path="/old-messages", query=query)
        return _decode_list(Erased, await self._to.json(request))

    async def _erase(self, path: str, **query: Any) -> Erased:
        request = ApiRequest(method="DELETE", path=path, query=query)
        return decode(Erased, await self._to.json(request))

    # -- statistics ---------------------------------------------------------------------------

    async def me(self) -> values.Me:
        """The caller, the limits and the server's version."""
        return await self._get(values.Me, "/me")

    async def stats(self, conversation: str, *, price: float = PRICE) -> Stats:
        """The size of the conversation, and what an answer costs."""
        return await self._get(Stats, _at(conversation, "stats"), price=price)

    async def tenant_stats(self, *, price: float = PRICE) -> values.TenantStats:
        """The size of all conversations, and what an answer costs."""
        return await self._get(values.TenantStats, "/stats", price=price)

    async def costs(self, *, price: float = PRICE) -> values.Costs:
        """What answers cost, compared with sending the full history."""
        return await self._get(values.Costs, "/costs", price=price)

    async def work(self) -> values.Work:
        """The digests of all conversations: pending, stuck, failed, and how long they take."""
        return await self._get(values.Work, "/work")

    # -- export and import --------------------------------------------------------------------

    async def export(
        self, path: str | PathLike[str], *, conversations: Sequence[str] | None = None
    ) -> Manifest:
        """Write conversations to a JSON Lines file, which appears when it is complete."""
        query = {"conversation": None if conversations is None else list(conversations)}
        request = ApiRequest(method="GET", path="/export", query=query, repeatable=True)
        return await self._download(request, path)

    async def import_(self, path: str | PathLike[str]) -> Manifest:
        """Upload an export and wait for the import. Importing it again adds nothing."""
        job = await self._wait_for(await self.begin_import(path))
        if job.result is None:
            raise FirnlineError(f"import {job.id} is still running; call job() later")
        return job.result

    async def import_file(
        self,
        path: str | PathLike[str],
        *,
        as_format: str | None = None,
        zone: str = "UTC",
        person: str | None = None,
    ) -> Report:
        """Import a file of another program, or a zip, and wait; see docs/import.md."""
        query = {"name": source_path(path).name, "format": as_format, "zone": zone}
        job = await self._wait_for(await self._upload(path, query | {"person": person}, _BYTES))
        if job.report is None:
            raise FirnlineError(f"import {job.id} is still running; call job() later")
        return job.report

    async def begin_import(self, path: str | PathLike[str]) -> values.Job:
        """Upload an export; the server imports it in the background."""
        return await self._upload(path, {}, _JSON_LINES)

    async def _upload(
        self, path: str | PathLike[str], query: Mapping[str, str | None], kind: str
    ) -> values.Job:
        size, content = body_of(source_path(path))
        headers = {"content-type": kind, "content-length": str(size)}
        more: dict[str, Any] = {"content": content, "headers": headers, "repeatable": True}
        request = ApiRequest(method="POST", path="/import", query=query, **more)
        return decode(values.Job, await self._to.json(request))

    async def _wait_for(self, job: values.Job) -> values.Job:
        """Wait for the job; its error is raised."""
        if job.state == "running":
            async with aclosing(self.watch(job.id)) as states:
                async for state in states:
                    job = state
        if job.state == "running":
            job = await self.job(job.id)
        if job.error is not None:
            raise job.error
        return job

    async def begin_export(self, *, conversations: Sequence[str] | None = None) -> values.Job:
        """Let the server write an export in the background; fetch it when the job is done."""
        return decode(values.Job, await self._post("/exports", {"conversations": conversations}))

    async def fetch(self, job: str, path: str | PathLike[str]) -> Manifest:
        """Download the file of an export job; it appears when it is complete and checked."""
        request = ApiRequest(method="GET", path=f"/jobs/{escape_name(job)}/file", repeatable=True)
        return await self._download(request, path)

    async def _download(self, request: ApiRequest, path: str | PathLike[str]) -> Manifest:
        async with aclosing(self._to.pieces(request)) as pieces:
            return await save(pieces, local_path(path))

    async def jobs(self) -> list[values.Job]:
        """The export and import jobs of the server, newest first."""
        return await self._list(values.Job, "/jobs")

    async def job(self, job: str) -> values.Job:
        """The progress and the result of a job."""
        return await self._get(values.Job, f"/jobs/{escape_name(job)}")

    async def watch(self, job: str) -> AsyncGenerator[values.Job, None]:
        """The job whenever it has progressed, and when it has ended."""
        request = ApiRequest(method="GET", path=f"/jobs/{escape_name(job)}/events", repeatable=True)
        async with aclosing(self._to.events(request)) as events:
            async for _, data in events:
                yield decode(values.Job, data)


# -- helpers ----------------------------------------------------------------------------------


def _at(conversation: str, *segments: str | int) -> str:
    """The path of a conversation, or of something in it."""
    return "/".join(["/conversations", escape_name(conversation), *map(str, segments)])


def _decode_list(kind: type[T], found: Any) -> list[T]:
    return [decode(kind, item) for item in found["data"]]


def _turn(
    conversation: str, message: str | MessageLike, key: str | None, options: Mapping[str, Any]
) -> ApiRequest:
    return ApiRequest(
        method="POST",
        path=_at(conversation, "turns"),
        body={"message": message_of(message), **plain(options)},
        headers=idempotency_header(key),
        repeatable=True,
    )


def _time(at: datetime | None) -> str | None:
    return None if at is None else format_time(at)
