"""A Google ADK agent that remembers other sessions of the same user."""

import asyncio
from typing import Any

from google.adk.agents import Agent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import preload_memory
from google.genai.types import ModelContent

from firnline import Memory
from firnline.adapters.adk import FirnlineMemoryService


class Fake(BaseLlm):
    """Says whether the code is in its prompt; any ADK model works."""

    async def generate_content_async(self, request: Any, stream: bool = False) -> Any:
        known = "7319" in request.model_dump_json(exclude_none=True)
        yield LlmResponse(content=ModelContent("7319" if known else "I do not know."))


async def main() -> None:
    runner = InMemoryRunner(Agent(name="helper", model=Fake(model="f"), tools=[preload_memory]))
    async with Memory.open("sqlite:///adk.db") as memory:
        runner.memory_service = FirnlineMemoryService(memory)
        for name, text in (("s1", "The gate code is 7319."), ("s2", "What is the gate code?")):
            for event in await runner.run_debug(text, user_id="ana", session_id=name, quiet=True):
                print(name, event.content.parts[0].text)
            session = {"app_name": runner.app_name, "user_id": "ana", "session_id": name}
            done = await runner.session_service.get_session(**session)
            await runner.memory_service.add_session_to_memory(done)
        print(len(await memory.read(f"{runner.app_name}/ana/s1")), "messages of s1 in the log")


asyncio.run(main())
