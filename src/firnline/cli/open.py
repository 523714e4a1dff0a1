"""Opens the memory and the model that a command names."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, Unpack

from firnline import memory as asynchronous
from firnline.engine.options import MemoryOptions
from firnline.engine.prover import ORIGIN
from firnline.errors import FirnlineError, InputError, UnknownConversation
from firnline.log.entry import Head
from firnline.models import open_model
from firnline.protocols import ChatModel
from firnline.store import missing_file
from firnline.sync import Memory

T = TypeVar("T")


def open_memory(
    options: argparse.Namespace,
    *,
    create: bool = False,
    signer: str | None = None,
    log_origin: str = ORIGIN,
) -> Memory:
    """The memory at --store; a missing store is an error, unless `create` is set."""
    _check_store(options, create=create)
    # No worker: the command ends at once, so nothing would create digests in its background.
    return Memory.open(
        options.store,
        tenant=_tenant(options),
        worker=False,
        background=False,
        signer=signer,
        log_origin=log_origin,
    )


def with_memory(
    options: argparse.Namespace,
    work: Callable[[asynchronous.Memory], Awaitable[T]],
    *,
    create: bool = False,
    **more: Unpack[MemoryOptions],
) -> T:
    """Run `work` with the memory at --store; see `open_memory` for `create`.

    For work that may take long: Ctrl-C cancels it, so it can release its lease.
    """
    _check_store(options, create=create)
    model, tenant = _model(options), _tenant(options)

    async def run() -> T:
        # A command ends at once, so nothing would create digests in its background.
        alone: MemoryOptions = {"worker": False, "background": False}
        chosen: MemoryOptions = {"tenant": tenant, "model": model, **alone, **more}
        async with asynchronous.Memory.open(options.store, **chosen) as memory:
            return await work(memory)

    return asyncio.run(run())


def _tenant(options: argparse.Namespace) -> str:
    return asynchronous.DEFAULT_TENANT if options.tenant is None else str(options.tenant)


async def run_until_signal(work: Coroutine[Any, Any, T]) -> T | None:
    """Run `work`; SIGINT and SIGTERM cancel it, and None is returned."""
    task = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # not on Windows, where Ctrl-C cancels it
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with suppress(asyncio.CancelledError):
        return await task
    return None


@contextmanager
def needs_extra(what: str, extra: str) -> Iterator[None]:
    """Turn a missing package into an error that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("firnline"):
            raise
        raise FirnlineError(f'{what} needs an extra: pip install "firnline[{extra}]"') from error


def _check_store(options: argparse.Namespace, *, create: bool = False) -> None:
    missing = missing_file(options.store)
    if missing and not create:
        raise InputError(f"there is no store at {missing}; `firnline append` creates one")


def _model(options: argparse.Namespace) -> ChatModel | None:
    """The model that writes digests, if the command has the option and it or a setting is set."""
    url, variable = getattr(options, "url", None), getattr(options, "key_variable", None)
    if not hasattr(options, "url"):
        return None
    if options.model is None:
        if url or variable:
            raise InputError("--url and --key-variable need a model; set --model")
        return _model_of_settings(options)
    key = os.environ.get(variable) if variable else None
    if variable and not key:
        raise InputError(f"the environment variable {variable} is not set or empty")
    return open_model(options.model, url=url, api_key=key)


def model_name(options: argparse.Namespace) -> str | None:
    """The model of a command, else that of a server in the same environment."""
    chosen: str | None = options.model
    if chosen is None and hasattr(options, "key_variable"):
        return os.environ.get("FIRNLINE_MODEL") or None
    return chosen


def _model_of_settings(options: argparse.Namespace) -> ChatModel | None:
    """The model of a server in the same environment; its key is for its own URL only."""
    name = model_name(options)
    url, key = (os.environ.get(f"FIRNLINE_MODEL_{end}") or None for end in ("URL", "KEY"))
    return None if name is None else open_model(name, url=url, api_key=key)


def existing_head(memory: Memory, conversation: str) -> Head:
    """The conversation's head; `UnknownConversation` if it does not exist."""
    return _require(memory.head(conversation), conversation)


async def existing_head_async(memory: asynchronous.Memory, conversation: str) -> Head:
    """The same for the memory of `with_memory`."""
    return _require(await memory.head(conversation), conversation)


def _require(head: Head | None, conversation: str) -> Head:
    if head is None:
        raise UnknownConversation(
            f"there is no conversation {conversation!r}; `firnline conversations` lists them"
        )
    return head


def all_heads(memory: Memory, project: str | None, person: str | None = None) -> Iterator[Head]:
    """Every conversation, page by page."""
    after = ""
    while page := memory.conversations(project=project, person=person, after=after, limit=1_000):
        yield from page
        after = page[-1].conversation
