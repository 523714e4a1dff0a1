"""A chat model for LangChain agents in the tests: a function answers, requests are recorded."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool

from firnline.adapters.langchain.messages import from_langchain
from firnline.log.tokens import counter


class FakeModel(BaseChatModel):
    """LangChain's own fake models accept no tools; this one does."""

    answer: Callable[[list[BaseMessage]], str | AIMessage] = lambda messages: "ok"
    seen: list[list[BaseMessage]] = []  # noqa: RUF012 - a field of pydantic's, copied by it
    bound: list[dict[str, Any]] = []  # noqa: RUF012 - as above

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> "FakeModel":
        self.bound[:] = [convert_to_openai_tool(tool) for tool in tools]
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs) -> ChatResult:
        self.seen.append(list(messages))
        said = self.answer(list(messages))
        message = AIMessage(said) if isinstance(said, str) else said
        return ChatResult(generations=[ChatGeneration(message=message)])

    def size(self, at: int = -1) -> int:
        """The tokens of a request: messages, tools and framing, by the reference counter."""
        count = counter()
        messages = [from_langchain(message) for message in self.seen[at]]
        return count.messages(messages) + count.tools(self.bound)


def call(name: str, arguments: dict[str, Any], call_id: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": call_id}])


def pairs_are_whole(messages: Sequence[BaseMessage]) -> bool:
    """Whether each call is followed by its results, and each result belongs to a call."""
    open_calls: set[str] = set()
    for message in messages:
        if message.type == "tool":
            if message.tool_call_id not in open_calls:
                return False
            open_calls.discard(message.tool_call_id)
            continue
        if open_calls:
            return False
        open_calls = {c["id"] for c in getattr(message, "tool_calls", [])}
    return not open_calls
