"""An agent that answers from documents: retrieval knows how much room the conversation leaves.

It runs offline, with a few documents about a fictional harbor that are found by their words, and a
chat model that follows rules. With a real model and retriever, only those two classes change.
"""

import logging
import re
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.retrievers import BaseRetriever
from langgraph.checkpoint.memory import InMemorySaver

from firnline import Budget
from firnline.adapters.langchain import BudgetedRetriever, FirnlineMiddleware
from firnline.strategies import window
from firnline.sync import Memory

HARBOUR = Path(__file__).parent / "harbour"
WINDOW = 2_000
QUESTIONS = [
    "What does a guest pay for a long berth?",
    "When is the fuel pump open on Sundays?",
    "Which light does the north pier show?",
    "What is the driver of the crane called?",
    "At which force is the gate of the inner basin closed?",
    "Where are old flares handed in?",
]


def words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 3}


class Shelf(BaseRetriever):
    """The documents that share most words with the question."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        found = [Document(path.read_text()) for path in sorted(HARBOUR.glob("*.txt"))]
        return sorted(found, key=lambda d: -len(words(d.page_content) & words(query)))


class RuleModel(BaseChatModel):
    """Looks things up, and answers with the sentence that fits best."""

    @property
    def _llm_type(self) -> str:
        return "by rule"

    def bind_tools(self, tools: Any, **options: Any) -> "RuleModel":
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        question = next(m.text for m in reversed(messages) if isinstance(m, HumanMessage))
        if isinstance(messages[-1], ToolMessage):
            sentences = re.split(r"(?<=[.;])\s|\n", messages[-1].text)
            reply = AIMessage(max(sentences, key=lambda s: len(words(s) & words(question))))
        else:
            call = {
                "name": "retrieve_context",
                "args": {"query": question},
                "id": f"find {question}",
            }
            reply = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=reply)])


def main() -> None:
    accounts = logging.getLogger("firnline.context")  # one line for each request
    accounts.addHandler(logging.StreamHandler())
    accounts.setLevel(logging.DEBUG)
    with Memory.open("sqlite:///harbour.db") as memory:
        middleware = FirnlineMiddleware(
            memory,
            budget=Budget(WINDOW, 200),
            recall=False,  # the room is for documents
            strategy=window(
                prompt="Keep every price, time and number.",
                prefix="## Предыдущее обсуждение / Previous conversation:",
            ),
            retriever=BudgetedRetriever(retriever=Shelf(), window_tokens=WINDOW),
        )
        agent = create_agent(
            RuleModel(),
            system_prompt="You answer questions about the harbour of Vestervik from its documents.",
            middleware=[middleware],
            checkpointer=InMemorySaver(),
        )
        guest = {"configurable": {"thread_id": "guest"}}
        for question in QUESTIONS:
            state = agent.invoke({"messages": [("user", question)]}, guest)
            print(f"{question}\n  {state['messages'][-1].text}")
        print(f"{len(state['messages'])} messages, {memory.events['fold']} digests,")
        print(memory.verify("guest"))


if __name__ == "__main__":
    main()
