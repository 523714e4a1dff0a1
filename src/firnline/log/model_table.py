"""Models by name: their windows and tokenizers, from the table ``models.txt``. Pure.

Names come in many forms: with a provider's prefix, a region, a date, a tag, or as a deployment's
own name around the model's. So names and rows are compared by their words and numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Final, NamedTuple

from firnline.log.regex import regex

NAME_CHARS_MAX: Final = 256
"""A longer name is unknown."""


class ModelInfo(NamedTuple):
    """A model's encoding and window, the longest prompt; None if that is unknown.

    `factor` > 1 if the tokenizer is not public: counts by `encoding` are multiplied by it.
    """

    encoding: str
    window_tokens: int | None
    factor: float = 1.0


UNKNOWN: Final = ModelInfo("o200k_base", None, 1.25)

_WORD: Final = regex(r"[a-z]+|[0-9]+")
_VERSION: Final = regex(r"(?<![a-z0-9])v(?=[0-9])|(?<=[0-9])p(?=[0-9])")
"""What providers write before or within a version: ``llama-v3p1`` is ``llama-3.1``."""
_REVISION: Final = regex(r"-v[0-9]+(:[0-9]+)+[a-z]*$")
"""The end of a Bedrock id: ``-v1:0``."""
_VENDOR: Final = regex(
    r"(?:[a-z]+(?:-gov)?\.)?(?:ai21|amazon|cohere|openai|perplexity|writer)\."
    r"|(?:amazon|azure|cohere|databricks|ibm|openai|perplexity)-"
)
"""A vendor before a name that is only known at its start."""
_SIZE: Final = regex(r"(?<![a-z0-9])(?:([1-9][0-9]{0,3})k|(10|[1-9])m)(?![a-z0-9])")
"""A window in thousands or millions; a larger number before an m counts parameters."""
_FINE_TUNE: Final = "ft:"
_START, _WHOLE = "^", "="


@lru_cache(maxsize=1_024)
def find_model(name: str) -> ModelInfo:
    """The encoding and window of the model `name`, such as ``openai/gpt-4o``.

    The longest row of the table that fits is used, and a size in the name such as ``-128k`` or
    ``[1m]`` decides. For an unknown model the window is None, and counts are estimates.
    """
    if len(name) > NAME_CHARS_MAX:
        return UNKNOWN
    bare = _bare(name)
    words = _words(bare)
    found, end, longest = UNKNOWN, 0, 0
    for at, to, row in _matches(bare, words):
        length = sum(len(text) + 1 for text, _, _ in words[at:to])
        if length > longest:
            found, end, longest = row, words[to - 1][2], length
    if found is not UNKNOWN and (size := _SIZE.search(bare, end)):
        window = int(size[1]) * 1_000 if size[1] else int(size[2]) * 1_000_000
        return found._replace(window_tokens=window)
    return found


def _bare(name: str) -> str:
    """The name without path, revision, vendor and the organization of a fine-tuned model."""
    bare = name.strip().lower().rsplit("/", 1)[-1]
    if bare.startswith(_FINE_TUNE):
        bare = bare.removeprefix(_FINE_TUNE).partition(":")[0]
    bare = _REVISION.sub("", bare)
    vendor = _VENDOR.match(bare)
    return bare[vendor.end() :] if vendor else bare


def _words(bare: str) -> list[tuple[str, int, int]]:
    """The words and numbers of a name, with their places."""
    skipped = {match.start() for match in _VERSION.finditer(bare)}
    return [
        (match[0], match.start(), match.end())
        for match in _WORD.finditer(bare)
        if match.start() not in skipped
    ]


def _matches(bare: str, words: list[tuple[str, int, int]]) -> Iterator[tuple[int, int, ModelInfo]]:
    """The rows that fit, with the words that they fit: whole words, from a separator on."""
    rows, most = _table()
    for at, (_, start, _) in enumerate(words):
        if start and bare[start - 1].isalnum() and words[at - 1][2] == start:
            continue
        for to in range(at + 1, min(at + most, len(words)) + 1):
            key = " ".join(text for text, _, _ in words[at:to])
            where, row = rows.get(key, ("", None))
            if row is None or not _ends(bare, words[to - 1]):
                continue
            if (where and at) or (where == _WHOLE and to < len(words)):
                continue
            yield at, to, row


def _ends(bare: str, last: tuple[str, int, int]) -> bool:
    """Whether a name may end here: ``llama`` in ``llama3``, but not ``gpt-4`` in ``gpt-4all``."""
    text, _, end = last
    if end == len(bare) or not bare[end].isalnum() or _VERSION.match(bare, end):
        return True
    return text.isalpha() and bare[end].isdigit()


@cache
def _table() -> tuple[Mapping[str, tuple[str, ModelInfo]], int]:
    """The rows by their words, and the most words of a row."""
    text = resources.files("firnline.log").joinpath("models.txt").read_text("utf-8")
    rows: dict[str, tuple[str, ModelInfo]] = {}
    encoding, factor = UNKNOWN.encoding, UNKNOWN.factor
    for line in text.splitlines():
        if line.startswith("["):
            encoding, number = line.strip("[]").split()
            factor = float(number)
        elif line and not line.startswith("#"):
            name, window = line.split()
            where = name[0] if name[0] in (_START, _WHOLE) else ""
            key = " ".join(text for text, _, _ in _words(name.removeprefix(where)))
            rows[key] = where, ModelInfo(encoding, int(window), factor)
    return rows, max(key.count(" ") + 1 for key in rows)
