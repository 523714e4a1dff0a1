"""Checks of the adapter for ADK, run by the tests in ADK's own environment."""

import asyncio
import sys

from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai import types

from firnline import Memory
from firnline.adapters.adk import FirnlineMemoryService


def event(number: int, author: str, *parts: types.Part) -> Event:
    content = types.Content(role="user" if author == "user" else "model", parts=list(parts))
    return Event(id=f"e{number}", author=author, content=content, timestamp=1_790_000_000 + number)


CALL = types.Part(function_call=types.FunctionCall(id="c", name="f", args={"a": 1}))
RESULT = types.Part(
    function_response=types.FunctionResponse(id="c", name="f", response={"result": 2})
)
EVENTS = [
    event(1, "user", types.Part(text="The gate code is 7319.")),
    event(2, "helper", CALL),
    event(3, "helper", RESULT),
    event(4, "helper", types.Part(text="Noted.")),
]


async def texts(service: FirnlineMemoryService, app: str, user: str, query: str) -> list[str]:
    found = await service.search_memory(app_name=app, user_id=user, query=query)
    return [entry.content.parts[0].text for entry in found.memories]


async def a_session_that_is_handed_over_again_is_stored_once(memory: Memory) -> None:
    for service in (FirnlineMemoryService(memory), FirnlineMemoryService(memory)):
        for count in (2, 4, 4):
            session = Session(id="s", app_name="app", user_id="ana", events=EVENTS[:count])
            await service.add_session_to_memory(session)
    log = [entry.message for entry in await memory.read("app/ana/s")]
    assert [message.role for message in log] == ["user", "assistant", "tool", "assistant"]
    assert (log[1].tool_calls[0].id, log[2].tool_call_id) == ("c", "c")
    assert log[0].created_at.timestamp() == 1_790_000_001


async def events_of_the_same_words_are_all_stored(memory: Memory) -> None:
    service = FirnlineMemoryService(memory)
    said = [("user", "yes"), ("helper", "Which one?"), ("user", "yes"), ("helper", "Which one?")]
    for number, (author, text) in enumerate(said):
        one = [event(number, author, types.Part(text=text))]
        for _ in range(2):
            about = {"app_name": "app", "user_id": "ben", "session_id": "t"}
            await service.add_events_to_memory(**about, events=one)
    log = await memory.read("app/ben/t")
    assert [entry.message.text for entry in log] == [text for _, text in said]


async def a_user_finds_only_what_is_theirs(memory: Memory) -> None:
    service = FirnlineMemoryService(memory)
    assert "The gate code is 7319." in await texts(service, "app", "ana", "gate code")
    for app, user in (("app", "ben"), ("other", "ana"), ("app/ana", "s")):
        assert await texts(service, app, user, "gate code") == []


async def names_with_slashes_stay_apart(memory: Memory) -> None:
    service = FirnlineMemoryService(memory)
    await service.add_events_to_memory(
        app_name="a/b", user_id="c", events=[event(9, "user", types.Part(text="A secret word."))]
    )
    assert await texts(service, "a", "b/c", "secret word") == []
    assert await texts(service, "a/b", "c", "secret word") == ["A secret word."]


async def a_user_is_the_person_of_their_sessions(memory: Memory) -> None:
    service = FirnlineMemoryService(memory)
    for number, (user, session, text) in enumerate(
        (("eva", "1", "I live in Berlin."), ("eva", "2", "I moved to Lisbon."), ("ben", "1", "Hi."))
    ):
        one = [event(number, "user", types.Part(text=text))]
        about = {"app_name": "app", "user_id": user, "session_id": session}
        await service.add_events_to_memory(**about, events=one)
    (home,) = await memory.facts(person="eva")
    assert (home.attribute, home.value) == ("home city", "Lisbon")
    assert home.evidence[0].conversation == "app/eva/2"
    assert (await memory.head("app/ben/1")).person == "ben"
    await memory.describe("app/ben/1", person="benjamin")
    await service.add_events_to_memory(
        app_name="app",
        user_id="ben",
        session_id="1",
        events=[event(9, "user", types.Part(text="x"))],
    )
    assert (await memory.head("app/ben/1")).person == "benjamin"


async def what_the_application_adds_is_found(memory: Memory) -> None:
    service = FirnlineMemoryService(memory)
    content = types.Content(role="user", parts=[types.Part(text="Ana is allergic to nuts.")])
    await service.add_memory(app_name="app", user_id="ana", memories=[MemoryEntry(content=content)])
    assert "Ana is allergic to nuts." in await texts(service, "app", "ana", "allergic")


async def a_thought_is_no_answer_and_files_of_tools_are_kept(memory: Memory) -> None:
    blob = types.FunctionResponseBlob(mime_type="image/png", data=b"abc")
    drawn = types.FunctionResponse(
        id="c", name="f", response={}, parts=[types.FunctionResponsePart(inline_data=blob)]
    )
    events = [
        event(1, "helper", types.Part(text="Perhaps a heron?", thought=True), CALL),
        event(2, "helper", types.Part(function_response=drawn)),
        event(3, "helper", types.Part(text="A heron.", thought=True), types.Part(text="A stork.")),
        event(4, "helper", types.Part(text="")),
    ]
    service = FirnlineMemoryService(memory)
    about = {"app_name": "app", "user_id": "kim", "session_id": "t"}
    await service.add_events_to_memory(**about, events=events)
    log = [entry.message for entry in await memory.read("app/kim/t")]
    assert [message.text for message in log] == ["", "{}", "A stork."]
    assert [part.kind for part in log[2].content] == ["reasoning", "text"]
    assert [part.kind for part in log[1].content] == ["text", "file"]
    assert log[0].tool_calls[0].id == "c"


CHECKS = (
    a_thought_is_no_answer_and_files_of_tools_are_kept,
    a_session_that_is_handed_over_again_is_stored_once,
    events_of_the_same_words_are_all_stored,
    a_user_finds_only_what_is_theirs,
    names_with_slashes_stay_apart,
    what_the_application_adds_is_found,
    a_user_is_the_person_of_their_sessions,
)


async def main() -> None:
    async with Memory.open("sqlite:///adk.db") as memory:
        for check in CHECKS:
            await check(memory)
    sys.stdout.write(f"{len(CHECKS)} checks\n")


asyncio.run(main())
