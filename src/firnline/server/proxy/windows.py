"""The window of a model behind the proxy: from the settings, the endpoint's list, or the name.

The endpoint's list of models is requested in the background, and again from time to time. Only the
first requests wait for it, and not long; a failure costs nothing but what the list would say.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

from firnline.errors import ModelError, outline
from firnline.log.limits import UNKNOWN_MODELS_MAX
from firnline.log.model_table import NAME_CHARS_MAX, find_model
from firnline.log.regex import regex
from firnline.log.threads import run_by_size
from firnline.server.proxy import limits
from firnline.server.settings import WINDOW_TOKENS_MIN, Settings

logger: Final = logging.getLogger("firnline.proxy")

Fetch: TypeAlias = Callable[[Mapping[str, str], str], Awaitable[bytes]]
"""Gets the list with a client's headers and key."""

_FIELDS: Final = (
    "loaded_context_length",  # LM Studio: as it is loaded
    "max_model_len",  # vLLM, SGLang
    "n_ctx",  # llama.cpp
    "context_length",  # OpenRouter, Together, Fireworks
    "context_window",  # Groq
    "max_context_length",  # Mistral, LM Studio
    "max_input_tokens",  # Anthropic, LiteLLM
    "inputTokenLimit",  # Gemini
    "max_prompt_tokens",  # GitHub Copilot
    "max_context_window_tokens",
)
"""What endpoints call the window; the earlier name counts if there are several."""
_NESTED: Final = ("meta", "limits", "capabilities", "model_info")
_TOO_LONG: Final = regex(
    r"(?i)(?:this (?:model|endpoint)'s )?maximum context length is ([0-9]{3,9}) tokens"
    r"|prompt is too long: [0-9]+ tokens > ([0-9]{3,9}) maximum"
)
"""How an endpoint's error begins that states the window; a client's words are not at its start."""
_PREFIX: Final = "models/"  # of Gemini's names


class ListedWindows:
    """The windows that an endpoint's list of models states; `fetch` gets the list."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._windows: Mapping[str, int] = {}
        self._learned: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None
        self._due = float("-inf")
        self._waited = False

    async def find(self, model: str, headers: Mapping[str, str], token: str) -> int | None:
        """The window of `model`; None if the list does not say it, or has not arrived."""
        if self._task is None and time.monotonic() >= self._due:
            self._task = asyncio.create_task(self._refresh(dict(headers), token))
        if self._task is not None and not self._waited:
            await asyncio.wait({self._task}, timeout=limits.LIST_WAIT_SECONDS)
            self._waited = True
        return self._windows.get(model) or self._learned.get(model)

    def learn(self, model: str, error: bytes) -> None:
        """Remember the window that an error states which rejected a request as too long."""
        window = read_limit(error)
        if window is not None and len(self._learned) < UNKNOWN_MODELS_MAX:
            self._learned[model[:NAME_CHARS_MAX]] = window
            logger.warning("model %.256r: its endpoint says a window of %d tokens", model, window)

    async def close(self) -> None:
        """End a request that is running."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _refresh(self, headers: Mapping[str, str], token: str) -> None:
        """Ask for the list; what was known stays known if that fails."""
        pause = limits.LIST_RETRY_SECONDS
        try:
            async with asyncio.timeout(limits.LIST_SECONDS):
                body = await self._fetch(headers, token)
            self._windows = await run_by_size(len(body), partial(read_windows, body))
            pause = limits.LIST_REFRESH_SECONDS
        except (ModelError, TimeoutError, ValueError, RecursionError) as error:
            logger.info("the endpoint's list of models is not available: %s", outline(error))
        except Exception:
            logger.exception("internal error while reading the endpoint's list of models")
        finally:
            self._due = time.monotonic() + pause
            self._task = None


def read_windows(body: bytes) -> dict[str, int]:
    """The windows in a list of models, by name; `ValueError` if it is not JSON. Pure."""
    found: dict[str, int] = {}
    for model in _listed(json.loads(body)):
        name = model.get("id") or model.get("name") or model.get("model_name")
        window = _stated(model)
        if isinstance(name, str) and len(name) <= NAME_CHARS_MAX and window is not None:
            found[name.removeprefix(_PREFIX)] = window
        if len(found) >= limits.LISTED_MODELS_MAX:
            break
    return found


def read_limit(error: bytes) -> int | None:
    """The window that an endpoint's error states; None if it is about something else. Pure."""
    try:
        body = json.loads(error)
    except (ValueError, RecursionError):
        return None
    body = body.get("error", body) if isinstance(body, Mapping) else None
    text = body.get("message") if isinstance(body, Mapping) else None
    found = _TOO_LONG.match(text) if isinstance(text, str) else None
    tokens = int(found[1] or found[2]) if found else 0
    return tokens if tokens >= WINDOW_TOKENS_MIN else None


def _listed(data: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(data, Mapping):
        data = data.get("data") or data.get("models")
    if isinstance(data, list):
        yield from (model for model in data if isinstance(model, Mapping))


def _stated(model: Mapping[str, Any]) -> int | None:
    """The window that a model's entry states, also within its parts."""
    parts = [model]
    for part in parts:  # grows by the parts within, which are few and not deep
        nested = (part.get(name) for name in _NESTED)
        parts += [each for each in nested if isinstance(each, Mapping)]
    for name in _FIELDS:
        for part in parts:
            tokens = part.get(name)
            if type(tokens) is int and WINDOW_TOKENS_MIN <= tokens <= limits.LISTED_TOKENS_MAX:
                return tokens
    return None


def choose_window(settings: Settings, model: str, listed: int | None) -> int | None:
    """The window for requests to `model`, of which `listed` is what the endpoint's list says.

    The settings come first, then the list, then the name. None if none of them tells, with a
    warning: then nothing may be cut, because the model may have room for it.
    """
    most = settings.window_tokens
    window = settings.windows.get(model) or listed or find_model(model).window_tokens
    if window is None and most is None:
        _warn_unknown(model[:NAME_CHARS_MAX])
        return None
    return min(tokens for tokens in (window, most) if tokens is not None)


@lru_cache(maxsize=UNKNOWN_MODELS_MAX)
def _warn_unknown(model: str) -> None:
    logger.warning(
        "the window of model %r is unknown: its requests pass through whole and are not managed, so"
        " a long conversation will exceed it. Set FIRNLINE_WINDOWS=%s=TOKENS (for example"
        " %s=128000), or FIRNLINE_WINDOW_TOKENS for all models",
        model,
        model,
        model,
    )
