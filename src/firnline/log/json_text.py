"""JSON of any size without keeping other threads waiting.

The fast parser keeps the interpreter's lock until it is done: a second for eight megabytes of empty
lists. Text with so many values is parsed by Python's own slower parser, which gives the lock away
as all Python code does.
"""

from __future__ import annotations

import json
from json import decoder, scanner
from typing import Any, Final

from firnline.log.threads import has_many_values

_COSTS: Final = {",": 1, "[": 4, "{": 4, ":": 8}
"""What the fast parser needs for a value, a list, an object and a key, in 50 nanoseconds."""
_COST_MAX: Final = 2_000_000
_SHORT: Final = _COST_MAX // max(_COSTS.values())


class _SlowDecoder(json.JSONDecoder):
    """Parses objects and arrays in Python, strings still in C."""

    parse_object: Any
    parse_array: Any
    scan_once: Any

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.parse_object, self.parse_array = decoder.JSONObject, decoder.JSONArray  # type: ignore[attr-defined]
        self.scan_once = scanner.py_make_scanner(self)  # type: ignore[attr-defined]


def parse_json(text: str | bytes, **options: Any) -> Any:
    """The value of a JSON text; options and errors are those of `json.loads`."""
    if len(text) <= _SHORT:
        return json.loads(text, **options)
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    if sum(text.count(mark) * cost for mark, cost in _COSTS.items()) <= _COST_MAX:
        return json.loads(text, **options)
    return _SlowDecoder(**options).decode(text)


def dump_json(value: object) -> str:
    """`json.dumps`, with many values in Python."""
    return (
        "".join(json.JSONEncoder().iterencode(value))
        if has_many_values(value)
        else json.dumps(value)
    )
