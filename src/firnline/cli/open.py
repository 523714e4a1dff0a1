"""Opening the store, and the model, that a command names."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar, Unpack

from firnline import memory as asynchronous
from firnline.engine.options import MemoryOptions
from firnline.errors import InputError, UnknownConversation
from firnline.log.entry import Head
from firnline.models import open_model
from firnline.protocols import ChatModel
from firnline.store import missing_file
from firnline.sync import Memory

T = TypeVar("T")


def open_memory(options: argparse.Namespace, *, create: bool = False) -> Memory:
    """The memory that is meant; only with `create` is a store made that is not there."""
    _check_store(options, create=create)
    # A command that ends at once is no place for a worker: what is owed stays so.
    return Memory.open(options.store, tenant=options.tenant, worker=False)


def with_memory(
    options: argparse.Namespace,
    work: Callable[[asynchronous.Memory], Awaitable[T]],
    *,
    create: bool = False,
    **more: Unpack[MemoryOptions],
) -> T:
    """What `work` returns for the memory that is meant; see `open_memory` for `create`.

    For what may take long: Ctrl-C cancels it, so that it can give its lease back.
    """
    _check_store(options, create=create)
    model = _writer(options)

    async def run() -> T:
        chosen: MemoryOptions = {"tenant": options.tenant, "worker": False, "model": model, **more}
        async with asynchronous.Memory.open(options.store, **chosen) as memory:
            return await work(memory)

    return asyncio.run(run())


def _check_store(options: argparse.Namespace, *, create: bool = False) -> None:
    missing = missing_file(options.store)
    if missing and not create:
        raise InputError(f"there is no store at {missing}; `firnline append` makes one")


def _writer(options: argparse.Namespace) -> ChatModel | None:
    """The model that writes digests, if the command takes one and it is given."""
    url, variable = getattr(options, "url", None), getattr(options, "key_variable", None)
    name = options.model if hasattr(options, "url") else None
    if name is None:
        if url or variable:
            raise InputError("--url and --key-variable belong to a model: name it with --model")
        return None
    key = os.environ.get(variable) if variable else None
    if variable and not key:
        raise InputError(f"there is no key in the environment variable {variable}")
    return open_model(name, url=url, api_key=key)


def known(memory: Memory, conversation: str) -> Head:
    """The conversation's head; one that does not exist is an error here."""
    return _there(memory.head(conversation), conversation)


async def known_to(memory: asynchronous.Memory, conversation: str) -> Head:
    """The same for the memory of `with_memory`."""
    return _there(await memory.head(conversation), conversation)


def _there(head: Head | None, conversation: str) -> Head:
    if head is None:
        raise UnknownConversation(
            f"there is no conversation {conversation!r}; `firnline conversations` lists them"
        )
    return head


def all_heads(memory: Memory, project: str | None) -> Iterator[Head]:
    """Every conversation, page by page."""
    after = ""
    while page := memory.conversations(project=project, after=after, limit=1_000):
        yield from page
        after = page[-1].conversation
