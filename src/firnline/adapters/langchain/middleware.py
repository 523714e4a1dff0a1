"""`FirnlineMiddleware`: the agent's state stays whole, and each request fits the window.

What is said goes to the log: the user's message before the agent runs, calls before their tools
run, answers when they are there. Each request to the model is a context of that log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage
from langgraph.config import get_config
from langgraph.types import TracePolicy, omit_payload

from firnline.adapters.bridge import MemoryLike, Reach
from firnline.adapters.history_sync import Keeper
from firnline.adapters.langchain.messages import (
    budget_of,
    from_langchain,
    name_of,
    question_of,
    schemas,
    shown,
)
from firnline.adapters.langchain.retrieval import Asked, retrieval_tool
from firnline.context.budget import Budget, BudgetLike, as_budget, less
from firnline.context.context import Context
from firnline.context.plan import Strategy
from firnline.engine.turn import within
from firnline.errors import InputError
from firnline.log.tokens import counter
from firnline.protocols import Retriever
from firnline.strategies import window

T = TypeVar("T")
DEFAULT: Final = window()
_KNOWN: Final = 4_096  # conversations of which it is remembered what their requests are made of
_TOOLS: Final = "tools:"  # what `create_agent` calls the node that runs tools
State: TypeAlias = AgentState[Any]
Request: TypeAlias = ModelRequest[Any]


class FirnlineMiddleware(AgentMiddleware[Any, Any, Any]):
    """Gives an agent a memory. With ``agent.invoke`` it needs a `firnline.sync.Memory`.

    `conversation` is LangGraph's ``thread_id`` unless given (an agent that runs inside of a tool
    has one of its own); `budget` the model's own window (its
    LangChain profile, or its name). `strategy` plans contexts: by default at 85% of the window all
    but the last 4 messages are summarised; None leaves each conversation its own. With `recall`,
    old entries that fit the question are shown again. A `retriever` gives the agent a tool,
    ``retrieve_context``. `larger` is a model with a larger window (`larger_budget`, if LangChain
    does not know it) for when even a compacted context does not fit.
    """

    trace_policy = TracePolicy(process_inputs=omit_payload)  # our spans repeat no conversation

    def __init__(  # noqa: PLR0913 - each is asked for by name
        self,
        memory: MemoryLike,
        *,
        conversation: str | None = None,
        budget: BudgetLike | None = None,
        strategy: Strategy | None = DEFAULT,
        recall: bool = True,
        retriever: Retriever | None = None,
        larger: BaseChatModel | None = None,
        larger_budget: BudgetLike | None = None,
    ) -> None:
        super().__init__()
        self._reach = Reach(memory)
        self._memory = self._reach.memory
        self._keeper = Keeper(self._memory)
        self._named, self._strategy, self._recall = conversation, strategy, recall
        self._budget = as_budget(budget) if budget is not None else None
        self._larger = larger
        far = as_budget(larger_budget) if larger_budget is not None else None
        self._far = far or (budget_of(larger) if larger else None)
        self._planned: dict[str, None] = {}
        self._asked: dict[str, Asked] = {}
        self.tools = [retrieval_tool(self._reach, retriever, self._last)] if retriever else []

    # -- storing ------------------------------------------------------------------------------

    def before_agent(self, state: State, runtime: Any) -> None:  # noqa: ARG002 - LangChain's
        """What the user says is durable before the agent runs."""
        self._reach.now(self._held(self._conversation(), state["messages"]))

    async def abefore_agent(self, state: State, runtime: Any) -> None:  # noqa: ARG002 - as above
        """What the user says is durable before the agent runs."""
        await self._reach.soon(self._held(self._conversation(), state["messages"]))

    # Calls are durable before their tools run, and answers before the caller has them.
    after_model = after_agent = before_agent
    aafter_model = aafter_agent = abefore_agent

    async def _held(
        self, conversation: str, messages: Sequence[AnyMessage]
    ) -> dict[int, AnyMessage]:
        """Store what is new in the agent's state; its messages by their entries."""
        if self._strategy and conversation not in self._planned:
            if (await self._memory.strategy(conversation)).to_json() != self._strategy.to_json():
                await self._memory.set_strategy(conversation, self._strategy)
            _limited(self._planned)[conversation] = None
        ids = [message.id or "" for message in messages]
        places = await self._keeper.keep(
            conversation, ids, lambda place: from_langchain(messages[place])
        )
        return {seq: messages[place] for seq, place in places.items()}

    # -- shaping ------------------------------------------------------------------------------

    def wrap_model_call(
        self, request: Request, handler: Callable[[Request], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """The model sees a context of the conversation in place of all of it."""
        return handler(self._reach.now(self._shaped(self._conversation(), request)))

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """The model sees a context of the conversation in place of all of it."""
        return await handler(await self._reach.soon(self._shaped(self._conversation(), request)))

    async def _shaped(self, conversation: str, request: Request) -> Request:
        said = request.state["messages"]
        held = await self._held(conversation, said)
        near, far = self._budget or budget_of(request.model), self._far
        ours = {message.id for message in said}
        # What another middleware put into this one request is no part of the conversation.
        passing = [message for message in request.messages if message.id not in ours]
        asked = Asked(
            conversation,
            near,
            from_langchain(request.system_message) if request.system_message else None,
            schemas(request.tools, request.response_format),
        )

        async def build(budget: BudgetLike) -> Context:
            whole = as_budget(budget)
            count = counter(whole.model) if whole.model else counter()
            taken = sum(count.message(from_langchain(message)) for message in passing)
            rest = less(whole, taken)
            _limited(self._asked)[conversation] = asked._replace(budget=rest)
            return await self._memory.context(
                conversation,
                rest,
                question_of(said) if self._recall else None,
                system=asked.system,
                tools=asked.tools,
            )

        fell_back, context = await within(build, near, far)
        messages = [*shown(context, held), *passing]
        if self._larger is None or not fell_back:
            return request.override(messages=messages)
        self._memory.tell("fallback", conversation, {"model": name_of(self._larger)})
        return request.override(messages=messages, model=self._larger)

    def _conversation(self) -> str:
        known = get_config().get("configurable", {})
        found = self._named or _thread(
            known.get("thread_id"), str(known.get("checkpoint_ns") or "")
        )
        if not found:
            raise InputError(
                "which conversation? FirnlineMiddleware(conversation=...), or a config: "
                '{"configurable": {"thread_id": ...}}'
            )
        return str(found)

    def _last(self) -> Asked:
        """What the last request of the running conversation was made of."""
        name = self._conversation()
        # A run that was resumed elsewhere has asked for nothing here yet.
        return self._asked.get(name) or Asked(name, self._budget or Budget.of("unknown"))


def _thread(thread: object, namespace: str) -> str:
    """The conversation of a thread; an agent that a tool of another one runs has its own.

    LangGraph hands the thread on to it. `namespace` is the way to the node that runs now; that of
    the tool is new for each call, and the same if the call is resumed.
    """
    around = namespace.split("|")[:-1]
    tool = next((step for step in reversed(around) if step.startswith(_TOOLS)), None)
    return f"{thread}/{tool}" if thread and tool else str(thread or "")


def _limited(known: dict[str, T]) -> dict[str, T]:
    """The same with room for one more; the oldest give way."""
    while len(known) >= _KNOWN:
        known.pop(next(iter(known)))
    return known
