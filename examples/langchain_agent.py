"""A LangChain agent whose conversation may be longer than its model's window."""

from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langgraph.checkpoint.memory import InMemorySaver

from firnline import Budget
from firnline.adapters.langchain import FirnlineMiddleware
from firnline.strategies import window
from firnline.sync import Memory

with Memory.open("sqlite:///langchain.db") as memory:
    bilingual = window(prefix="## Предыдущее обсуждение / Previous conversation:")
    firnline = FirnlineMiddleware(memory, budget=Budget(1_000, 100), strategy=bilingual)
    model = FakeListChatModel(responses=["Noted."])  # any LangChain chat model
    agent = create_agent(model, middleware=[firnline], checkpointer=InMemorySaver())
    voyage = {"configurable": {"thread_id": "voyage-7"}}
    for day in range(1, 31):
        entry = f"Day {day}: wind force {day % 9}, course held, {day * 40} miles made. All well."
        state = agent.invoke({"messages": [("user", entry)]}, voyage)
    print(len(state["messages"]), "messages in the agent's state")
    print(len(memory.read("voyage-7")), "messages in the log,", memory.verify("voyage-7"))
    print("digests:", len(memory.digests("voyage-7")))
