"""A pydantic-ai agent whose requests fit the window while its history stays complete."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from firnline import Budget, Memory
from firnline.adapters.pydantic_ai import FirnlineCapability


async def main() -> None:
    async with Memory.open("sqlite:///pydantic.db") as memory:
        capability = FirnlineCapability(memory, budget=Budget(800, 100), conversation="ticket-42")
        agent = Agent(TestModel(), instructions="Be brief.", capabilities=[capability])
        history = []
        for number in range(30):
            prompt = f"Question {number}: how many of our messages do you see?"
            result = await agent.run(prompt, message_history=history)
            history = result.all_messages()
        print(len(history), "messages in the history")
        print(len(await memory.read("ticket-42")), "messages in the log")


asyncio.run(main())
