"""`FirnlineMiddleware`: the agent's state stays complete, and each request fits the window.

Messages are stored in the log: the user's before the agent runs, calls before their tools run, and
answers when they arrive. Each request to the model is a context of that log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage
from langgraph.config import get_config
from langgraph.types import TracePolicy, omit_payload

from firnline.adapters.bridge import MemoryBridge, MemoryLike
from firnline.adapters.history_sync import HistorySync
from firnline.adapters.langchain.messages import (
    budget_of,
    from_langchain,
    name_of,
    question_of,
    schemas,
    to_history,
)
from firnline.adapters.langchain.retrieval import LastRequest, retrieval_tool
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
_KNOWN: Final = 4_096  # conversations whose last request is remembered
_TOOLS: Final = "tools:"  # the node of `create_agent` that runs tools
MiddlewareState: TypeAlias = AgentState[Any]
MiddlewareRequest: TypeAlias = ModelRequest[Any]


class FirnlineMiddleware(AgentMiddleware[Any, Any, Any]):
    """Gives an agent a memory. With ``agent.invoke`` it needs a `firnline.sync.Memory`.

    `conversation` defaults to LangGraph's ``thread_id`` (an agent that runs inside a tool gets its
    own), `budget` to the model's window, from its LangChain profile or its name. `strategy` plans
    contexts: by default, at 85% of the window all but the last 4 messages are summarized; None
    leaves each conversation its own. `person` is whom the conversation is with; it defaults to the
    config's ``user_id``. With `recall`, old entries that match the question are added.
    A `retriever` gives the agent a tool, ``retrieve_context``. `larger` is a model with a larger
    window (`larger_budget`, if LangChain does not know it) for when even a digested context does
    not fit.
    """

    trace_policy = TracePolicy(process_inputs=omit_payload)  # no conversation in our spans

    def __init__(  # noqa: PLR0913 - keyword-only options
        self,
        memory: MemoryLike,
        *,
        conversation: str | None = None,
        person: str | None = None,
        budget: BudgetLike | None = None,
        strategy: Strategy | None = DEFAULT,
        recall: bool = True,
        retriever: Retriever | None = None,
        larger: BaseChatModel | None = None,
        larger_budget: BudgetLike | None = None,
    ) -> None:
        super().__init__()
        self._bridge = MemoryBridge(memory)
        self._memory = self._bridge.memory
        self._history = HistorySync(self._memory)
        self._named, self._strategy, self._recall = conversation, strategy, recall
        self._named_person = person
        self._budget = as_budget(budget) if budget is not None else None
        self._larger = larger
        far = as_budget(larger_budget) if larger_budget is not None else None
        self._far = far or (budget_of(larger, self._memory.budget_of) if larger else None)
        self._planned: dict[str, None] = {}
        self._last_requests: dict[str, LastRequest] = {}
        self.tools = (
            [retrieval_tool(self._bridge, retriever, self._last_request)] if retriever else []
        )

    # -- store --------------------------------------------------------------------------------

    def before_agent(self, state: MiddlewareState, runtime: Any) -> None:  # noqa: ARG002 - LangChain's
        """Store the user's message before the agent runs."""
        self._bridge.run(self._store_history(*self._conversation(), state["messages"]))

    async def abefore_agent(self, state: MiddlewareState, runtime: Any) -> None:  # noqa: ARG002 - as above
        """Store the user's message before the agent runs."""
        await self._bridge.run_async(self._store_history(*self._conversation(), state["messages"]))

    # Calls are stored before their tools run, and answers before the caller gets them.
    after_model = after_agent = before_agent
    aafter_model = aafter_agent = abefore_agent

    async def _store_history(
        self, conversation: str, person: str | None, messages: Sequence[AnyMessage]
    ) -> dict[int, AnyMessage]:
        """Store what is new in the agent's state; returns its messages by entry."""
        if self._strategy and conversation not in self._planned:
            if (await self._memory.strategy(conversation)).to_json() != self._strategy.to_json():
                await self._memory.set_strategy(conversation, self._strategy)
            _make_room(self._planned)[conversation] = None
        ids = [message.id or "" for message in messages]
        places = await self._history.store_new(
            conversation, ids, lambda place: from_langchain(messages[place]), person=person
        )
        return {seq: messages[place] for seq, place in places.items()}

    # -- requests -----------------------------------------------------------------------------

    def wrap_model_call(
        self, request: MiddlewareRequest, handler: Callable[[MiddlewareRequest], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Replace the history by a context of the conversation."""
        return handler(self._bridge.run(self._with_context(*self._conversation(), request)))

    async def awrap_model_call(
        self,
        request: MiddlewareRequest,
        handler: Callable[[MiddlewareRequest], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Replace the history by a context of the conversation."""
        return await handler(
            await self._bridge.run_async(self._with_context(*self._conversation(), request))
        )

    async def _with_context(
        self, conversation: str, person: str | None, request: MiddlewareRequest
    ) -> MiddlewareRequest:
        said = request.state["messages"]
        stored = await self._store_history(conversation, person, said)
        near, far = self._budget or budget_of(request.model, self._memory.budget_of), self._far
        ours = {message.id for message in said}
        # Messages that another middleware added to this request are not stored.
        passing = [message for message in request.messages if message.id not in ours]
        last = LastRequest(
            conversation,
            near,
            from_langchain(request.system_message) if request.system_message else None,
            schemas(request.tools, request.response_format),
        )

        async def build(budget: BudgetLike) -> Context:
            full = as_budget(budget)
            count = counter(full.model) if full.model else counter()
            used = sum(count.message(from_langchain(message)) for message in passing)
            rest = less(full, used)
            _make_room(self._last_requests)[conversation] = last._replace(budget=rest)
            return await self._memory.context(
                conversation,
                rest,
                question_of(said) if self._recall else None,
                system=last.system,
                tools=last.tools,
                person=person,
            )

        fell_back, context = await within(build, near, far)
        messages = [*to_history(context, stored), *passing]
        if self._larger is None or not fell_back:
            return request.override(messages=messages)
        self._memory.tell("fallback", conversation, {"model": name_of(self._larger)})
        return request.override(messages=messages, model=self._larger)

    def _conversation(self) -> tuple[str, str | None]:
        """The conversation, and the person whom it is with.

        An agent that runs inside a tool talks with the other agent, not with its user.
        """
        known = get_config().get("configurable", {})
        thread, namespace = known.get("thread_id"), str(known.get("checkpoint_ns") or "")
        found = self._named or _thread(thread, namespace)
        user = None if _tool_in(namespace) else known.get("user_id")
        person = self._named_person or (None if user is None else str(user))
        if not found:
            raise InputError(
                "no conversation; set FirnlineMiddleware(conversation=...), or a config: "
                '{"configurable": {"thread_id": ...}}'
            )
        return str(found), person

    def _last_request(self) -> LastRequest:
        """The last request of the current conversation."""
        name, _ = self._conversation()
        # A run that is resumed in another process has no request here yet.
        return self._last_requests.get(name) or LastRequest(
            name, self._budget or Budget.whole(None)
        )


def _thread(thread: object, namespace: str) -> str:
    """The conversation of a thread; an agent that another agent's tool runs has its own.

    LangGraph passes the thread on to it. `namespace` is the path to the current node; that of a
    tool is new for each call, and the same if the call is resumed.
    """
    tool = _tool_in(namespace)
    return f"{thread}/{tool}" if thread and tool else str(thread or "")


def _tool_in(namespace: str) -> str | None:
    """The innermost tool around the current agent, if it runs inside one."""
    around = namespace.split("|")[:-1]
    return next((step for step in reversed(around) if step.startswith(_TOOLS)), None)


def _make_room(known: dict[str, T]) -> dict[str, T]:
    """The same dict with room for one more; the oldest are removed."""
    while len(known) >= _KNOWN:
        known.pop(next(iter(known)))
    return known
