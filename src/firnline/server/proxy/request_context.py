"""The context of one request: as much of the conversation as fits the model's window.

The log holds what all clients said at any time. What others ask at the same moment is not part of
this request. What the application tells the model in between, such as retrieved documents, is valid
for the request that says it only.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from firnline.context.budget import Budget
from firnline.context.context import Context, Piece, Section
from firnline.context.marks import INTERRUPTED, is_put_in
from firnline.context.render import render_recalled
from firnline.context.tools import Tool
from firnline.errors import BudgetError
from firnline.log.entry import Entry
from firnline.log.hit import Hits
from firnline.log.limits import RECALL_FOUND_TOKENS, RECALL_TOKENS, RECALL_TOKENS_MIN
from firnline.log.message import Message, encode_json
from firnline.log.threads import run_by_size
from firnline.log.tokens import REPLY_TOKENS, TokenCounter, counter
from firnline.recall.result import ResultTokens
from firnline.recall.tools import recall_tools
from firnline.server.proxy import limits
from firnline.server.proxy.compaction import has_summary
from firnline.server.proxy.dialect import Body, Location, UpstreamRequest
from firnline.server.proxy.locate import LocatedRequest
from firnline.server.proxy.ownership import OwnMemory, own_messages, recall_own
from firnline.server.proxy.request import MemoryStatus, ProxyRequest, is_spoken
from firnline.server.proxy.windows import choose_window


async def build_request_context(
    request: ProxyRequest, located: LocatedRequest
) -> tuple[UpstreamRequest, MemoryStatus]:
    """The request as it is sent upstream, with the context of its conversation.

    The dialect's error of a `BudgetError` if not even the newest message fits.
    """
    status, messages, count = located.status, located.messages, counter(request.model)
    finish = request.dialect.finish_request
    if (location := status.location) is None:
        body = await run_by_size(request.size, partial(finish, dict(request.body)))
        return UpstreamRequest(client_body=request.body, body=body, count=count), status
    status = replace(status, window=await _find_window(request))
    if status.window is None and (location.compacted or _is_whole(location, messages)):
        return await _send_as_it_came(request, status, location, messages, count)
    tools = _recall_tools(request, location, status)
    definitions = [*request.tools, *map(request.dialect.tool_definition, tools)]
    room = _reserved_for_tools(request, status) if tools else 0
    added = await run_by_size(request.size, partial(_count_words, messages, count))
    budget = _budget(request, status, reserved=request.dialect.margin_tokens + added + room)
    body = dict(request.body)
    try:
        context = await _client_context(request, location, messages, budget, definitions)
        if context is None:
            context = await request.memory.context(
                location.conversation,
                budget,
                question=_newest_question(messages),
                system=_join_system(messages[: _count_leading(messages)]),
                tools=definitions,
                task="" if location.anonymous else None,
                project=not location.anonymous,
            )
            fit = partial(_fit_to_request, context, location, messages, count)
            context = await run_by_size(request.size, fit)
        body, status = await _put_context(request, location, messages, context, status)
    except BudgetError as error:
        raise request.dialect.context_too_long(error) from error
    except Exception as error:
        if request.thread is not None:  # the request alone has no history
            raise
        status = status.degrade("no context", error)  # a failure of memory does not end the chat
    used = status.context.tokens if status.context else 0
    if tools:
        body["tools"] = definitions
        room = max(room, _free_room(request, status, added))
        tools = _recall_tools(request, location, status, room)
    prepared = UpstreamRequest(
        client_body=request.body,
        body=await run_by_size(max(request.size, used), partial(finish, body)),
        count=count,
        prompt_tokens=used,
        tools=tools,
        tool_tokens=room // limits.TOOL_ROUNDS,
        room=room,
    )
    return prepared, status


async def _put_context(
    request: ProxyRequest,
    location: Location,
    messages: Sequence[Message],
    context: Context,
    status: MemoryStatus,
) -> tuple[Body, MemoryStatus]:
    """The request with the messages of its context, and the status with the context."""
    context, sent = await _separate(request, location, context, messages)
    digest = await _shown_digest(request, context)
    put = partial(request.dialect.put_messages, request.body, sent)
    body = await run_by_size(max(request.size, context.tokens), put)
    degraded = "; ".join(context.degraded)
    return body, replace(status, context=context, digest=digest, degraded=degraded)


async def _separate(
    request: ProxyRequest, location: Location, context: Context, messages: Sequence[Message]
) -> tuple[Context, Sequence[Message]]:
    """The context and its messages: of an anonymous request, only what it sent itself."""
    if not location.anonymous:
        return context, context.messages
    count = counter(request.model)
    context = recall_own(context, location.question, count)
    own = partial(own_messages, context, messages, count)
    return context, await run_by_size(request.size, own)


async def _shown_digest(request: ProxyRequest, context: Context) -> int:
    """The version of the newest digest that the context shows; 0 if it shows none."""
    if not (context["digests"].pieces or context["important"].pieces):
        return 0
    newest = await request.memory.in_force(context.conversation)
    return max((digest.version for digest in newest), default=0)


def _reserved_for_tools(request: ProxyRequest, status: MemoryStatus) -> int:
    """The tokens of a request that are kept for the results of recall tools."""
    share = _budget(request, status).limit // limits.TOOL_SHARE
    return max(limits.TOOL_ROUNDS * min(RECALL_TOKENS, share), min(RECALL_FOUND_TOKENS, share))


def _free_room(request: ProxyRequest, status: MemoryStatus, added: int) -> int:
    """What the context leaves free, which is for the results of recall tools, too."""
    if status.context is None:
        return 0
    left = _budget(request, status).limit - status.context.tokens
    return left - added - request.dialect.margin_tokens


def _recall_tools(
    request: ProxyRequest, location: Location, status: MemoryStatus, room: int = 0
) -> list[Tool]:
    """The recall tools, except those with the name of a tool of the client.

    One result takes at most its share of the `room` of all results.
    """
    settings = request.parts.settings
    if not settings.recall_tools or request.upstream is None:
        return []
    names = set(map(request.dialect.tool_name, request.tools))
    share = max(room // limits.TOOL_ROUNDS, RECALL_TOKENS_MIN)
    most = min(share, settings.recall_tool_tokens or share)
    budget = _budget(request, status)
    if location.anonymous:
        own = OwnMemory(request.memory, location.question)
        count, tokens = counter(request.model), ResultTokens.within(budget.limit, most)
        tools = recall_tools(own, location.conversation, tokens=tokens, count=count)
    else:
        tools = request.memory.tools(location.conversation, budget=budget, tokens_max=most)
    return [tool for tool in tools if tool.name not in names]


async def _find_window(request: ProxyRequest) -> int | None:
    """The window of the requested model; the endpoint's list is not asked for if it is set."""
    settings, model, listed = request.parts.settings, request.model, None
    if request.upstream is not None and model not in settings.windows:
        find = request.upstream.listed.find
        listed = await find(model, request.headers, request.caller.token)
    return choose_window(settings, model, listed)


def _budget(request: ProxyRequest, status: MemoryStatus, reserved: int = 0) -> Budget:
    """The model's window, less the answer and what is reserved."""
    body, model = request.body, request.model
    window = status.window or Budget.whole(model).window_tokens
    names = ("max_completion_tokens", "max_tokens", "max_output_tokens")
    answer = next((body[name] for name in names if body.get(name)), None)
    usual = min(limits.RESERVE_TOKENS_MAX, window // limits.RESERVE_SHARE)
    reserve = answer if isinstance(answer, int) and 0 < answer < window else usual
    if form := body.get("response_format") or body.get("output_config") or body.get("text"):
        reserve += int(counter(model).text(json.dumps(form)))
    return Budget(window, min(reserve + reserved, window - 1), model=model)


# -- if the window is unknown -----------------------------------------------------------------


def _is_whole(location: Location, messages: Sequence[Message]) -> bool:
    """Whether the client sent the whole conversation, and not only what is new."""
    return len(messages) - _count_leading(messages) > location.question


async def _send_as_it_came(
    request: ProxyRequest,
    status: MemoryStatus,
    location: Location,
    messages: Sequence[Message],
    count: TokenCounter,
) -> tuple[UpstreamRequest, MemoryStatus]:
    """The client's own request: of what may fit, nothing is cut."""
    try:
        log = await request.memory.read(location.conversation, limit=location.question + 1)
        budget = Budget.whole(request.model)
        describe = partial(_sent_context, request, location, log, messages, budget, request.tools)
        status = replace(status, context=await run_by_size(request.size, describe))
    except Exception as error:  # noqa: BLE001 - a failure of memory does not end the chat
        status = status.degrade("no context", error)
    prepared = UpstreamRequest(
        client_body=request.body,
        body=request.dialect.finish_request(dict(request.body)),
        count=count,
        prompt_tokens=status.context.tokens if status.context else 0,
    )
    return prepared, status


def _sent_context(
    request: ProxyRequest,
    location: Location,
    log: Sequence[Entry],
    messages: Sequence[Message],
    budget: Budget,
    tools: Sequence[Mapping[str, Any]],
) -> Context:
    """The client's messages as a context, which is recorded as the prompt of the answer.

    Those that are in the log word for word are its entries, so that a record does not repeat them.
    """
    stored: dict[str, list[Entry]] = {}
    for entry in reversed(log):
        stored.setdefault(encode_json(entry.message.to_openai()), []).append(entry)
    count, leading, pieces = counter(request.model), _count_leading(messages), []
    for at, message in enumerate(messages):
        same = stored.get(encode_json(message.to_openai())) if at >= leading else None
        pieces.append(Piece(message, int(count.message(message)), same.pop() if same else None))
    return Context(
        conversation=location.conversation,
        strategy="none",
        budget=budget,
        sections=(
            Section("system", tuple(pieces[:leading])),
            Section("recent", tuple(pieces[leading:])),
        ),
        tools_tokens=int(count.tools(tools)) if tools else 0,
        framing_tokens=REPLY_TOKENS,
    )


# -- if the client has compacted its history --------------------------------------------------


async def _client_context(
    request: ProxyRequest,
    location: Location,
    messages: Sequence[Message],
    budget: Budget,
    tools: Sequence[Mapping[str, Any]],
) -> Context | None:
    """What a client sends that has compacted its history, and what it dropped and asks for now.

    None for others, and if that is too much: then the context is built of the log.
    """
    if not location.compacted:
        return None
    log = await request.memory.newest(location.conversation, tokens=budget.limit)
    describe = partial(_sent_context, request, location, log, messages, budget, tools)
    context = await run_by_size(request.size, describe)
    room, question = budget.limit - context.tokens, _newest_question(messages)
    if room < 0:
        return None
    room = min(room, RECALL_TOKENS, budget.limit // limits.TOOL_SHARE)
    if question is None or room < RECALL_TOKENS_MIN or has_summary(messages[-1:], ()):
        return context
    hits = await request.memory.recall(location.conversation, question, tokens=room)
    add = partial(_add_recalled, context, hits, room, counter(request.model))
    return await run_by_size(request.size, add)


def _add_recalled(context: Context, hits: Hits, room: int, count: TokenCounter) -> Context:
    """The context with the hits that are likely to help, in at most so many tokens."""
    shown, texts = set(context.seqs), {message.text for message in context.messages}
    piece: Piece | None = None
    chosen: list[Entry] = []
    for hit in hits[: hits.earned]:
        said = is_spoken(hit.message) and not is_put_in(hit.message)
        if not said or hit.seq in shown or hit.message.text in texts:
            continue
        message = render_recalled([*chosen, hit.entry])
        if (tokens := int(count.message(message))) <= room:
            chosen.append(hit.entry)
            piece = Piece(message, tokens, quoted=tuple(chosen))
    if piece is None:
        return context
    recalled = Section("recalled", (piece,))
    quoted = tuple(hit for hit in hits if hit.entry in chosen)
    return replace(context, sections=(*context.sections, recalled), hits=quoted)


# -- what the application says ----------------------------------------------------------------


def _count_leading(messages: Sequence[Message]) -> int:
    """How many messages of the application come before all others."""
    spoken = [at for at, message in enumerate(messages) if is_spoken(message)]
    return spoken[0] if spoken else len(messages)


def _newest_question(messages: Sequence[Message]) -> str | None:
    """The user's newest message, if it has text."""
    questions = [message.text for message in messages if message.role == "user"]
    return questions[-1] if questions and questions[-1].strip() else None


def _join_system(system: Sequence[Message]) -> Message | None:
    """The first messages of the application as one message."""
    if len(system) <= 1:
        return system[0] if system else None
    text = "\n\n".join(message.text for message in system)
    return replace(system[0], content=text)


def _words_now(messages: Sequence[Message]) -> list[Message]:
    """What the application says since the last answer, except its first messages."""
    answers = (at for at, message in enumerate(messages) if message.role == "assistant")
    first = max(max(answers, default=-1) + 1, _count_leading(messages))
    return [message for message in messages[first:] if not is_spoken(message)]


def _count_words(messages: Sequence[Message], count: TokenCounter) -> int:
    """The tokens of what the application says now."""
    return sum(int(count.message(message)) for message in _words_now(messages))


def _fit_to_request(
    context: Context, location: Location, messages: Sequence[Message], count: TokenCounter
) -> Context:
    """The context of the request whose last entry is the location's question.

    `ConflictError` if concurrent messages filled the window, so that its question is not in it.
    """
    own = context.up_to(location.question)
    now = {_identity(message) for message in messages if not is_spoken(message)}
    thread = location.is_thread
    recent = [p for p in own["recent"].pieces if _is_valid_now(p, now, is_thread=thread)]
    if not messages or messages[-1].role != "assistant":
        # A provider continues an answer at the end. One that broke off is requested again.
        while recent and _is_interrupted(recent[-1]):
            recent.pop()
    return own.with_recent(_add_words(recent, messages, count))


def _is_interrupted(piece: Piece) -> bool:
    return piece.entry is not None and INTERRUPTED in piece.entry.message.metadata


def _is_valid_now(
    piece: Piece, now: Collection[tuple[str, str]], *, is_thread: bool = False
) -> bool:
    """Whether a piece is of the conversation, or said by the application in this request.

    In a thread, what it said in earlier requests counts, unless the thread shares its beginning.
    """
    if piece.entry is None or is_spoken(piece.entry.message):
        return True
    if is_thread and not is_put_in(piece.entry.message):
        return True
    return _identity(piece.entry.message) in now


def _identity(message: Message) -> tuple[str, str]:
    """Equal for messages of the same role and content."""
    if isinstance(message.content, tuple):
        parts = [part.fields for part in message.content]
        return f"{message.role} in parts", json.dumps(parts, sort_keys=True)
    return message.role, message.content or ""


def _add_words(
    recent: Sequence[Piece], messages: Sequence[Message], count: TokenCounter
) -> list[Piece]:
    """Add what the application says now and the log does not have, before or after the question.

    The log does not have it if an earlier request asked the same and the application said something
    else.
    """
    present = [piece.message for piece in recent]
    known = set(map(_identity, present))
    missing = [message for message in _words_now(messages) if _identity(message) not in known]
    last = max((at for at, message in enumerate(messages) if is_spoken(message)), default=-1)
    late = {id(message) for message in messages[last + 1 :]}
    users = (at for at, message in enumerate(present) if message.role == "user")
    at = max(users, default=len(present))
    added = [(id(m) in late, Piece(m, int(count.message(m)))) for m in missing]
    before = [piece for is_late, piece in added if not is_late]
    after = [piece for is_late, piece in added if is_late]
    return [*recent[:at], *before, *recent[at:], *after]
