"""Language models behind one small protocol, `firnline.protocols.ChatModel`.

`open_model` opens any OpenAI-compatible endpoint and needs the extra ``firnline[models]``;
`callable_model` wraps any async function; `with_fallback` joins two models. `guard` limits the cost
of a failing or looping model.
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
    """A provider's URL, and the environment variable with its key, if any.

    `url_variable` has the beginning of the URL if each customer has another one. If gateways
    offer its models under its name (`resold`), the name stays whole with another URL.
    """

    url: str
    key_variable: str = ""
    url_variable: str = ""
    resold: bool = False


PROVIDERS: Final[Mapping[str, Provider]] = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": Provider("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", resold=True),
    "gemini": Provider(
        "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", resold=True
    ),
    "azure": Provider("/openai/v1", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", resold=True),
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

    The part before the first slash is the provider and selects the URL; `url` overrides it, up to
    and including ``/v1``, for any gateway. Azure's is in ``AZURE_OPENAI_ENDPOINT``. Without
    `api_key` the provider's environment variable is read, only here, and only for the provider's
    own URL: a key is never sent to another one.
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
    """A model's name at its provider, the provider's URL, and the key for it."""

    model: str
    url: str
    api_key: str | None


def locate_model(
    name: str, *, api_key: str | None = None, url: str | None = None, or_else: str = ""
) -> ModelAddress:
    """The URL and the key of the model called `name`, by the rules of `open_model`.

    `or_else` names what else the caller accepts, for the error message.
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
    if url is not None and provider.resold:
        return ModelAddress(name, url, api_key)
    if api_key is None and url is None and provider.key_variable:
        api_key = os.environ.get(provider.key_variable)
        if not api_key:
            raise InputError(f"{name} needs a key: set {provider.key_variable}, or pass api_key")
    return ModelAddress(model, url or _own_url(name, provider), api_key)


def _own_url(name: str, provider: Provider) -> str:
    """The provider's URL; `InputError` if the environment does not say it."""
    if not provider.url_variable:
        return provider.url
    start = os.environ.get(provider.url_variable, "").rstrip("/")
    if not start:
        raise InputError(f"{name} needs an endpoint: set {provider.url_variable}, or pass url")
    return start if start.endswith(provider.url) else f"{start}{provider.url}"
