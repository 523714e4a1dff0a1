"""The black box of coding agents: their hooks send events here, and get what they had forgotten.

What leads to a transcript is answered at once and imported in the background; what has the messages
itself is stored first (`captures`). After a compaction, a prompt gets the old messages that fit it,
if they are found in time.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Literal

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from firnline.server.auth import Writing, parts_of
from firnline.server.captures import PROMPTS, read_event, recall_dropped
from firnline.server.limits import HOOK_RECALL_SECONDS
from firnline.server.proxy.request import read_object

logger: Final = logging.getLogger("firnline.server")

router = APIRouter(include_in_schema=False)

Agent = Literal["claude-code", "codex", "cursor"]
_NO_CONTENT: Final = 204


@router.post("/api/v1/hooks/{agent}")
async def take_event(request: Request, memory: Writing, agent: Agent) -> Response:
    """Take an event of an agent's hook; what its answer says is for the agent to read."""
    parts, body = parts_of(request), await read_object(request)
    event = read_event(agent, body, parts.settings.transcript_folders)
    if event.transcript is None:
        await parts.captures.take(memory, event)
    text = ""
    if event.name in PROMPTS:
        try:
            async with asyncio.timeout(HOOK_RECALL_SECONDS):
                most = parts.settings.hook_tokens
                text = await recall_dropped(memory, event.conversation, body.get("prompt"), most)
        except TimeoutError:
            logger.info("hook: no time to recall for %s", event.conversation)
    if event.transcript is not None:  # after the recall, which is about older messages
        parts.captures.start(memory, event)
    if not text:
        return Response(status_code=_NO_CONTENT)
    if event.transcript is None:
        return JSONResponse({"continue": True, "additional_context": text})
    told = {"hookEventName": event.name, "additionalContext": text}
    return JSONResponse({"hookSpecificOutput": told})
