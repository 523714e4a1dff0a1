"""A request as the proxy reads it, and the conversation that it names."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from fastapi import Request

from firnline.client.paths import unescape_name
from firnline.context.context import Context
from firnline.errors import FirnlineError, InputError, outline
from firnline.log.limits import JSON_DEPTH_MAX
from firnline.log.message import Message, encode_json
from firnline.log.regex import regex
from firnline.log.text import USER_HEADERS, Json, clean_name, person_name
from firnline.log.threads import run_by_size
from firnline.log.wire import load_json, tool_input
from firnline.memory import Memory
from firnline.server.auth import Caller, caller_of, parts_of
from firnline.server.peer import client_address
from firnline.server.proxy import limits
from firnline.server.proxy.dialect import Dialect, Location
from firnline.server.proxy.limits import RETRY_DIGITS_MAX
from firnline.server.proxy.upstream import Upstream
from firnline.server.state import Parts

logger: Final = logging.getLogger("firnline.proxy")

HEADER: Final = "x-firnline-conversation"
_HEADERS: Final = (
    HEADER,
    "x-conversation-id",
    "x-openwebui-chat-id",
    "x-session-id",
    "x-claude-code-session-id",
    "x-litellm-session-id",
    "helicone-session-id",
    "session-id",
    "session_id",
    "thread-id",
    "conversation_id",
)
_RETRIES: Final = "x-stainless-retry-count"
"""Header in which the SDKs of OpenAI and Anthropic count their attempts."""
_VENDOR: Final = regex(r"x-.+-(session|conversation|chat|thread)-id")
_METADATA: Final = ("conversation_id", "session_id", "thread_id", "chat_id")
_USER_FIELDS: Final = ("user", "safety_identifier")
_USER_METADATA: Final = "user_id"
_SESSION: Final = "_session_"
_CLAUDE_USERS: Final = ("account_uuid", "device_id")
_SESSION_ID: Final = regex(r"[A-Za-z0-9_-]{8,}")
_SESSION_ID_CHARS_MIN: Final = 8
_SERVER_SETTINGS: Final = ("api_base", "base_url", "api_key")
_UNSPOKEN: Final = frozenset({"system", "developer"})
_THOUGHTS: Final = frozenset({"reasoning"})
_CACHE_MARK: Final = "cache_control"


class ConversationName(NamedTuple):
    """The conversation that a request names, and where it does so."""

    conversation: str
    source: str


class Attempt(NamedTuple):
    """The client's own `key` for a request, and whether it says that it sent it before.

    A key identifies a request. A mere count of attempts does not: two users may ask the same, so
    it never gives a client the answer of another one.
    """

    key: str = ""
    again: bool = False


class Thread(NamedTuple):
    """A conversation whose state we hold: the request has only what is new in it.

    It continues behind the entry `seq`, or at the end. The first `given` messages are valid for
    this request only.
    """

    conversation: str
    seq: int | None
    given: int


class Sender(NamedTuple):
    """Who sent a request, as a hash of all that tells callers apart.

    `named` if the request names its user. Without that, several people may be the same sender: an
    address is shared by all users of an application. `person` is that user's name. A sender that is
    `alone` may use that person's conversations only, and none that is with no person.
    """

    id: str
    named: bool
    person: str | None = None
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyRequest:
    """A request to a model; `body` is in the dialect that `upstream` understands."""

    parts: Parts
    caller: Caller
    memory: Memory
    dialect: Dialect
    upstream: Upstream | None
    body: dict[str, Any]
    headers: Mapping[str, str]
    query: str
    name: ConversationName | None
    sender: Sender
    attempt: Attempt
    thread: Thread | None = None
    size: int
    """Bytes of the body: what a long one needs is done in threads."""

    @property
    def model(self) -> str:
        """The model that the client asks for."""
        return str(self.body.get("model") or "")

    @property
    def tools(self) -> list[Any]:
        """The client's own tools."""
        tools = self.body.get("tools")
        return tools if isinstance(tools, list) else []

    @property
    def streams(self) -> bool:
        """Whether the client wants the answer as a stream."""
        return bool(self.body.get("stream"))

    @property
    def uses_memory(self) -> bool:
        """Whether the request may be stored."""
        return self.headers.get("x-firnline-memory", "").lower() != "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStatus:
    """What memory has done for a request so far, as the response headers report it.

    `location` is None if the request was not stored, `context` None if memory failed; `degraded`
    says why. `window` is the model's, None if it is unknown: then the request was sent as it came.
    `answer_unsaved`: the answer could not be stored, so its draft must stay.
    """

    location: Location | None = None
    context: Context | None = None
    window: int | None = None
    digest: int = 0
    degraded: str = ""
    answer_unsaved: bool = False

    def degrade(self, what: str, error: Exception) -> MemoryStatus:
        """The status after a failure of memory, which never ends a chat."""
        reason = what
        if isinstance(error, FirnlineError):
            reason = f"{what}: {error}"
        else:
            logger.error("internal error in the proxy's memory", exc_info=error)
        logger.warning("chat continues without memory: %s: %s", what, outline(error))
        return replace(self, degraded=reason)

    def headers(self) -> dict[str, str]:
        """The response headers that report it."""
        headers = {"x-firnline-status": "degraded" if self.degraded else "ok"}
        if self.degraded:
            headers["x-firnline-degraded"] = _header_text(self.degraded)
        if self.location is not None:
            headers[HEADER] = quote(self.location.conversation, safe=":@/ ")
            headers["x-firnline-source"] = _header_text(self.location.source)
            headers["x-firnline-digest"] = str(self.digest)
        if self.context is not None:
            headers["x-firnline-tokens"] = str(self.context.tokens)
            headers["x-firnline-window"] = str(self.window or "unknown")
        return headers


def _header_text(text: str) -> str:
    return " ".join(text.split()).encode("ascii", "replace").decode()[: limits.STATUS_CHARS_MAX]


# -- parsing ----------------------------------------------------------------------------------


async def parse_request(
    request: Request,
    memory: Memory,
    conversation: str | None,
    dialect: Dialect,
    upstream: Upstream | None,
) -> ProxyRequest:
    """What the client sent; `conversation` is the name in the path. `InputError` if it is wrong."""
    sent, parts = await read_body(request), parts_of(request)
    read = partial(dialect.read_request, sent, parts.settings.upstream or "")
    body = await run_by_size(len(await request.body()), read)
    if not body["messages"]:
        raise InputError("messages: must not be empty")
    return await make_request(request, memory, conversation, dialect, upstream, sent, body)


async def make_request(
    request: Request,
    memory: Memory,
    conversation: str | None,
    dialect: Dialect,
    upstream: Upstream | None,
    sent: Mapping[str, Any],
    body: dict[str, Any],
) -> ProxyRequest:
    """The request whose client `sent` a body, which is `body` for the dialect."""
    parts, size = parts_of(request), len(await request.body())
    name = find_conversation_name(conversation, request.headers, sent)
    caller = caller_of(request)
    address = client_address(request.scope, parts.settings.proxies)
    retries = _read_count(request.headers.get(_RETRIES, "0"))
    return ProxyRequest(
        parts=parts,
        caller=caller,
        memory=memory,
        dialect=dialect,
        upstream=upstream,
        body=body,
        headers=request.headers,
        query=request.url.query if dialect.forwards_query else "",
        name=name,
        attempt=Attempt(request.headers.get("idempotency-key", ""), retries > 0),
        sender=find_sender(caller, request.headers, sent, address),
        size=size,
    )


def _read_count(text: str) -> int:
    """How often the client has tried before; `InputError` if it is no such number."""
    if not (text.isascii() and text.isdecimal() and len(text) <= RETRY_DIGITS_MAX):
        raise InputError(f"{_RETRIES}: expected a number of at most {RETRY_DIGITS_MAX} digits")
    return int(text)


async def read_body(request: Request) -> dict[str, Any]:
    """The request's JSON object with its messages; `InputError` if it is not one."""
    body = await read_object(request)
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise InputError("expected a JSON object with a list of messages")
    for at, message in enumerate(messages):
        if not isinstance(message, dict):
            raise InputError(f"messages[{at}]: expected an object")
    return body


async def read_object(request: Request) -> dict[str, Any]:
    """The request's JSON object, without the server's settings; `InputError` if it is not one."""
    sent = await request.body()
    body = await run_by_size(len(sent), partial(load_json, sent))
    if not isinstance(body, dict):
        raise InputError("expected a JSON object")
    for name in _SERVER_SETTINGS:
        if name in body:
            raise InputError(f"{name}: not accepted; the server's settings decide where to send")
    return body


def find_conversation_name(
    path: str | None, headers: Mapping[str, str], body: Mapping[str, Any]
) -> ConversationName | None:
    """The name in the path, in a header that is commonly used for it, or in the metadata."""
    if path is not None:
        return ConversationName(clean_name(unescape_name(path), "conversation"), "path")
    for name in (*_HEADERS, *(name for name in headers if _VENDOR.fullmatch(name))):
        value = headers.get(name)
        # Our own header is read as it is written in responses.
        if found := _usable_name(unquote(value) if value and name == HEADER else value):
            return ConversationName(found, f"header {name}")
    metadata = body.get("metadata")
    if isinstance(metadata, Mapping):
        for name in _METADATA:
            if found := _usable_name(metadata.get(name)):
                return ConversationName(found, f"metadata {name}")
        if found := _usable_name(_session_id(str(metadata.get("user_id") or ""))):
            return ConversationName(found, "metadata user_id")
    return None


def _session_id(user: str) -> str:
    """The session in the user id of Claude Code: what follows the last mark and is long enough.

    Of newer ones, whose user id is JSON, a field of it.
    """
    if ids := _claude_ids(user):
        return ids.get("session_id", "")
    before, mark, _ = user[:-_SESSION_ID_CHARS_MIN].rpartition(_SESSION)
    session = user[len(before) + len(mark) :]
    return session if mark and "\n" not in before and _SESSION_ID.fullmatch(session) else ""


def find_sender(
    caller: Caller, headers: Mapping[str, str], body: Mapping[str, Any], address: str
) -> Sender:
    """Who sent a request: by its key and the users it names, or by its address if it names none.

    A key for one person says whom a request is with, whatever the request says.
    """
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    named = {
        **{name: headers.get(name) for name in USER_HEADERS},
        **{name: body.get(name) for name in _USER_FIELDS},
        _USER_METADATA: metadata.get(_USER_METADATA),
    }
    users = {name: value for name, value in named.items() if isinstance(value, str) and value}
    who = [caller.id, caller.token, *sorted(users.items())] if users else [caller.id, caller.token]
    text = json.dumps([*who, "" if users else address])
    sender = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    if caller.person is not None:
        return Sender(sender, named=True, person=caller.person, alone=True)
    names = (_person_name(name, value) for name, value in users.items())
    return Sender(sender, bool(users), next(filter(None, names), None))


def _person_name(field: str, user: str) -> str | None:
    """The person that a request names as its user; without Claude Code's session."""
    if field == _USER_METADATA and (ids := _claude_ids(user)):
        user = next((ids[name] for name in _CLAUDE_USERS if ids.get(name)), "")
    elif field == _USER_METADATA and _session_id(user):
        user = user.rpartition(_SESSION)[0]
    return person_name(user)


def _claude_ids(user: str) -> dict[str, str]:
    """The ids in the user id of a newer Claude Code, which is a JSON object; else none."""
    if not user.startswith("{") or len(user) > limits.USER_CHARS_MAX:
        return {}
    try:
        found = load_json(user.encode())
    except InputError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: value for name, value in found.items() if isinstance(value, str)}


def _usable_name(name: object) -> str | None:
    try:
        return clean_name(name, "conversation") if isinstance(name, str) and name else None
    except InputError:
        return None  # another program's header that only looks like a name


# -- messages that clients send again ---------------------------------------------------------


def is_spoken(message: Message) -> bool:
    """Whether a message is part of the conversation; what the application says changes often."""
    return message.role not in _UNSPOKEN


def fingerprint(message: Message) -> str:
    """What stays the same of a message when a client sends it again.

    Its text, speaker, calls, images and files; not the empty fields that a client's library adds,
    white space at the ends, how JSON is written and in which order its keys come, reasoning, which
    many clients drop, or cache marks, which they move.
    """
    others: list[Json] = [
        _in_order({key: value for key, value in part.fields.items() if key != _CACHE_MARK})
        for part in (message.content if isinstance(message.content, tuple) else ())
        if part.kind not in ("text", *_THOUGHTS)
    ]
    calls: list[Json] = [
        [call.id, call.name, _in_order(tool_input(call))] for call in message.tool_calls
    ]
    text, answers = message.text.strip(), message.tool_call_id or ""
    fields: list[Json] = [message.role, text, calls, answers, others]
    if message.name:
        fields.append(message.name)
    return hashlib.blake2b(encode_json(fields).encode(), digest_size=16).hexdigest()


def _in_order(value: Json, depth: int = JSON_DEPTH_MAX) -> Json:
    """A value with its keys in order, without those that are null."""
    if isinstance(value, dict) and depth:
        return {
            key: _in_order(value[key], depth - 1) for key in sorted(value) if value[key] is not None
        }
    if isinstance(value, list) and depth:
        return [_in_order(each, depth - 1) for each in value]
    return value


def prefix_hashes(fingerprints: Sequence[str], seed: str) -> list[str]:
    """A hash for each prefix of a history: of the first message, of the first two, and so on.

    `seed` is the conversation's name or the sender: equal texts under two names, or of two senders,
    are two histories.
    """
    hashes, last = [], f"firnline prefix 1 {seed}"
    for each in fingerprints:
        last = extend_hash(last, each)
        hashes.append(last)
    return hashes


def history_hashes(messages: Iterable[Message], seed: str) -> tuple[str, ...]:
    """The hashes of the prefixes of a history of messages."""
    return tuple(prefix_hashes([fingerprint(message) for message in messages], seed))


def extend_hash(prefix: str, more: str) -> str:
    """The hash of a prefix that is one message longer."""
    return hashlib.blake2b(f"{prefix}\n{more}".encode(), digest_size=16).hexdigest()
