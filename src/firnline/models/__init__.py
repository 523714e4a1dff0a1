"""Language models behind one small protocol, `firnline.protocols.ChatModel`.

`open_model` takes any OpenAI-compatible endpoint and needs the extra ``firnline[models]``;
`callable_model` takes any async function; `with_fallback` joins two. `guard` bounds what a failing
or looping model can cost.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from firnline.errors import FirnlineError, InputError
from firnline.models.fallback import FallbackModel, with_fallback
from firnline.models.function import callable_model
from firnline.models.guard import Allowance, Backoff, Breaker, Spend
from firnline.models.timeouts import Timeouts
from firnline.protocols import ChatModel

__all__ = [
    "Allowance",
    "Backoff",
    "Breaker",
    "FallbackModel",
    "Spend",
    "Timeouts",
    "callable_model",
    "open_model",
    "with_fallback",
]


class Provider(NamedTuple):
    """Where a provider's models are, and which environment variable holds its key, if any."""

    url: str
    key_variable: str = ""


PROVIDERS: Final[Mapping[str, Provider]] = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "xai": Provider("https://api.x.ai/v1", "XAI_API_KEY"),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "ollama": Provider("http://localhost:11434/v1"),
    "vllm": Provider("http://localhost:8000/v1"),
    "llamacpp": Provider("http://localhost:8080/v1"),
}


def open_model(
    name: str,
    *,
    api_key: str | None = None,
    url: str | None = None,
    timeouts: Timeouts = Timeouts(),  # noqa: B008 - a value that never changes
    retries: int = 3,
) -> ChatModel:
    """The model called `name`, such as ``openai/gpt-4o-mini``, ``xai/grok-4`` or ``ollama/qwen3``.

    The part before the first slash is the provider and picks the address; `url` overrides it, up to
    and including ``/v1``. Without `api_key` the provider's environment variable is read, here and
    nowhere else, and only for the provider's own address: a key is never sent to another.
    """
    found = locate_model(name, api_key=api_key, url=url)
    try:
        from firnline.models.http import HttpModel  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("firnline"):
            raise
        raise FirnlineError('open_model needs an extra: pip install "firnline[models]"') from error
    return HttpModel(
        found.model, url=found.url, api_key=found.api_key, timeouts=timeouts, retries=retries
    )


class ModelAddress(NamedTuple):
    """A model's name as its provider spells it, the provider's address, and the key for it."""

    model: str
    url: str
    api_key: str | None


def locate_model(
    name: str, *, api_key: str | None = None, url: str | None = None, or_else: str = ""
) -> ModelAddress:
    """Where the model called `name` is, and with which key; the rules are those of `open_model`.

    `or_else` is what else the caller would take, for those who gave neither.
    """
    prefix, _, model = name.partition("/")
    provider = PROVIDERS.get(prefix)
    if provider is None or not model:
        if url is None or not name:
            known = ", ".join(PROVIDERS)
            raise InputError(
                f"{name!r}: expected {or_else}PROVIDER/MODEL with one of {known}, or a name and"
                " the URL of an endpoint"
            )
        return ModelAddress(name, url, api_key)
    if api_key is None and url is None and provider.key_variable:
        api_key = os.environ.get(provider.key_variable)
        if not api_key:
            raise InputError(f"{name} needs a key: set {provider.key_variable}, or give one")
    return ModelAddress(model, url or provider.url, api_key)
