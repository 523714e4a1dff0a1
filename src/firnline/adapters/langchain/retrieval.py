"""Documents for an agent, as many as fit into the window with the conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.prebuilt import ToolRuntime

from firnline.adapters.bridge import MemoryBridge
from firnline.context.budget import Budget
from firnline.log.message import Message
from firnline.log.tokens import DEFAULT_MODEL, counter
from firnline.protocols import Retriever

NOTHING: Final = "No documents found."
_ABOUT: Final = "Find documents that help to answer. `query` says what to look for."


class LastRequest(NamedTuple):
    """The last request to the model, without the messages."""

    conversation: str
    budget: Budget
    system: Message | None = None
    tools: Sequence[dict[str, Any]] = ()


def retrieval_tool(
    bridge: MemoryBridge, retriever: Retriever, last: Callable[[], LastRequest]
) -> BaseTool:
    """The tool ``retrieve_context``: what the retriever finds and the window has room for.

    The room is what system prompt, tools, conversation, and the reserve for the answer leave;
    parallel calls share it. `last` returns the request.
    """

    async def find(query: str, request: LastRequest, calls: int) -> str:
        options: dict[str, Any] = {"system": request.system, "tools": request.tools, "fold": False}
        budget = request.budget
        if calls > 1:
            context = await bridge.memory.context(request.conversation, budget, **options)
            room = context.room_for_retrieval()
            budget = replace(budget, reserve_tokens=budget.reserve_tokens + room - room // calls)

        async def documents(question: str, *, reserved_tokens: int) -> Sequence[str]:
            del question  # the model's query is used instead
            return await retriever(query, reserved_tokens=reserved_tokens)

        context = await bridge.memory.context(
            request.conversation, budget, retriever=documents, **options
        )
        return "\n\n".join(message.text for message in context["retrieved"].messages) or NOTHING

    def retrieve_context(query: str, runtime: ToolRuntime) -> str:
        return bridge.run(find(query, last(), _calls(runtime)))

    async def aretrieve_context(query: str, runtime: ToolRuntime) -> str:
        return await bridge.run_async(find(query, last(), _calls(runtime)))

    return StructuredTool.from_function(
        retrieve_context, aretrieve_context, name="retrieve_context", description=_ABOUT
    )


def _calls(runtime: ToolRuntime) -> int:
    """The number of tools that run now and share the room."""
    said = runtime.state["messages"] if isinstance(runtime.state, dict) else []
    newest = next((m for m in reversed(said) if isinstance(m, AIMessage)), None)
    return max(len(newest.tool_calls), 1) if newest else 1


class BudgetedRetriever(BaseRetriever):
    """A LangChain retriever that returns what fits into the window.

    ``invoke(query, reserved_tokens=40_000)`` returns documents, best first, that fit into the rest
    of the window. Use it also as `retriever` of `Memory.context` or `FirnlineMiddleware`.
    """

    retriever: BaseRetriever
    window_tokens: int
    model: str = DEFAULT_MODEL
    """The model to count tokens for."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, reserved_tokens: int = 0
    ) -> list[Document]:
        found = self.retriever.invoke(query, {"callbacks": run_manager.get_child()})
        return self._fit(found, reserved_tokens)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        reserved_tokens: int = 0,
    ) -> list[Document]:
        found = await self.retriever.ainvoke(query, {"callbacks": run_manager.get_child()})
        return self._fit(found, reserved_tokens)

    def _fit(self, found: Sequence[Document], reserved_tokens: int) -> list[Document]:
        room, kept = self.window_tokens - reserved_tokens, []
        count = counter(self.model)
        for document in found:
            tokens = count.message(Message.user(document.page_content))
            if tokens <= room:
                room -= tokens
                kept.append(document)
        return kept

    async def __call__(self, question: str, *, reserved_tokens: int) -> Sequence[str]:
        """The documents' texts; implements `firnline.protocols.Retriever`."""
        found = await self.ainvoke(question, reserved_tokens=reserved_tokens)
        return [document.page_content for document in found]
