"""An agent of the OpenAI Agents SDK with a session that forgets nothing and still fits."""

import asyncio

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from firnline import Budget, Memory
from firnline.adapters.openai_agents import FirnlineSession

set_tracing_disabled(True)


@function_tool
def clock() -> str:
    """The time."""
    return "12:00"


async def main() -> None:
    called = [function_call("clock", {}, call_id="c1")], [assistant_message("It is noon.")]
    answers = [[assistant_message(f"Answer {number}.")] for number in range(30)]
    agent = Agent(name="helper", model=ScriptedModel([*called, *answers]), tools=[clock])
    async with Memory.open("sqlite:///agents.db") as memory:
        session = FirnlineSession("ticket-42", memory, Budget(800, 200))
        for number in range(31):
            await Runner.run(agent, f"Question {number}: what time is it now?", session=session)
        print(len(await memory.read("ticket-42")), "entries in the log")
        print(len(await session.get_items()), "items for the next run")


asyncio.run(main())
