"""Streamed answers: what the client waits for and what it does not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator

import pytest

from firnline.errors import StoreUnavailable
from firnline.server import streams
from firnline.server.streams import Streams

PIECES = ["Order ", "1138."]


async def _answer() -> AsyncGenerator[tuple[str, str], None]:
    for piece in PIECES:
        yield piece, piece


class _Slow:
    """A keeper that continues or fails on request when an answer is cleaned up."""

    def __init__(self, error: Exception | None = None) -> None:
        self.kept, self.cuts = "", list[str]()
        self.tidying, self.going_on = asyncio.Event(), asyncio.Event()
        self._error = error

    async def add(self, text: str) -> None:
        self.kept += text

    async def end(self) -> None:
        self.tidying.set()
        await self.going_on.wait()
        if self._error:
            raise self._error

    async def cut(self, why: str) -> None:
        self.cuts.append(why)


async def _heard(opened: Streams, keeper: _Slow) -> list[str]:
    listener = opened.open(_answer(), keeper)
    return [item async for batch in listener.batches() for item in batch]


async def test_the_client_does_not_wait_until_a_stored_answer_is_tidied_up() -> None:
    opened, keeper = Streams(1), _Slow()
    assert await asyncio.wait_for(_heard(opened, keeper), 10) == PIECES
    assert (keeper.kept, opened.live) == ("".join(PIECES), 1)
    keeper.going_on.set()
    await opened.close(10)
    assert (keeper.cuts, opened.live) == ([], 0)


async def test_an_answer_that_is_stored_is_not_cut_by_a_server_that_stops() -> None:
    opened, keeper = Streams(1), _Slow()
    await _heard(opened, keeper)
    await keeper.tidying.wait()
    await opened.close(0)
    assert (keeper.cuts, opened.live) == ([], 0)


async def test_trouble_with_tidying_up_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    opened, keeper = Streams(1), _Slow(StoreUnavailable("the disk is full"))
    assert await _heard(opened, keeper) == PIECES
    keeper.going_on.set()
    with caplog.at_level(logging.WARNING):
        await opened.close(10)
    assert "the disk is full" in caplog.text


async def test_a_client_that_got_everything_leaves_no_timer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "READ_ON_SECONDS", 0.0)
    opened, keeper = Streams(1), _Slow()
    await _heard(opened, keeper)
    await keeper.tidying.wait()
    await asyncio.sleep(0.05)
    assert opened.live == 1  # a timer would have cancelled it
    keeper.going_on.set()
    await opened.close(10)
