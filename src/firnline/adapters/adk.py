"""`FirnlineMemoryService`: memory for Google's ADK. Needs ``firnline[adk]``.

Sessions go to the log, each event once however often its session is handed over; a search is recall
over all sessions of the app's user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from firnline.adapters.extras import needs
from firnline.adapters.history_sync import Keeper
from firnline.log.entry import Hit
from firnline.memory import Memory

try:
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions import Session
    from google.genai import types

    from firnline.adapters.adk_messages import from_content
except ModuleNotFoundError as error:
    raise needs("adk", error) from error

_STATED: Final = "memories"
"""The conversation of what the application itself adds for a user, and of events of no session."""


class FirnlineMemoryService(BaseMemoryService):
    """Keeps sessions in `memory`; a search returns what fits into `tokens`, best first.

    A user of an app is a project, a session a conversation: ``app/user/session``.
    """

    def __init__(self, memory: Memory, *, tokens: int = 2_000) -> None:
        self._memory, self._tokens = memory, tokens
        self._keeper = Keeper(memory, stable=True)

    async def add_session_to_memory(self, session: Session) -> None:
        """Keep what is new in the session; durable when this returns."""
        await self._keep(session.app_name, session.user_id, session.id, session.events)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep those of the events that are new."""
        del custom_metadata
        await self._keep(app_name, user_id, session_id or _STATED, events)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep what the application knows of the user, word for word."""
        del custom_metadata
        conversation = await self._conversation(app_name, user_id, _STATED)
        pairs = [(entry.content, entry.author or "user") for entry in memories]
        said = [message for pair in pairs for message in from_content(*pair)]
        if said:
            await self._memory.append(conversation, said)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """What was said in any session of this user and fits the query, best first."""
        project = _project(app_name, user_id)
        hits = await self._memory.recall(None, query, tokens=self._tokens, project=project)
        said = [hit for hit in hits if hit.entry.message.text]
        return SearchMemoryResponse(memories=[_entry(hit) for hit in said])

    async def _keep(self, app: str, user: str, session: str, events: Sequence[Event]) -> None:
        said = [
            (f"{event.id}-{at}", message)
            for event in events
            if event.content and not event.partial
            for at, message in enumerate(from_content(event.content, event.author, event.timestamp))
        ]
        if said:
            conversation = await self._conversation(app, user, session)
            names = [name for name, _ in said]
            await self._keeper.keep(conversation, names, lambda at: said[at][1])

    async def _conversation(self, app: str, user: str, session: str) -> str:
        """The name of the session's conversation, which belongs to its user."""
        project = _project(app, user)
        name = f"{project}/{session}"
        head = await self._memory.head(name)
        if head is None or head.project != project:
            await self._memory.describe(name, project=project)
        return name


def _project(app: str, user: str) -> str:
    """One name for both, and another one for any other two."""
    return "/".join(quote(part, safe="@:+ ") for part in (app, user))


def _entry(hit: Hit) -> MemoryEntry:
    message = hit.entry.message
    role = "user" if message.role == "user" else "model"
    return MemoryEntry(
        content=types.Content(role=role, parts=[types.Part(text=message.text)]),
        author=message.name or message.role,
        timestamp=message.created_at.isoformat() if message.created_at else None,
        id=f"{hit.conversation}#{hit.seq}",
    )
