"""The server's log: one JSON object a line, or lines for a terminal.

No secret and nobody's words get into it. Whatever a line is made of passes one place, the last one
before the bytes: tokens and keys are blanked, control characters escaped, and an exception is told
by its kind and by where it happened, in its own words only if those are ours or the system's.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import traceback
from collections.abc import Collection, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, Final, TextIO

from firnline.errors import FirnlineError, outline
from firnline.log.regex import regex

_TEXT_CHARS_MAX: Final = 8_000
_FRAMES_MAX: Final = 30
_CHAIN_MAX: Final = 8
_SECRET_CHARS_MIN: Final = 6
_BLANK: Final = "***"


# -- whose request a line belongs to ----------------------------------------------------------


@dataclass(slots=True)
class Asked:
    """The request that is being answered; the tenant is known once its key has been checked."""

    id: str
    state: Mapping[str, Any] = field(default_factory=dict)
    named: str | None = None

    @property
    def tenant(self) -> str | None:
        """Whose request it is: what was said by `identify`, or the caller that the gate let in."""
        return self.named or getattr(self.state.get("caller"), "tenant", None)


asked: Final[ContextVar[Asked | None]] = ContextVar("firnline_request", default=None)
"""The request that the present task works for; None in the background."""


def request_id() -> str | None:
    """The id of the present request."""
    current = asked.get()
    return current.id if current else None


def identify(tenant: str) -> None:
    """Say whose request this is, where no gate has done so."""
    current = asked.get()
    if current is not None:
        current.named = tenant


# -- what may not be in a line ----------------------------------------------------------------

_NAMES: Final = (
    r"(?:proxy-)?authorization|x-api-key|api[-_]?key|(?:x-telegram-bot-api-)?secret[-_]token"
    r"|password|passwd|(?:set-)?cookie"
)
_BETWEEN: Final = r"""["']?\s*[:=,]\s*(?:b?["'])?"""
_VALUE: Final = r"""(?:(?:bearer|basic|digest|token|bot)\s+)?[^\s"',;&)}\]]+"""
_PATTERNS: Final = tuple(
    (regex(pattern, re.IGNORECASE), blank)
    for pattern, blank in (
        # A header, a field or a parameter of that name, as it is or as Python or JSON write it.
        (rf"\b({_NAMES})({_BETWEEN}){_VALUE}", rf"\1\2{_BLANK}"),
        (r"\bbearer\s+[\w.~+/=:-]+", f"Bearer {_BLANK}"),
        (r"(?<![a-z0-9])fl_[\w-]{6,}|fl_[0-9a-f]{12,}\w*", f"fl_{_BLANK}"),
        (r"(?<!\d)\d{5,}(?::|%3a)[\w-]{20,}", _BLANK),  # a Telegram bot's token
        (r"(?<![a-z0-9])(?:sk|rk|pk|xai|gsk|hf|ghp)[-_][\w-]{12,}", _BLANK),  # providers' keys
        (r"(?<=://)[^/\s@]{0,200}:[^/\s@]{0,200}@", f"{_BLANK}@"),
    )
)


def redacted(text: str, secrets: Collection[str] = ()) -> str:
    """The text without keys, tokens and passwords, nor anything in `secrets`."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SECRET_CHARS_MIN:
            text = text.replace(secret, _BLANK)
    for pattern, blank in _PATTERNS:
        text = pattern.sub(blank, text)
    return text


def escaped(text: str) -> str:
    """The text in one line: what is not printable becomes an escape, as in Python."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


# -- lines ------------------------------------------------------------------------------------


class Lines(logging.Formatter):
    """Records as lines of JSON, or as lines that are pleasant to read."""

    def __init__(self, *, as_json: bool, secrets: Collection[str] = ()) -> None:
        super().__init__()
        self._as_json, self._secrets = as_json, tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line; an exception takes more than one on a terminal."""
        fields = {name: self._clean(value) for name, value in _fields(record)}
        if self._as_json:
            return json.dumps(fields).replace("\x7f", "\\u007f")
        trace = fields.pop("exception", "")
        time, level, name, message = (escaped(str(fields.pop(key))) for key in _FIRST)
        rest = "".join(f" {key}={escaped(str(value))}" for key, value in fields.items())
        lines = [f"{time} {level:<7} {name}: {message}{rest}"]
        lines += [f"    {escaped(line)}" for line in str(trace).splitlines()]
        return "\n".join(lines)

    def _clean(self, value: object) -> object:
        if isinstance(value, bool | int | float) or value is None:
            return value
        text = redacted(str(value), self._secrets)  # before it is cut, lest half a secret be left
        return text if len(text) <= _TEXT_CHARS_MAX else f"{text[:_TEXT_CHARS_MAX]}…"


_FIRST: Final = ("time", "level", "logger", "message")


def _fields(record: logging.LogRecord) -> Iterator[tuple[str, object]]:
    """What a record says: always the first four, the rest if there is any."""
    time = datetime.fromtimestamp(record.created, UTC)
    yield "time", time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    yield "level", record.levelname
    yield "logger", record.name
    yield "message", _message(record)
    current = asked.get()
    if current is not None:
        yield "request_id", current.id
        if current.tenant is not None:
            yield "tenant", current.tenant
    given = getattr(record, "fields", None)
    if isinstance(given, Mapping):
        yield from given.items()
    if record.exc_info and record.exc_info[1] is not None:
        yield "exception", "\n".join(_told(record.exc_info[1]))


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - a line that is wrong is better than none
        return f"{record.msg} (its values do not fit)"


def _told(error: BaseException, depth: int = 0) -> Iterator[str]:
    """An exception, where it came from, and what it was caused by."""
    yield escaped(_words(error))
    frames = list(traceback.walk_tb(error.__traceback__))[-_FRAMES_MAX:]
    for frame, number in frames:
        code = frame.f_code
        file = "/".join(PurePath(code.co_filename).parts[-3:])
        yield f"  {file}:{number} in {code.co_name}"
    if depth >= _CHAIN_MAX:
        return
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _told(inner, depth + 1)
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield "caused by"
        yield from _told(cause, depth + 1)


def _words(error: BaseException) -> str:
    """What is said of an exception: its own words only if no message can be in them."""
    name = type(error).__name__
    if isinstance(error, FirnlineError):
        told = outline(error)
        return told if told.startswith(name) else f"{name}: {told}"
    if isinstance(error, OSError) and error.errno:
        return f"{name}: {os.strerror(error.errno)}"  # by its number: its text can be anybody's
    return name


# -- setting it up ----------------------------------------------------------------------------


class _Handler(logging.StreamHandler[TextIO]):
    """Writes lines; a stream that is gone stops nobody, and nothing raw is printed instead."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        del record


def configure(
    level: str = "info",
    as_json: bool | None = None,
    *,
    secrets: Collection[str] = (),
    stream: TextIO | None = None,
) -> logging.Handler:
    """Log what this process does from `level` on; returns what writes it.

    As JSON unless the stream is a terminal, or as `as_json` says. `secrets` are blanked wherever
    they appear. Only Firnline's own lines obey `level`: what other libraries say below WARNING may
    hold whole requests, so it is not asked for.
    """
    out = sys.stderr if stream is None else stream
    handler = _Handler(out)
    chosen = not out.isatty() if as_json is None else as_json
    handler.setFormatter(Lines(as_json=chosen, secrets=secrets))
    root = logging.getLogger()
    for old in [known for known in root.handlers if isinstance(known, _Handler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    least = logging.getLevelNamesMapping()[level.upper()]
    logging.getLogger("firnline").setLevel(least)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        server = logging.getLogger(name)
        server.handlers.clear()
        server.propagate = True
        server.setLevel(max(least, logging.INFO))
    # It would write every path with its query; our own access log has the route instead.
    logging.getLogger("uvicorn.access").setLevel(logging.CRITICAL)
    return handler
