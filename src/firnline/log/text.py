"""Makes text and JSON storable, once, on the way in, the same for every backend.

Two things that backends do not store alike are replaced visibly: a lone surrogate becomes U+FFFD
and NUL becomes U+2400. Everything else is kept byte for byte: no trimming, no Unicode
normalization, no change of case.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias, TypeGuard

from firnline.errors import InputError
from firnline.log import limits
from firnline.log.regex import regex

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_OBJECT: Final = (dict, Mapping)  # dict first: nearly all are, and the check is ten times faster
_SMALL: Final = 2**63
_INTEGER_BITS_MAX = int(limits.INTEGER_DIGITS_MAX / math.log10(2))


class Altered(str):
    """Text in which something was replaced; a message made of it is marked as normalised."""

    __slots__ = ()


def plural(count: int, noun: str, several: str = "") -> str:
    """A count with its noun: "1 message", "2,000 messages"."""
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def clean_text(text: str) -> str:
    """Return `text` with lone surrogates and NULs replaced; most text is returned unchanged."""
    if isinstance(text, Altered):
        return str.__str__(text)
    if "\0" in text:
        text = text.replace("\0", "\u2400")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # Through UTF-16, so that a pair split over two characters is joined, not lost.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_json(value: object, where: str = "value", depth: int = 0) -> Json:
    """Return a copy of `value` made of plain JSON types with clean text, or raise `InputError`.

    Objects keep the order of their keys.
    """
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _clean_number(value, where)
    if depth >= limits.JSON_DEPTH_MAX:
        raise InputError(f"{where}: nested deeper than {limits.JSON_DEPTH_MAX} levels")
    if isinstance(value, _OBJECT):
        return _clean_object(value, where, depth)
    if isinstance(value, list | tuple):
        # Only what needs one gets a name for errors: naming took most of the time.
        return [
            item if _is_small(item) else clean_json(item, f"{where}[{i}]", depth + 1)
            for i, item in enumerate(value)
        ]
    raise InputError(f"{where}: {type(value).__name__} is not JSON")


def _is_small(value: Any) -> TypeGuard[bool | int | str | None]:
    """Whether it is a value that is clean as it is, and many of them come together."""
    kind = type(value)
    if kind is str:
        return not value or (value.isascii() and "\0" not in value)
    return value is None or kind is bool or (kind is int and -_SMALL < value < _SMALL)


def _clean_number(value: float, where: str) -> int | float:
    if isinstance(value, int):
        if value.bit_length() > _INTEGER_BITS_MAX:
            raise InputError(f"{where}: an integer of more than {limits.INTEGER_DIGITS_MAX} digits")
        return int(value)
    if not math.isfinite(value):
        raise InputError(f"{where}: {value} is not JSON")
    return float(value)


def _clean_object(value: Mapping[object, object], where: str, depth: int) -> dict[str, Json]:
    cleaned: dict[str, Json] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise InputError(f"{where}: the key {key!r} is not a string")
        name = clean_text(key)
        if name in cleaned:
            raise InputError(f"{where}: the key {name!r} occurs twice after cleaning")
        cleaned[name] = item if _is_small(item) else clean_json(item, f"{where}.{name}", depth + 1)
    return cleaned


def was_altered(original: object, cleaned: Json) -> bool:
    """Whether any text of `original` had to be changed to get `cleaned`, its clean copy."""
    if original is cleaned:
        return False
    if isinstance(original, str):
        return isinstance(original, Altered) or original != cleaned
    if isinstance(original, _OBJECT) and isinstance(cleaned, dict):
        pairs = zip(original.items(), cleaned.items(), strict=True)
        return any(was_altered(a, b) or was_altered(x, y) for (a, x), (b, y) in pairs)
    if isinstance(original, list | tuple) and isinstance(cleaned, list):
        return any(was_altered(x, y) for x, y in zip(original, cleaned, strict=True))
    return False


def mark_altered(value: object) -> Json:
    """A clean copy of parsed JSON, in which text that had to be changed is `Altered`."""
    cleaned = clean_json(value)
    return cleaned if cleaned == value else _mark_altered(value, cleaned)


def _mark_altered(original: object, cleaned: Json) -> Json:
    if isinstance(original, str) and isinstance(cleaned, str):
        return Altered(cleaned) if original != cleaned else cleaned
    if isinstance(original, dict) and isinstance(cleaned, dict):
        pairs = zip(original.items(), cleaned.items(), strict=True)
        return {b if a == b else Altered(b): _mark_altered(x, y) for (a, x), (b, y) in pairs}
    if isinstance(original, list) and isinstance(cleaned, list):
        return [_mark_altered(x, y) for x, y in zip(original, cleaned, strict=True)]
    return cleaned


def clean_fields(value: object, where: str) -> dict[str, Json]:
    """Return a clean JSON object, or raise `InputError` if `value` is something else."""
    if not isinstance(value, _OBJECT):
        raise InputError(f"{where}: expected an object, got {type(value).__name__}")
    return _clean_object(value, where, 0)


def clean_name(name: str, what: str) -> str:
    """Return `name` if it can name a tenant, conversation or project, else raise `InputError`.

    Names are compared byte for byte, so invisible characters are rejected rather than repaired.
    """
    if not isinstance(name, str):
        raise InputError(f"{what}: expected a string, got {type(name).__name__}")
    if not 1 <= len(name) <= limits.NAME_CHARS_MAX:
        raise InputError(
            f"{what}: {len(name)} characters; the limit is 1 to {limits.NAME_CHARS_MAX}"
        )
    if not name.isprintable() or name != name.strip():
        raise InputError(
            f"{what}: {name!r} has control or invisible characters, or leading or trailing spaces"
        )
    return name


USER_HEADERS: Final = ("x-firnline-user", "x-openwebui-user-id")
"""The headers of a request that name its user, the first that is there counts."""


def person_name(user: str) -> str | None:
    """The name of the person that a request calls its user; None if it cannot be one."""
    shown = " ".join(user.split())
    if len(shown) > limits.NAME_CHARS_MAX:  # one name for one user, whatever its length
        mark = hashlib.blake2b(user.encode(), digest_size=16).hexdigest()
        shown = f"{shown[: limits.NAME_CHARS_MAX // 2]}-{mark}"
    try:
        return clean_name(shown, "person")
    except InputError:
        return None


# -- long texts -------------------------------------------------------------------------------

_BREAK: Final = regex(r"[\s\u3001\u3002\uff01\uff0c\uff1b]")
"""Characters that no word and no character made of several has inside."""


def slices(text: str) -> Iterator[str]:
    """The parts of a text in order, cut between words if there is such a place.

    A call of C code on all of a long text would keep every other thread waiting.
    """
    start = 0
    while len(text) - start > limits.SLICE_CHARS:
        least, most = start + limits.SLICE_CHARS // 2, start + limits.SLICE_CHARS
        near = _BREAK.search(text, least, most)
        end = near.start() if near else most
        yield text[start:end]
        start = end
    yield text[start:]


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """The text in a Unicode normalization form, in linear time.

    Of more combining marks in a row than any language has, the first are kept: sorting them takes
    Python the square of their number.
    """
    if text.isascii():
        return text
    return "".join(unicodedata.normalize(form, _few_marks(part)) for part in slices(text))


def _few_marks(text: str) -> str:
    if len(text) <= limits.MARKS_MAX:
        return text
    marks = frozenset(filter(_is_mark, set(text)))
    if not marks:
        return text
    kept, run = [], 0
    for char in text:
        run = run + 1 if char in marks else 0
        if run <= limits.MARKS_MAX:
            kept.append(char)
    return "".join(kept)


def _is_mark(char: str) -> bool:
    """Whether normalization may move it: it, or what it is made of, is no start of a character."""
    return unicodedata.combining(unicodedata.normalize("NFKD", char)[0]) > 0


# -- what providers accept --------------------------------------------------------------------

_NOT_IN_NAMES: Final = regex(
    r"[\s<|\\/>:\uff1a\ufe55\ua789\u2236\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+"
)
_NOT_IN_CALLS: Final = regex(r"[^a-zA-Z0-9_-]")
_PROVIDER_NAME_CHARS: Final = 64


def provider_name(name: str) -> str:
    """A speaker's name as OpenAI's endpoints accept it: without spaces.

    Nor colons and invisible characters: no name can read like the name and words of another.
    """
    return _NOT_IN_NAMES.sub("_", name)[:_PROVIDER_NAME_CHARS]


def provider_tool_name(name: str) -> str:
    """A tool's name as OpenAI's endpoints accept it: letters, digits, ``_`` and ``-``."""
    return _NOT_IN_CALLS.sub("_", name)[:_PROVIDER_NAME_CHARS]
