"""A Microsoft Agent Framework agent whose history comes from a memory."""

import asyncio
from typing import Any

from agent_framework import Agent, AgentSession, BaseChatClient, ChatResponse, Message

from firnline import Budget, Memory
from firnline.adapters.agent_framework import FirnlineHistory


class Echo(BaseChatClient):
    """Says how many messages it sees; any chat client of the framework works."""

    async def _inner_get_response(self, *, messages: Any, **options: Any) -> ChatResponse:
        return ChatResponse(messages=[Message("assistant", [f"{len(messages)} messages"])])


async def main() -> None:
    async with Memory.open("sqlite:///framework.db") as memory:
        history = FirnlineHistory(memory, Budget(800, 100))
        agent = Agent(client=Echo(), instructions="Be brief.", context_providers=[history])
        session = AgentSession(session_id="ticket-42")
        for number in range(40):
            answer = await agent.run(f"Question {number}: how much do you see?", session=session)
        print("The model saw", answer.text)
        print(len(await memory.read("ticket-42")), "messages in the log")


asyncio.run(main())
