"""Where a request and its answer belong in the log, and storing them there.

The known prefixes of histories are cards that point to an entry. They are derived from the log, and
the log decides. A history that continues differently from the log becomes a branch: nothing is
changed, and nothing is stored twice within a conversation.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NamedTuple

from firnline.context.context import Context
from firnline.context.marks import INTERRUPTED, MARK_KEY
from firnline.digest import APPLICATION
from firnline.errors import ConflictError, KeyReused, UnknownConversation
from firnline.log.draft import messages_size
from firnline.log.entry import Entry, Head
from firnline.log.message import Message
from firnline.log.regex import regex
from firnline.log.threads import run_by_size, text_size
from firnline.memory import Memory
from firnline.server.drafts import AnswerDraft, QuestionRef, store_answer
from firnline.server.prompts import try_record
from firnline.server.proxy import limits
from firnline.server.proxy.align import Agreement, agree, overlap
from firnline.server.proxy.compaction import has_summary, new_messages
from firnline.server.proxy.dialect import Location, UpstreamAnswer
from firnline.server.proxy.prefixes import KnownPrefix, find_prefix, key_hashes, save_prefixes
from firnline.server.proxy.request import (
    MemoryStatus,
    ProxyRequest,
    Sender,
    Thread,
    extend_hash,
    fingerprint,
    history_hashes,
    is_spoken,
)

_BRANCHED: Final = regex(r"--[0-9a-f]{8}$")
_BRANCH: Final = ", branch"
_FULL_HISTORY: Final = frozenset({"header x-openwebui-chat-id"})
"""Names given by clients that send their full history, and request titles and the like under them.

A request that does not start like the conversation is then not part of it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedRequest:
    """The messages of a request, and the status with its location; without one it is not stored."""

    messages: Sequence[Message] = ()
    status: MemoryStatus = field(default_factory=MemoryStatus)


class _Plan(NamedTuple):
    """What to store where: `new` messages at a location, or in a branch that ends there."""

    location: Location
    new: Sequence[Message] = ()
    branch: bool = False


async def locate_conversation(request: ProxyRequest) -> LocatedRequest:
    """Find where the request belongs and store its new messages; durable when this returns.

    With an endpoint, a failure of memory does not end the chat. Without one it is raised, because
    only memory could answer, and in a thread, because only memory has what was said before.
    """
    if not request.uses_memory:
        return LocatedRequest()
    messages: Sequence[Message] = ()
    try:
        load = partial(request.dialect.load_messages, request.body)
        messages = await run_by_size(request.size, load)
        location = await _store(request, messages)
        if request.thread is not None:  # what the application says now is in the log
            given, new = messages[: request.thread.given], messages[request.thread.given :]
            messages = [*given, *filter(is_spoken, new)]
        if cards := request.dialect.start_cards(request.memory.tenant, location):
            await request.memory.cards.put(*cards)
        return LocatedRequest(messages=messages, status=MemoryStatus(location=location))
    except Exception as error:
        if request.upstream is None or request.thread is not None:
            raise
        status = MemoryStatus().degrade("not stored", error)
        return LocatedRequest(messages=messages, status=status)


async def _store(request: ProxyRequest, messages: Sequence[Message]) -> Location:
    for _ in range(limits.LOCATE_TRIES):
        plan = await _plan(request, messages)
        with suppress(ConflictError):  # another request appended: look again
            return await _store_new(request.memory, plan, request.sender)
    plan = await _plan(request, messages)
    return await _store_new(request.memory, plan, request.sender)


# -- planning ---------------------------------------------------------------------------------


async def _plan(request: ProxyRequest, messages: Sequence[Message]) -> _Plan:
    if request.thread is not None:
        return await _plan_thread(request, request.thread, messages[request.thread.given :])
    memory, name, attempt = request.memory, request.name, request.attempt
    spoken = [message for message in messages if is_spoken(message)]
    # A name has no line break, so no name is equal to a sender.
    seed = name.conversation if name else f"\n{request.sender.id}"
    hashes = await run_by_size(request.size, partial(history_hashes, spoken, seed))
    location = Location(
        conversation=name.conversation if name else f"chat-{secrets.token_hex(8)}",
        source=name.source if name else "new",
        named=name is not None,
        hashes=hashes,
        anonymous=name is None and not request.sender.named,
        key=attempt.key,
    )
    if repeated := await find_prefix(memory, key_hashes(location)):
        return await _plan_repeated(request, location, messages, repeated)
    # A history without an answer belongs to no conversation: two users may start with "hi".
    unanswered = not any(message.role == "assistant" for message in spoken)
    again = unanswered and attempt.again and not name
    prefix = None if unanswered and name else await find_prefix(memory, location.hashes)
    if prefix and unanswered and not again:  # unless all that came of it was a failure
        head = await memory.head(prefix.conversation) if prefix.messages == len(spoken) else None
        prefix = prefix if head is not None and head.has_failed else None
    if prefix:
        count, rest = prefix.messages, spoken[prefix.messages :]
        log = await memory.read(
            prefix.conversation, first_seq=prefix.seq + 1, limit=len(rest) + limits.ENTRIES_BEYOND
        )
        strict = location.anonymous
        if again and agree((), log, strict=strict).entries < len(log):  # another client's question
            return _Plan(location, _new_messages(messages, 0))
        location = _at_prefix(location, prefix)
        agreed = await run_by_size(_size(request, log), partial(agree, rest, log, strict=strict))
        plan = _plan_new(request, location, messages, count, agreed, log)
        return (plan.branch and await _plan_compacted(request, location, messages)) or plan
    head = await memory.head(location.conversation) if name else None
    if head is None:
        return _Plan(location, _new_messages(messages, 0))
    return await _plan_named(request, location, messages, head, unanswered=unanswered)


def _size(request: ProxyRequest, log: Sequence[Entry]) -> int:
    """About how many characters a request and the messages of a log have."""
    return request.size + messages_size([entry.message for entry in log])


def _at_prefix(location: Location, known: KnownPrefix) -> Location:
    """The location of a history of which this prefix is known."""
    source = location.source if location.named else "prefix"
    return replace(
        location,
        conversation=known.conversation,
        source=source,
        question=known.seq,
        compacted=known.compacted,
    )


async def _plan_thread(request: ProxyRequest, thread: Thread, messages: Sequence[Message]) -> _Plan:
    """New messages behind an entry, or at the end of a conversation."""
    spoken = [message for message in messages if is_spoken(message)]
    seed = f"\nthread {thread.conversation}\n{thread.seq}"
    hashes = await run_by_size(request.size, partial(history_hashes, spoken, seed))
    location = Location(
        conversation=thread.conversation,
        source="conversation" if thread.seq is None else "previous_response_id",
        named=thread.seq is None,
        hashes=hashes,
        key=request.attempt.key,
        is_thread=True,
    )
    if repeated := await find_prefix(request.memory, key_hashes(location)):
        return await _plan_repeated(request, location, messages, repeated)
    if thread.seq is None:
        head = await request.memory.head(thread.conversation)
        if head is None or head.seq < 0:
            return _Plan(location, messages)
        return await _plan_named(request, location, messages, head, unanswered=True)
    location = replace(location, question=thread.seq)
    log = await request.memory.read(
        thread.conversation, first_seq=thread.seq + 1, limit=len(messages) + limits.ENTRIES_BEYOND
    )
    agreed = await run_by_size(_size(request, log), partial(agree, spoken, log))
    return _plan_new(request, location, messages, 0, agreed, log)


async def _plan_repeated(
    request: ProxyRequest, location: Location, messages: Sequence[Message], found: KnownPrefix
) -> _Plan:
    """The same request under the same key: answered as before, or sent again."""
    log = await request.memory.read(
        found.conversation, first_seq=found.seq + 1, limit=limits.ENTRIES_BEYOND
    )
    location = _at_prefix(location, found)
    if log and _is_complete_answer(log[0]):
        return _Plan(replace(location, answer=log[0]))
    agreed = agree((), log, strict=location.anonymous)
    return _plan_new(request, location, messages, len(location.hashes), agreed, log)


async def _plan_named(
    request: ProxyRequest,
    location: Location,
    messages: Sequence[Message],
    head: Head,
    *,
    unanswered: bool,
) -> _Plan:
    """A named conversation, and a history whose start is not known.

    Either the client sends only new messages, and perhaps repeats its last question; or it sends
    what it has, and has dropped its oldest messages.
    """
    spoken = [message for message in messages if is_spoken(message)]
    reach = len(spoken) if unanswered else limits.TAIL_ENTRIES
    tail = await request.memory.read(location.conversation, first_seq=max(head.seq - reach, 0))
    location = replace(location, question=head.seq)
    agreed = await run_by_size(_size(request, tail), partial(overlap, spoken, tail))
    if agreed is not None and unanswered:
        later = tail[agreed.entries :]
        answered = request.attempt.again and len(later) == 1 and _is_complete_answer(later[0])
        whole = agreed.messages == len(spoken)
        # Nothing of the log follows: earlier requests failed, and the client sends them again.
        agreed = agreed if not later or (whole and answered) else None
    if agreed is None and (plan := await _plan_compacted(request, location, messages)):
        return plan
    if agreed is None and unanswered and location.source in _FULL_HISTORY:
        return _Plan(replace(location, question=-1), _new_messages(messages, 0), branch=True)
    if agreed is None:
        agreed = Agreement((), len(tail))
    return _plan_new(request, location, messages, 0, agreed, tail)


async def _plan_compacted(
    request: ProxyRequest, location: Location, messages: Sequence[Message]
) -> _Plan | None:
    """A history of which the client has replaced a part by a summary; None if it is no such one.

    Only what the log does not have is stored. The summary is no message of the conversation, so
    nothing is digested or recalled from it.
    """
    memory, name = request.memory, location.conversation
    head = await memory.head(name) if request.name else None
    if head is None:
        return None
    said = messages[_count_before_speech(messages) :]
    tail = await memory.read(name, first_seq=max(head.seq - limits.SUMMARY_ENTRIES, 0))
    if not await run_by_size(_size(request, tail), partial(has_summary, said, tail)):
        return None
    log = await memory.read(name, first_seq=max(head.seq - limits.COMPACTED_ENTRIES, 0))
    new = await asyncio.to_thread(new_messages, said, log)
    if new is None:
        return None
    found = replace(location, question=head.seq, next_seq=head.seq + 1, compacted=True)
    return _Plan(found, new)


def _plan_new(
    request: ProxyRequest,
    location: Location,
    messages: Sequence[Message],
    count: int,
    agreed: Agreement,
    log: Sequence[Entry],
) -> _Plan:
    """What is new after `count` known messages and those that agree; else a branch."""
    later = log[agreed.entries :]
    known = count + agreed.messages
    new = messages if location.is_thread and not known else _new_messages(messages, known)
    location = replace(
        location,
        question=agreed.seqs[-1] if agreed.seqs else location.question,
        next_seq=later[0].seq if later else (log[-1].seq if log else location.question) + 1,
    )
    if not later:
        return _Plan(location, new)
    again = (location.named or location.is_thread) and request.attempt.again
    if again and not new and len(later) == 1 and _is_complete_answer(later[0]):
        return _Plan(replace(location, answer=later[0]))
    return _Plan(location, new, branch=True)


def _count_before_speech(messages: Sequence[Message]) -> int:
    """How many messages of the application come before all others."""
    spoken = (at for at, message in enumerate(messages) if is_spoken(message))
    return next(spoken, len(messages))


def _new_messages(messages: Sequence[Message], count: int) -> Sequence[Message]:
    """The messages after the first `count` spoken ones.

    What the application says before the first spoken one is not part of the conversation.
    """
    places = [at for at, message in enumerate(messages) if is_spoken(message)]
    if count >= len(places):
        return ()
    return messages[places[count - 1] + 1 if count else places[0] :]


def _is_complete_answer(entry: Entry) -> bool:
    return entry.message.role == "assistant" and INTERRUPTED not in entry.message.metadata


# -- storing ----------------------------------------------------------------------------------


async def _branch(memory: Memory, location: Location) -> Location:
    """A new conversation with the same entries up to the location."""
    name = f"{_BRANCHED.sub('', location.conversation)}--{secrets.token_hex(4)}"
    if location.question >= 0:
        await memory.branch(location.conversation, location.question, name)
    source = f"{location.source.removesuffix(_BRANCH)}{_BRANCH}"
    return replace(
        location, conversation=name, source=source, named=False, next_seq=location.question + 1
    )


async def _store_new(memory: Memory, plan: _Plan, sender: Sender) -> Location:
    """Append the new messages, and save the prefixes that they complete."""
    await _check_person(memory, plan.location, sender)
    location = await _branch(memory, plan.location) if plan.branch else plan.location
    if not plan.new:
        return location
    # Clients may send several requests at once to a conversation they name; each is appended.
    expected = None if location.named else location.next_seq
    new = [_mark_unspoken(each) for each in plan.new] if location.anonymous else plan.new
    stored = await memory.append(
        location.conversation, new, expected_seq=expected, person=sender.person
    )
    spoken = [entry.seq for entry in stored if is_spoken(entry.message)]
    if location.compacted:  # between them is what was known
        spoken = spoken[-1:]
    hashes = location.hashes[len(location.hashes) - len(spoken) :]
    keys, last = key_hashes(location), stored[-1]
    seqs = (*spoken, *(last.seq for _ in keys))
    await save_prefixes(memory, location, (*hashes, *keys), seqs)
    first = stored[0].seq
    return replace(location, question=last.seq, hash=last.hash, next_seq=last.seq + 1, first=first)


async def _check_person(memory: Memory, location: Location, sender: Sender) -> None:
    """Raise `ConflictError` if a user names the conversation of another one."""
    named = sender.alone or (sender.person and location.named)
    head = await memory.head(location.conversation) if named else None
    allowed = (sender.person,) if sender.alone else (None, sender.person)
    if head is not None and head.person not in allowed:
        raise ConflictError(f"{location.conversation} is with another person")


def _mark_unspoken(message: Message) -> Message:
    """What the application says, marked so that no digest is made of it.

    It is valid for the request that says it, and may tell of a user whom no other request names.
    """
    if is_spoken(message):
        return message
    return replace(message, metadata={**message.metadata, MARK_KEY: "injected"})


async def separate_request(
    request: ProxyRequest, located: LocatedRequest, status: MemoryStatus
) -> LocatedRequest | None:
    """An anonymous request in a conversation of its own, if it was found in one that holds more.

    None if its conversation has only what it sent itself.
    """
    location, context = status.location, status.context
    if location is None or context is None or not location.anonymous or location.answer:
        return None
    try:
        own = await _own_location(request, located.messages, location, context)
    except Exception as error:  # noqa: BLE001 - the chat continues, as the client sent it
        return replace(located, status=MemoryStatus().degrade("no context", error))
    if own is None:
        return None
    return replace(located, status=replace(located.status, location=own))


async def _own_location(
    request: ProxyRequest, messages: Sequence[Message], location: Location, context: Context
) -> Location | None:
    """Another location, if a request added to this one meanwhile, or the application edited it."""
    memory = request.memory
    if context["digests"].pieces or context["important"].pieces:
        digests = await memory.digests(location.conversation)
        if any(each.made_by == APPLICATION and each.status == "completed" for each in digests):
            name = f"chat-{secrets.token_hex(8)}"
            own = replace(location, conversation=name, source="new", question=-1, next_seq=0)
            return await _store_new(memory, _Plan(own, _new_messages(messages, 0)), request.sender)
    head = await memory.head(location.conversation)
    if head is not None and head.seq > location.question:
        return await _branch(memory, location)
    return None


async def record_answer(
    request: ProxyRequest,
    status: MemoryStatus,
    answer: UpstreamAnswer,
    draft: AnswerDraft | None = None,
) -> MemoryStatus:
    """Store the answer, its prompt and the prefix it completes; the client gets it in any case.

    If there is a `draft` of it, it is stored under its key: once, by this process or another one.
    """
    memory, location = request.memory, status.location
    if location is None:
        return status
    key = draft.key if draft else None
    try:
        size = text_size(answer.fields)
        message = await run_by_size(size, partial(request.dialect.load_answer, answer))
        try:
            if location.named:
                question = QuestionRef(location.question, location.hash)
                stored = await store_answer(memory, location.conversation, question, message, key)
            else:
                stored = await memory.append(
                    location.conversation,
                    message,
                    expected_seq=location.next_seq,
                    idempotency_key=key,
                )
        except KeyReused:
            raise
        except ConflictError:  # the same request was sent twice, and the other one answered first
            location = await _branch(memory, location)
            if draft is not None:
                await draft.move(location.conversation)
            stored = await memory.append(location.conversation, message, idempotency_key=key)
        status = replace(status, location=location)
        await _record_origin(request, status, location, answer, stored[-1])
    except Exception as error:  # noqa: BLE001 - the client gets its answer all the same
        failed = status.degrade("answer not stored", error)
        settled = isinstance(error, UnknownConversation | KeyReused)
        return replace(failed, answer_unsaved=not settled)
    return status


async def _record_origin(
    request: ProxyRequest,
    status: MemoryStatus,
    location: Location,
    upstream_answer: UpstreamAnswer,
    answer: Entry,
) -> None:
    """Save the prompt of an answer, and the prefix of the history that it completes."""
    tenant = request.memory.tenant
    cards = request.dialect.answer_cards(tenant, location, upstream_answer, answer)
    saves: list[Awaitable[object]] = [request.memory.cards.put(*cards)] if cards else []
    if status.context is not None:
        facts = {"question": location.question, "model": request.model, "via": "proxy"}
        context = replace(status.context, conversation=location.conversation)
        saves.append(try_record(request.memory, context, answer.seq, **facts))
    if location.hashes:
        size = messages_size(answer.message)
        known = await run_by_size(size, partial(fingerprint, answer.message))
        name = extend_hash(location.hashes[-1], known)
        saves.append(save_prefixes(request.memory, location, [name], [answer.seq]))
    await asyncio.gather(*saves)  # together, so that they share a commit
