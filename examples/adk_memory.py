"""An agent of Google's ADK that remembers other sessions of the same user."""

import asyncio
from collections.abc import AsyncGenerator

from google.adk.agents import Agent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import preload_memory
from google.genai import types

from firnline import Memory
from firnline.adapters.adk import FirnlineMemoryService


def said(text: str, role: str = "user") -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text)])


class Fake(BaseLlm):
    """Says whether it was told the code; any model of ADK's will do."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        told = llm_request.model_dump_json(exclude_none=True)
        yield LlmResponse(content=said("7319" if "7319" in told else "I do not know.", "model"))


async def main() -> None:
    async with Memory.open("sqlite:///adk.db") as memory:
        sessions, remembered = InMemorySessionService(), FirnlineMemoryService(memory)
        agent = Agent(name="helper", model=Fake(model="fake"), tools=[preload_memory])
        runner = Runner(
            app_name="boats", agent=agent, session_service=sessions, memory_service=remembered
        )
        for name, text in (("s1", "The gate code is 7319."), ("s2", "What is the gate code?")):
            await sessions.create_session(app_name="boats", user_id="ana", session_id=name)
            async for event in runner.run_async(
                user_id="ana", session_id=name, new_message=said(text)
            ):
                print(name, event.content.parts[0].text)
            done = await sessions.get_session(app_name="boats", user_id="ana", session_id=name)
            await remembered.add_session_to_memory(done)
        print(len(await memory.read("boats/ana/s1")), "entries of s1 in the log")


asyncio.run(main())
