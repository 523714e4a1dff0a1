"""Attachments: images, audio, video and files in a message, in any provider's shape. Pure.

Their bytes are base64 in JSON. They are found wherever they are, read where it is needed, and
never taken for text.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args
from urllib.parse import unquote

from firnline.log.regex import regex
from firnline.log.text import Json

Medium: TypeAlias = Literal["image", "audio", "video", "file"]
_MEDIA: Final[tuple[Medium, ...]] = get_args(Medium)
_TYPES: Final[Mapping[str, Medium]] = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "computer_screenshot": "image",
    "audio": "audio",
    "input_audio": "audio",
    "video": "video",
    "video_url": "video",
    "input_video": "video",
    "file": "file",
    "input_file": "file",
    "document": "file",
}
_DATA_KEYS: Final = frozenset(["data", "base64", "file_data", "b64_json", "bytes"])
_TYPE_KEYS: Final = frozenset(["media_type", "mime_type", "mediaType", "mimeType", "format"])
_TEXT_KEYS: Final = ("title", "context", "filename", "transcript")
_DETAIL_KEYS: Final = frozenset(["detail", "resolution"])
_ID_KEYS: Final = frozenset(["file_id", "file_url", "file_uri", "image_url"])
_URL_KEYS: Final = frozenset(["url", "uri"])
_DEPTH_MAX: Final = 4
_ENCODED_CHARS_MIN: Final = 512
"""Shorter strings are ids and signatures; as text they cost little."""
_SCHEME_CHARS_MAX: Final = 256
_LINE_CHARS: Final = 128
_ENCODED: Final = regex(r"[A-Za-z0-9+/_\r\n-]+={0,2}\s{0,2}")
_URL_SAFE: Final = str.maketrans("-_", "+/")


class EncodedBytes:
    """Bytes as base64, of which only what is asked for is decoded. Damaged data reads as empty."""

    __slots__ = ("_text", "size")

    def __init__(self, text: str) -> None:
        if any(mark in text[:_LINE_CHARS] for mark in "\r\n "):
            text = "".join(text.split())
        self._text = text
        self.size = max(len(text) * 3 // 4 - text[-2:].count("="), 0)

    def read(self, at: int, size: int) -> bytes:
        """Up to `size` bytes from the position `at` on."""
        if at < 0 or size <= 0 or at >= self.size:
            return b""
        groups = self._text[at // 3 * 4 : (at + size + 2) // 3 * 4].translate(_URL_SAFE)
        try:
            found = a2b_base64(groups + "=" * (-len(groups) % 4))
        except ValueError:  # not base64
            return b""
        return found[at % 3 : at % 3 + size]


@dataclass(frozen=True, slots=True)
class Attachment:
    """An image, a recording or a file. Without `data` it is a reference: a URL or an id."""

    medium: Medium
    media_type: str = ""
    data: EncodedBytes | None = None
    detail: str = ""
    texts: tuple[str, ...] = ()
    """What is text: a title, a file name, the content of a plain-text document."""


class Split:
    """A JSON value without its attachments, and the attachments."""

    def __init__(self, value: Json, name: str = "") -> None:
        self.attachments: list[Attachment] = []
        self.rest = self._without(value, name)

    @classmethod
    def of_fields(cls, fields: Mapping[str, Json]) -> Split:
        """An object that stays one, whatever it describes, without the data in it."""
        split = cls([])
        split.rest = {name: split._without(value, name) for name, value in fields.items()}
        return split

    def _without(self, value: Json, name: str = "") -> Json:
        if isinstance(value, dict):
            if (found := find_attachment(value, name, nested=True)) is not None:
                self.attachments.append(found)
                return {"type": value.get("type", found.medium)}
            return {name: self._without(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self._without(item) for item in value]
        if isinstance(value, str) and name != "text" and is_encoded(value):
            self.attachments.append(_of_string(value))
            return ""
        return value


def is_encoded(text: str) -> bool:
    """Whether a string is the bytes of something: a ``data:`` URL, or long base64."""
    if text.startswith("data:"):
        return ";base64," in text[:_SCHEME_CHARS_MAX]
    return len(text) >= _ENCODED_CHARS_MIN and _ENCODED.fullmatch(text) is not None


def find_attachment(
    fields: Mapping[str, Any], name: str = "", *, nested: bool = False
) -> Attachment | None:
    """The attachment that an object describes, by its type or its data; None if it is none.

    `name` is that of the field which holds it, such as ``audio`` in an answer of OpenAI's. An
    object inside another one (`nested`) can be anything that has a type, such as a row of a list
    of files: it needs data, or a reference as providers write it.
    """
    medium = _TYPES.get(str(fields.get("type", "")))
    source = fields.get("source")
    if isinstance(source, dict) and source.get("type") == "content":
        return None  # a document of blocks: each counts by itself
    strings = list(_strings(fields, _DEPTH_MAX))
    texts = tuple(s for key, s in strings if key in _TEXT_KEYS)
    if isinstance(source, dict) and source.get("type") == "text":
        return Attachment("file", "text/plain", texts=(*texts, str(source.get("data") or "")))
    media_type, detail = _first(strings, _TYPE_KEYS), _first(strings, _DETAIL_KEYS)
    data = _first(strings, _DATA_KEYS) or next((s for _, s in strings if s[:5] == "data:"), "")
    if medium is None and not ((media_type or name in _TYPES) and is_encoded(data)):
        return None
    if not data and (nested or medium == "file"):
        references = _ID_KEYS if nested and source is None else _ID_KEYS | _URL_KEYS
        if not _first(strings, references):
            return None
    named, encoded, plain = _payload(data)
    media_type = (named or media_type).lower()
    if (medium or _TYPES.get(name, "file")) == "file":
        medium = _medium(media_type)
    texts = (*texts, plain) if plain else texts
    return Attachment(medium or _TYPES[name], media_type, encoded, detail, texts)


def _first(strings: Iterable[tuple[str, str]], keys: Collection[str]) -> str:
    return next((value for key, value in strings if key in keys and value), "")


def _medium(media_type: str) -> Medium:
    """What a file is by its media type."""
    major = media_type.partition("/")[0]
    return next((medium for medium in _MEDIA if medium == major), "file")


def _strings(fields: Mapping[str, Any], depth: int) -> Iterator[tuple[str, str]]:
    """The strings in an object and in those inside it."""
    for name, value in fields.items():
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, dict) and depth:
            yield from _strings(value, depth - 1)


def _of_string(text: str) -> Attachment:
    media_type, encoded, _ = _payload(text)
    return Attachment(_medium(media_type), media_type, encoded)


def _payload(data: str) -> tuple[str, EncodedBytes | None, str]:
    """The media type, the bytes, and the plain text of data, as far as there are any."""
    if not data.startswith("data:"):
        return "", EncodedBytes(data) if data else None, ""
    head, _, _ = data[:_SCHEME_CHARS_MAX].partition(",")
    media_type, _, encoding = head.removeprefix("data:").partition(";")
    body = data[len(head) + 1 :]
    if encoding.endswith("base64"):
        return media_type, EncodedBytes(body), ""
    is_text = media_type.startswith("text/") or not media_type
    return media_type, None, unquote(body) if is_text else ""
