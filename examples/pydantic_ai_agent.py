"""A pydantic-ai agent whose requests fit the window while its history stays whole."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from firnline import Budget, Memory
from firnline.adapters.pydantic_ai import FirnlineCapability


async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse([TextPart(f"I see {len(messages)} messages.")])


async def main() -> None:
    async with Memory.open("sqlite:///pydantic.db") as memory:
        capability = FirnlineCapability(memory, budget=Budget(800, 100), conversation="ticket-42")
        agent = Agent(FunctionModel(model), instructions="Be brief.", capabilities=[capability])
        history: list[ModelMessage] = []
        for number in range(30):
            prompt = f"Question {number}: how many messages of ours do you see, of all there were?"
            result = await agent.run(prompt, message_history=history)
            history = result.all_messages()
        print(len(history), "messages in the history;", result.output)
        print(len(await memory.read("ticket-42")), "entries in the log")


asyncio.run(main())
