"""An OpenAI Agents SDK agent whose session keeps everything and still fits the window."""

import asyncio

from agents import Agent, Runner, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message

from firnline import Budget, Memory
from firnline.adapters.openai_agents import FirnlineSession

set_tracing_disabled(True)


async def main() -> None:
    model = ScriptedModel([[assistant_message(f"Answer {n}.")] for n in range(32)])
    agent = Agent(name="helper", model=model)
    async with Memory.open("sqlite:///agents.db") as memory:
        session = FirnlineSession("ticket-42", memory, Budget(800, 200))
        for number in range(32):
            await Runner.run(agent, f"Question {number}: what time is it now?", session=session)
        print(len(await memory.read("ticket-42")), "messages in the log")
        print(len(await session.get_items()), "items for the next run")


asyncio.run(main())
