"""The server's log: one JSON object per line, or lines for a terminal.

It contains no secrets and no message text. Every line passes one formatter: tokens and keys are
redacted, control characters are escaped, and an exception is logged with its type and location; its
message only if it comes from Firnline or the operating system.
"""

from __future__ import annotations

import json
import logging
import math
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
from firnline.log import limits
from firnline.log.regex import regex
from firnline.server.limits import LOGGED_CAUSES_MAX, LOGGED_CHARS_MAX, LOGGED_FRAMES_MAX

_SECRET_CHARS_MIN: Final = 6
_BLANK: Final = "***"


# -- the request of a line --------------------------------------------------------------------


@dataclass(slots=True)
class RequestInfo:
    """The current request; its tenant is known once its key has been checked."""

    id: str
    state: Mapping[str, Any] = field(default_factory=dict)
    named: str | None = None

    @property
    def tenant(self) -> str | None:
        """The tenant from `set_tenant`, or of the authenticated caller."""
        return self.named or getattr(self.state.get("caller"), "tenant", None)


current_request: Final[ContextVar[RequestInfo | None]] = ContextVar(
    "firnline_request", default=None
)
"""The request of the current task; None in the background."""


def request_id() -> str | None:
    """The id of the current request."""
    current = current_request.get()
    return current.id if current else None


def set_tenant(tenant: str) -> None:
    """Set the tenant of the current request, for requests without an API key."""
    current = current_request.get()
    if current is not None:
        current.named = tenant


# -- redaction --------------------------------------------------------------------------------

_NAMES: Final = (
    r"(?:proxy-)?authorization|x-api-key|api[-_]?key|(?:x-telegram-bot-api-)?secret[-_]token"
    r"|password|passwd|(?:set-)?cookie"
)
_BETWEEN: Final = r"""["']?\s*[:=,]\s*(?:b?["'])?"""
_VALUE: Final = r"""(?:(?:bearer|basic|digest|token|bot)\s+)?[^\s"',;&)}\]]+"""
_PATTERNS: Final = tuple(
    (regex(pattern, re.IGNORECASE), blank)
    for pattern, blank in (
        # A header, field or parameter of that name, in plain text, Python or JSON.
        (rf"\b({_NAMES})({_BETWEEN}){_VALUE}", rf"\1\2{_BLANK}"),
        (r"\bbearer\s+[\w.~+/=:-]+", f"Bearer {_BLANK}"),
        (r"(?<![a-z0-9])fl_[\w-]{6,}+|fl_[0-9a-f]{12,}+\w*+", f"fl_{_BLANK}"),
        (r"(?<!\d)\d{5,}(?::|%3a)[\w-]{20,}", _BLANK),  # a Telegram bot's token
        (r"(?<![a-z0-9])(?:sk|rk|pk|xai|gsk|hf|ghp)[-_][\w-]{12,}", _BLANK),  # providers' keys
        (r"(?<=://)[^/\s@]{0,200}:[^/\s@]{0,200}@", f"{_BLANK}@"),
    )
)


def redact(text: str, secrets: Collection[str] = ()) -> str:
    """The text without keys, tokens, passwords and `secrets`."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SECRET_CHARS_MIN:
            text = text.replace(secret, _BLANK)
    for pattern, blank in _PATTERNS:
        text = pattern.sub(blank, text)
    return text


def escape(text: str) -> str:
    """The text in one line: unprintable characters are escaped as in Python."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


# -- lines ------------------------------------------------------------------------------------


class LogFormatter(logging.Formatter):
    """Formats records as JSON or as readable lines."""

    def __init__(self, *, as_json: bool, secrets: Collection[str] = ()) -> None:
        super().__init__()
        self._as_json, self._secrets = as_json, tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line; on a terminal, an exception takes several."""
        fields = {name: self._clean(value) for name, value in _fields(record)}
        if self._as_json:
            return json.dumps(fields).replace("\x7f", "\\u007f")
        trace = fields.pop("exception", "")
        time, level, name, message = (escape(str(fields.pop(key))) for key in _FIRST)
        rest = "".join(f" {key}={escape(str(value))}" for key, value in fields.items())
        lines = [f"{time} {level:<7} {name}: {message}{rest}"]
        lines += [f"    {escape(line)}" for line in str(trace).splitlines()]
        return "\n".join(lines)

    def _clean(self, value: object) -> object:
        if isinstance(value, bool | int | float) or value is None:
            return value
        text = redact(
            str(value), self._secrets
        )  # before truncation, which could leave half a secret
        return text if len(text) <= LOGGED_CHARS_MAX else f"{text[:LOGGED_CHARS_MAX]}…"


_FIRST: Final = ("time", "level", "logger", "message")


def _fields(record: logging.LogRecord) -> Iterator[tuple[str, object]]:
    """The fields of a record: the first four always, the rest if present."""
    time = datetime.fromtimestamp(record.created, UTC)
    yield "time", time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    yield "level", record.levelname
    yield "logger", record.name
    yield "message", _message(record)
    current = current_request.get()
    if current is not None:
        yield "request_id", current.id
        if current.tenant is not None:
            yield "tenant", current.tenant
    extra = getattr(record, "fields", None)
    if isinstance(extra, Mapping):
        yield from extra.items()
    if record.exc_info and record.exc_info[1] is not None:
        yield "exception", "\n".join(_describe(record.exc_info[1]))


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - an incomplete line is better than none
        return f"{record.msg} (its arguments do not match)"


def _describe(error: BaseException, depth: int = 0) -> Iterator[str]:
    """An exception, its location, and its causes."""
    yield escape(_summary(error))
    frames = list(traceback.walk_tb(error.__traceback__))[-LOGGED_FRAMES_MAX:]
    for frame, number in frames:
        code = frame.f_code
        file = "/".join(PurePath(code.co_filename).parts[-3:])
        yield f"  {file}:{number} in {code.co_name}"
    if depth >= LOGGED_CAUSES_MAX:
        return
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _describe(inner, depth + 1)
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield "caused by"
        yield from _describe(cause, depth + 1)


def _summary(error: BaseException) -> str:
    """The type of an exception; with its message only if that contains no user data."""
    name = type(error).__name__
    if isinstance(error, FirnlineError):
        text = outline(error)
        return text if text.startswith(name) else f"{name}: {text}"
    if isinstance(error, OSError) and error.errno:
        return (
            f"{name}: {os.strerror(error.errno)}"  # by its number: the text may contain user data
        )
    return name


# -- setup ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Repeats:
    """Lines of one kind in the current period: when it began, how many, and the newest."""

    since: float
    count: int = 0
    newest: logging.LogRecord | None = None


class RepeatLimit:
    """Bounds how fast warnings and errors fill a disk: of one kind, only some are logged.

    Of a kind are those of one call site, whatever the values in them, with the same exception.
    The others are counted, and the count is logged after the period.
    """

    def __init__(self) -> None:
        self._kinds: dict[tuple[object, ...], _Repeats] = {}
        self._next = math.inf

    def passes(self, record: logging.LogRecord) -> bool:
        """Whether to log this record."""
        if record.levelno < logging.WARNING:
            return True
        kind = _kind_of(record)
        seen = self._kinds.get(kind)
        if seen is None:
            if len(self._kinds) >= limits.REPEAT_KINDS_MAX:
                del self._kinds[next(iter(self._kinds))]
            seen = self._kinds[kind] = _Repeats(record.created)
            self._next = min(self._next, record.created + limits.REPEAT_SECONDS)
        seen.count += 1
        if seen.count <= limits.REPEATS_MAX:
            return True
        seen.newest = record
        return False

    def summaries(self, now: float) -> Iterator[logging.LogRecord]:
        """A record for each kind whose period is over and of which some were not logged."""
        if now < self._next:
            return
        over = [
            (kind, seen)
            for kind, seen in self._kinds.items()
            if now >= seen.since + limits.REPEAT_SECONDS
        ]
        for kind, seen in over:
            del self._kinds[kind]
            if seen.newest is not None:
                yield _summary_of(seen.newest, seen.count - limits.REPEATS_MAX)
        since = min((seen.since for seen in self._kinds.values()), default=math.inf)
        self._next = since + limits.REPEAT_SECONDS


_VARYING: Final = regex(r"0x[0-9a-f]+|\d+", re.IGNORECASE)
_KIND_CHARS: Final = 200


def _kind_of(record: logging.LogRecord) -> tuple[object, ...]:
    """What is the same in repeated records; some loggers put numbers into their templates."""
    error = record.exc_info[1] if record.exc_info else None
    trace = error.__traceback__ if error is not None else None
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = (trace.tb_frame.f_code.co_filename, trace.tb_lineno) if trace is not None else None
    text = _VARYING.sub("#", str(record.msg)[:_KIND_CHARS])
    return record.name, record.levelno, text, type(error), where


def _summary_of(record: logging.LogRecord, count: int) -> logging.LogRecord:
    facts = {
        "name": record.name,
        "levelno": record.levelno,
        "levelname": record.levelname,
        "msg": f"{count:,} more like this: {_message(record)}",
        "fields": {"repeated": count},
    }
    return logging.makeLogRecord(facts)


class LogHandler(logging.StreamHandler[TextIO]):
    """Writes lines; errors of the stream are ignored, and nothing unredacted is printed."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._repeats = RepeatLimit()

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, unless too many like it were written in the last minute."""
        self._summarize(record.created)
        if self._repeats.passes(record):
            super().emit(record)

    def close(self) -> None:
        """Write what has been counted only."""
        self._summarize(math.inf)
        super().close()

    def _summarize(self, now: float) -> None:
        for summary in self._repeats.summaries(now):
            token = current_request.set(None)  # it is about many requests
            try:
                super().emit(summary)
            finally:
                current_request.reset(token)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Ignore errors of the stream."""
        del record


def configure(
    level: str = "info",
    as_json: bool | None = None,
    *,
    secrets: Collection[str] = (),
    stream: TextIO | None = None,
) -> logging.Handler:
    """Configure logging from `level` on; returns the handler.

    As JSON unless the stream is a terminal, or as `as_json` says. `secrets` are redacted.
    `level` applies to Firnline only: other libraries log from WARNING on, because their debug lines
    may contain complete requests.
    """
    out = sys.stderr if stream is None else stream
    handler = LogHandler(out)
    chosen = not out.isatty() if as_json is None else as_json
    handler.setFormatter(LogFormatter(as_json=chosen, secrets=secrets))
    root = logging.getLogger()
    for old in [known for known in root.handlers if isinstance(known, LogHandler)]:
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
    # It would log every path with its query; our access log has the route instead.
    logging.getLogger("uvicorn.access").setLevel(logging.CRITICAL)
    return handler
