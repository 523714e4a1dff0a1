"""`Message`, its parts and tool calls, and their canonical form.

A message has the OpenAI chat shape, so nothing has to be translated, and nothing can be lost, on
the way in or out. Unknown fields are kept as they are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Final, Literal, Self, TypeAlias, get_args

from firnline.errors import InputError, MessageTooLarge, StoreCorrupt
from firnline.log import limits
from firnline.log.attachment import Split
from firnline.log.json_text import parse_json
from firnline.log.text import Json, clean_fields, clean_text, was_altered
from firnline.log.threads import has_many_values

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)

Kind: TypeAlias = Literal[
    "text", "image", "audio", "file", "tool_call", "tool_result", "reasoning", "unknown"
]

_KINDS: Final[Mapping[str, Kind]] = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "text",
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "input_audio": "audio",
    "audio": "audio",
    "file": "file",
    "input_file": "file",
    "document": "file",
    "tool_use": "tool_call",
    "tool_call": "tool_call",
    "function_call": "tool_call",
    "tool_result": "tool_result",
    "function_call_output": "tool_result",
    "reasoning": "reasoning",
    "thinking": "reasoning",
    "redacted_thinking": "reasoning",
}

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
)


@dataclass(frozen=True, slots=True)
class Part:
    """One typed piece of a message's content: a JSON object, kept exactly as received."""

    fields: dict[str, Json]

    @property
    def type(self) -> str:
        """The part's type as the sender named it, for example ``image_url``."""
        return str(self.fields.get("type", ""))

    @property
    def kind(self) -> Kind:
        """What the part is, independent of the provider's name for its type."""
        return _KINDS.get(self.type, "unknown")

    @property
    def text(self) -> str:
        """The text a reader would see in this part; empty for images, files and the like.

        The text of a tool's result that is not a string is its JSON, without images and files.
        """
        if self.kind == "text":
            return str(self.fields.get("text") or self.fields.get("refusal") or "")
        if self.kind == "tool_result":
            content = self.fields.get("content") or self.fields.get("output") or ""
            return content if isinstance(content, str) else encode_json(Split(content).rest)
        return ""

    @classmethod
    def of_text(cls, text: str) -> Part:
        """A piece of text."""
        return cls({"type": "text", "text": text})

    @classmethod
    def image(cls, url: str, *, detail: str | None = None) -> Part:
        """An image, by URL or as a ``data:`` URL."""
        image: dict[str, Json] = {"url": url}
        if detail is not None:
            image["detail"] = detail
        return cls({"type": "image_url", "image_url": image})

    @classmethod
    def file(cls, file_id: str, *, filename: str | None = None) -> Part:
        """A file stored elsewhere, by its id."""
        named: dict[str, Json] = {} if filename is None else {"filename": filename}
        return cls({"type": "file", "file": {"file_id": file_id, **named}})

    @classmethod
    def tool_call(cls, call_id: str, name: str, arguments: Mapping[str, Json]) -> Part:
        """A tool call inside the content, as Anthropic writes it."""
        return cls({"type": "tool_use", "id": call_id, "name": name, "input": dict(arguments)})

    @classmethod
    def tool_result(cls, call_id: str, content: Json) -> Part:
        """A tool's result inside the content, as Anthropic writes it."""
        return cls({"type": "tool_result", "tool_use_id": call_id, "content": content})

    @classmethod
    def reasoning(cls, text: str, *, signature: str | None = None) -> Part:
        """The model's reasoning before its answer."""
        signed: dict[str, Json] = {} if signature is None else {"signature": signature}
        return cls({"type": "thinking", "thinking": text, **signed})


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call by the assistant: a JSON object, kept exactly as received."""

    fields: dict[str, Json]

    @classmethod
    def of(cls, call_id: str, name: str, arguments: str | Mapping[str, Json]) -> ToolCall:
        """A function call; arguments as the JSON text the model wrote, or as a mapping."""
        text = arguments if isinstance(arguments, str) else encode_json(dict(arguments))
        return cls(
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}
        )

    @property
    def id(self) -> str:
        """The id that the tool's result refers to."""
        return str(self.fields.get("id") or "")

    @property
    def name(self) -> str:
        """The tool's name."""
        return str(self._inner().get("name") or "")

    @property
    def arguments(self) -> str:
        """The arguments as the model wrote them; usually valid JSON."""
        inner = self._inner()
        return str(inner.get("arguments") or inner.get("input") or "")

    def _inner(self) -> dict[str, Json]:
        inner = self.fields.get(str(self.fields.get("type") or "function"))
        return inner if isinstance(inner, dict) else {}


Content: TypeAlias = "str | tuple[Part, ...] | None"


@dataclass(frozen=True, slots=True)
class Message:
    """One message. Valid by construction: text is made storable and all fields are checked.

    `extra` holds the fields of the OpenAI shape that Firnline does not interpret, `metadata` what
    the application stores with the message, and `normalised` is true if any text had to be altered
    to be storable (see `firnline.log.text`).
    """

    role: Role
    content: Content = None
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    metadata: dict[str, Json] = field(default_factory=dict)
    created_at: datetime | None = None
    extra: dict[str, Json] = field(default_factory=dict)
    normalised: bool = False

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InputError(f"role: {self.role!r} is not one of {', '.join(ROLES)}")
        changed = self.normalised
        changed |= _store_clean_text(self, "content", self.content)
        changed |= _store_clean_text(self, "name", self.name)
        changed |= _store_clean_text(self, "tool_call_id", self.tool_call_id)
        if self.content is not None and not isinstance(self.content, str):
            changed |= _store_clean_items(self, "content", self.content, Part)
        if self.tool_calls:
            changed |= _store_clean_items(self, "tool_calls", self.tool_calls, ToolCall)
        for which in ("metadata", "extra"):
            given = getattr(self, which)
            if given != {}:
                cleaned = clean_fields(given, which)
                changed |= was_altered(given, cleaned)
                object.__setattr__(self, which, cleaned)
        if self.created_at is not None:
            object.__setattr__(self, "created_at", _utc(self.created_at))
        object.__setattr__(self, "normalised", changed)

    # -- making one ---------------------------------------------------------------------------

    @classmethod
    def system(cls, text: str, **fields: Any) -> Self:
        """Instructions of the application to the model."""
        return cls("system", text, **fields)

    @classmethod
    def developer(cls, text: str, **fields: Any) -> Self:
        """The same under the role name that newer providers use."""
        return cls("developer", text, **fields)

    @classmethod
    def user(cls, content: str | Iterable[Part], **fields: Any) -> Self:
        """A message of the user."""
        return cls("user", _as_content(content), **fields)

    @classmethod
    def assistant(
        cls,
        content: str | Iterable[Part] | None = None,
        *,
        tool_calls: Iterable[ToolCall] = (),
        **fields: Any,
    ) -> Self:
        """The model's answer, its tool calls, or both."""
        return cls("assistant", _as_content(content), tool_calls=tuple(tool_calls), **fields)

    @classmethod
    def tool(cls, content: str | Iterable[Part], *, tool_call_id: str, **fields: Any) -> Self:
        """A tool's result for the call `tool_call_id`."""
        return cls("tool", _as_content(content), tool_call_id=tool_call_id, **fields)

    @classmethod
    def from_openai(
        cls,
        message: object,
        *,
        created_at: datetime | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> Self:
        """A message from the OpenAI chat shape: a dict, or the SDK's object.

        ``Message.from_openai(x).to_openai() == x`` for every accepted message, whatever fields it
        has; a malformed one raises `InputError`.
        """
        extra = _openai_fields(message)
        # A null or an empty list must survive a round trip: such fields stay in `extra`.
        known = {
            name: extra.pop(name)
            for name in ("role", "content", "name", "tool_calls", "tool_call_id")
            if extra.get(name) is not None and (name != "tool_calls" or extra[name] != [])
        }
        content = known.get("content")
        return cls(
            role=known.get("role", ""),
            content=_load_objects(content, "content", Part)
            if isinstance(content, list)
            else content,
            name=known.get("name"),
            tool_calls=_load_objects(known.get("tool_calls", ()), "tool_calls", ToolCall),
            tool_call_id=known.get("tool_call_id"),
            metadata=dict(metadata or {}),
            created_at=created_at,
            extra=extra,
        )

    def to_openai(self) -> dict[str, Any]:
        """The message in the OpenAI chat shape, with every field it came with."""
        return {**_openai_shape(self), **self.extra}

    # -- reading one --------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The text of the message; of several text parts, one per line."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content or () if part.text)

    def at(self, time: datetime) -> Self:
        """The same message with the time `time`."""
        # A copy of a valid message: `replace` would check all of it again.
        timed = object.__new__(type(self))
        for put, value in zip(_SETTERS, _values(self), strict=True):
            put(timed, value)
        object.__setattr__(timed, "created_at", _utc(time))
        return timed


_values: Final = attrgetter(*Message.__slots__)
_SETTERS: Final = [getattr(Message, name).__set__ for name in Message.__slots__]


# -- the canonical form -----------------------------------------------------------------------


def encode_json(value: Json) -> str:
    """Compact JSON: no spaces, non-ASCII unescaped, keys in their given order.

    Many values are encoded in Python: the fast encoder keeps all other threads waiting.
    """
    if has_many_values(value):
        return "".join(_ENCODER.iterencode(value))
    return _ENCODER.encode(value)


def _openai_shape(message: Message) -> dict[str, Any]:
    """The fields of the OpenAI shape that Firnline interprets, in a fixed order."""
    shape: dict[str, Any] = {"role": message.role}
    if isinstance(message.content, str):
        shape["content"] = message.content
    elif message.content is not None:
        shape["content"] = [part.fields for part in message.content]
    if message.name is not None:
        shape["name"] = message.name
    if message.tool_calls:
        shape["tool_calls"] = [call.fields for call in message.tool_calls]
    if message.tool_call_id is not None:
        shape["tool_call_id"] = message.tool_call_id
    return shape


def encode(message: Message) -> bytes:
    """The message's canonical form: UTF-8 JSON, fields in a fixed order, empty ones left out.

    These are the bytes that are stored, hashed and returned. Equal bytes, equal message.
    """
    if isinstance(message.content, tuple) and len(message.content) > limits.PARTS_MAX:
        raise MessageTooLarge(
            f"the message has {len(message.content):,} parts; the limit is {limits.PARTS_MAX:,}"
        )
    fields = _openai_shape(message)
    if message.extra:
        fields["extra"] = message.extra
    if message.metadata:
        fields["metadata"] = message.metadata
    # Field by field: text alone is encoded in a third of the time that an object takes.
    pairs = [f'"{name}":{encode_json(value)}' for name, value in fields.items()]
    if message.created_at is not None:
        pairs.append(f'"created_at":"{format_time(message.created_at)}"')
    if message.normalised:
        pairs.append('"normalised":true')
    body = f"{{{','.join(pairs)}}}".encode()
    if len(body) > limits.MESSAGE_BYTES_MAX:
        raise MessageTooLarge(
            f"the message has {len(body):,} bytes; the limit is {limits.MESSAGE_BYTES_MAX:,}"
        )
    return body


def decode(body: bytes) -> Message:
    """The message whose canonical form `body` is; anything else raises `StoreCorrupt`."""
    try:
        return _decode(body)
    except (ValueError, KeyError, AttributeError, TypeError, InputError) as error:
        raise StoreCorrupt("the stored bytes are not a message") from error


def _decode(body: bytes) -> Message:
    text = body.decode()
    if len(text) <= limits.LOOP_CHARS_MAX:
        fields = _DECODER.decode(text)
    else:  # other threads may go on meanwhile
        fields = parse_json(text, parse_float=_finite_float, parse_constant=_finite_float)
    nested = {} if fields.keys() <= _FLAT else _nested_fields(fields)
    if isinstance(content := fields.get("content"), list):
        nested["content"], content = _load_objects(content, "content", Part), None
    created_at = fields.get("created_at")
    message = Message(
        role=fields["role"],
        content=content,
        name=fields.get("name"),
        tool_call_id=fields.get("tool_call_id"),
        created_at=parse_time(created_at) if created_at else None,
        normalised=fields.get("normalised", False),
    )
    if nested and b"\\u" in body:  # escaped text may not be storable: check it
        return replace(message, **nested)
    for name, value in nested.items():  # not shared yet, and clean: it was valid UTF-8
        object.__setattr__(message, name, value)
    return message


def _nested_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields other than the content that hold objects."""
    nested: dict[str, Any] = {}
    if "tool_calls" in fields:
        nested["tool_calls"] = _load_objects(fields["tool_calls"], "tool_calls", ToolCall)
    for which in ("metadata", "extra"):
        if which in fields:
            if not isinstance(fields[which], dict):
                raise InputError(f"{which}: expected an object")
            nested[which] = fields[which]
    return nested


def _finite_float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is not JSON")
    return number


_FLAT: Final = {"role", "content", "name", "tool_call_id", "created_at", "normalised"}
_DECODER: Final = json.JSONDecoder(parse_float=_finite_float, parse_constant=_finite_float)


def utc_now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def format_time(time: datetime) -> str:
    """ISO 8601 in UTC with microseconds and a Z."""
    return time.isoformat(timespec="microseconds")[:26] + "Z"


def parse_time(text: str) -> datetime:
    """The inverse of `format_time`; accepts any ISO 8601 time with a zone."""
    return _utc(datetime.fromisoformat(text))


def microseconds(time: datetime) -> int:
    """Microseconds since 1970; negative before."""
    return (time - EPOCH) // _MICROSECOND


def from_microseconds(value: int) -> datetime:
    """The inverse of `microseconds`."""
    return EPOCH + value * _MICROSECOND


# -- the constructor's pieces -----------------------------------------------------------------


def _store_clean_text(message: Message, which: str, value: object) -> bool:
    if value is None:
        return False
    if not isinstance(value, str):
        if which == "content":
            return False
        raise InputError(f"{which}: expected a string, got {type(value).__name__}")
    cleaned = clean_text(value)
    if cleaned is value:
        return False
    object.__setattr__(message, which, cleaned)
    return was_altered(value, cleaned)


def _store_clean_items(
    message: Message, which: str, items: Sequence[Any], kind: type[Part | ToolCall]
) -> bool:
    if not isinstance(items, Sequence) or not all(isinstance(item, kind) for item in items):
        raise InputError(f"{which}: expected text or {kind.__name__} objects")
    cleaned = [clean_fields(item.fields, f"{which}[{i}]") for i, item in enumerate(items)]
    object.__setattr__(message, which, tuple(map(kind, cleaned)))
    return any(was_altered(item.fields, clean) for item, clean in zip(items, cleaned, strict=True))


def _utc(time: datetime) -> datetime:
    if not isinstance(time, datetime):
        raise InputError(f"created_at: expected a datetime, got {type(time).__name__}")
    if time.tzinfo is UTC:
        return time
    if time.utcoffset() is None:
        raise InputError("created_at: the time has no zone; add tzinfo, for example datetime.UTC")
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise InputError("created_at: out of range in UTC") from None


def _as_content(content: str | Iterable[Part] | None) -> Content:
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, Iterable):
        raise InputError(f"content: expected text or parts, got {type(content).__name__}")
    return tuple(content)


def _load_objects(items: object, which: str, kind: Any) -> tuple[Any, ...]:
    if not isinstance(items, list | tuple):
        raise InputError(f"{which}: expected a list, got {type(items).__name__}")
    for i, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise InputError(f"{which}[{i}]: expected an object, got {type(item).__name__}")
    return tuple(kind(dict(item)) for item in items)


def _openai_fields(message: object) -> dict[str, Any]:
    if isinstance(message, Mapping):
        return dict(message)
    dump = getattr(message, "model_dump", None)
    if dump is None:
        raise InputError(f"expected a message object, got {type(message).__name__}")
    return dict(dump(mode="json", exclude_unset=True))


def call_ids(message: Message) -> list[str]:
    """The ids of the tool calls in a message, in any provider's shape."""
    parts = () if isinstance(message.content, str) else message.content or ()
    inside = [part.fields for part in parts if part.kind == "tool_call"]
    # A result refers to the `call_id` if there is one; the `id` is the item's own.
    ids = [str(fields.get("call_id") or fields.get("id") or "") for fields in inside]
    calls = [call.id for call in message.tool_calls]
    return calls + [name for name in ids if name not in calls]  # content may repeat the calls


def result_ids(message: Message) -> list[str]:
    """The ids of the tool calls that a message answers."""
    parts = () if isinstance(message.content, str) else message.content or ()
    inside = [part.fields for part in parts if part.kind == "tool_result"]
    ids = [str(fields.get("tool_use_id") or fields.get("call_id") or "") for fields in inside]
    return [message.tool_call_id or "", *ids] if message.role == "tool" else ids


def check_pin(message: Message) -> None:
    """`InputError` for half of a tool call: a pinned message stands alone in a context."""
    if call_ids(message) or result_ids(message):
        raise InputError("a tool call or its result cannot be pinned; pin a message with text")
