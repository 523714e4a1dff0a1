"""`FirnlineMemoryService`: memory for Google's ADK. Needs ``firnline[adk]``.

Sessions are stored in the log, each event once, however often its session is added. A search is
recall over all sessions of the user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from firnline.adapters import missing_extra
from firnline.adapters.history_sync import HistorySync
from firnline.log.hit import Hit
from firnline.log.message import Message, Part, ToolCall, encode_json
from firnline.log.text import person_name
from firnline.memory import Memory

try:
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions import Session
    from google.genai import types
except ModuleNotFoundError as error:
    raise missing_extra("adk", error) from error

_STATED: Final = "memories"
"""The conversation for memories that the application adds, and for events without a session."""


class FirnlineMemoryService(BaseMemoryService):
    """Stores sessions in `memory`; a search returns what fits into `tokens`, best first.

    A user of an app is a project, a session a conversation: ``app/user/session``. The user is the
    person whom their conversations are with.
    """

    def __init__(self, memory: Memory, *, tokens: int = 2_000) -> None:
        self._memory, self._tokens = memory, tokens
        self._history = HistorySync(memory, stable=True)

    async def add_session_to_memory(self, session: Session) -> None:
        """Store what is new in the session; durable when this returns."""
        await self._store_events(session.app_name, session.user_id, session.id, session.events)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store those of the events that are new."""
        del custom_metadata
        await self._store_events(app_name, user_id, session_id or _STATED, events)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories of the application about the user, unchanged."""
        del custom_metadata
        conversation = await self._conversation(app_name, user_id, _STATED)
        pairs = [(entry.content, entry.author or "user") for entry in memories]
        said = [message for pair in pairs for message in from_content(*pair)]
        if said:
            await self._memory.append(conversation, said)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Messages of any session of this user that match the query, best first."""
        project = _project(app_name, user_id)
        hits = await self._memory.recall(None, query, tokens=self._tokens, project=project)
        said = [hit for hit in hits if hit.entry.message.text]
        return SearchMemoryResponse(memories=[_entry(hit) for hit in said])

    async def _store_events(
        self, app: str, user: str, session: str, events: Sequence[Event]
    ) -> None:
        said = [
            (f"{event.id}-{at}", message)
            for event in events
            if event.content and not event.partial
            for at, message in enumerate(from_content(event.content, event.author, event.timestamp))
        ]
        if said:
            conversation = await self._conversation(app, user, session)
            names = [name for name, _ in said]
            await self._history.store_new(conversation, names, lambda at: said[at][1])

    async def _conversation(self, app: str, user: str, session: str) -> str:
        """The session's conversation, in the project of its user, who is its person."""
        project = _project(app, user)
        name = f"{project}/{session}"
        head = await self._memory.head(name)
        # The application may have set another person.
        person = person_name(user) if head is None or head.person is None else None
        if person is not None or head is None or head.project != project:
            await self._memory.describe(name, project=project, person=person)
        return name


def _project(app: str, user: str) -> str:
    """One name for both; different for any other pair."""
    return "/".join(quote(part, safe="@:+ ") for part in (app, user))


def _entry(hit: Hit) -> MemoryEntry:
    message = hit.entry.message
    role = "user" if message.role == "user" else "model"
    return MemoryEntry(
        content=types.Content(role=role, parts=[types.Part(text=hit.text)]),
        author=message.name or message.role,
        timestamp=message.created_at.isoformat() if message.created_at else None,
        id=f"{hit.conversation}#{hit.seq}",
    )


def from_content(
    content: types.Content, author: str, timestamp: float | None = None
) -> list[Message]:
    """ADK's content as messages: one for text and calls, one for each tool result."""
    parts = content.parts or []
    called = [part.function_call for part in parts if part.function_call]
    returned = [part.function_response for part in parts if part.function_response]
    contents = [part for part in parts if _is_content(part)]
    time = datetime.fromtimestamp(timestamp, UTC) if timestamp else None
    fields: dict[str, Any] = {"name": author, "created_at": time}
    messages: list[Message] = []
    if contents or called:
        texts = [part.text for part in contents if part.text and not part.thought]
        plain = len(texts) == len(contents)
        inside = "\n".join(texts) if plain else tuple(map(_to_part, contents))
        role: Any = "user" if author == "user" else "assistant"
        calls = tuple(ToolCall.of(c.id or "", c.name or "", c.args or {}) for c in called)
        messages.append(Message(role, inside or None, tool_calls=calls, **fields))
    return messages + [
        Message.tool(_tool_result(r), tool_call_id=r.id or "", **fields) for r in returned
    ]


def _is_content(part: types.Part) -> bool:
    """Whether the part is neither a tool's nor empty."""
    is_tool = part.function_call or part.function_response
    others = part.model_dump(exclude_none=True, exclude={"text", "thought"})
    return not is_tool and bool(part.text or others)


def _tool_result(returned: types.FunctionResponse) -> str | list[Part]:
    """A tool's result, with its pictures and files."""
    text, files = encode_json(returned.response or {}), returned.parts or []
    dumped = [file.model_dump(mode="json", exclude_none=True) for file in files]
    return [Part.of_text(text), *(Part({"type": "file", **d}) for d in dumped)] if files else text


def _to_part(part: types.Part) -> Part:
    if part.text:
        return Part.reasoning(part.text) if part.thought else Part.of_text(part.text)
    return Part({"type": "file", **part.model_dump(mode="json", exclude_none=True)})
