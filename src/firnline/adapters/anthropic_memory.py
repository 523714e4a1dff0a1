"""Anthropic's memory tool (``memory_20250818``) with its files in the log.

Needs ``firnline[anthropic]``. Pass it to ``client.beta.messages.tool_runner``; each edit is a
version, which `undo` takes back.
"""

from __future__ import annotations

from typing import Any

from firnline.adapters import missing_extra
from firnline.adapters.bridge import MemoryBridge, MemoryLike
from firnline.adapters.memory_files import MemoryFiles
from firnline.errors import FirnlineError
from firnline.memory import Memory

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
except ModuleNotFoundError as error:
    raise missing_extra("anthropic", error) from error


class FirnlineMemoryTool(BetaAsyncAbstractMemoryTool):
    """The tool for Anthropic's asynchronous client; its files are in the conversation `name`."""

    def __init__(self, memory: Memory, name: str) -> None:
        super().__init__()
        self._files = MemoryFiles(memory, name)

    async def undo(self) -> str:
        """Undo the newest edit that is not undone."""
        return await self._files.undo()

    async def _run(self, command: Any) -> str:
        try:
            return await self._files.run(dict(command))
        except FirnlineError as error:  # the model reads it
            raise ToolError(str(error)) from error

    view = create = str_replace = insert = delete = rename = _run


class SyncFirnlineMemoryTool(BetaAbstractMemoryTool):
    """The same for Anthropic's synchronous client, with a `firnline.sync.Memory`."""

    def __init__(self, memory: MemoryLike, name: str) -> None:
        super().__init__()
        self._bridge = MemoryBridge(memory)
        self._files = MemoryFiles(self._bridge.memory, name)

    def undo(self) -> str:
        """Undo the newest edit that is not undone."""
        return self._bridge.run(self._files.undo())

    def _run(self, command: Any) -> str:
        try:
            return self._bridge.run(self._files.run(dict(command)))
        except FirnlineError as error:  # the model reads it
            raise ToolError(str(error)) from error

    view = create = str_replace = insert = delete = rename = _run
