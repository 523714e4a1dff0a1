"""Past turns: the exact prompt that each answer came from, as it was recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastapi import Request, Response

from firnline.errors import NotFound
from firnline.memory import Memory
from firnline.server import prompts
from firnline.server.auth import Reading
from firnline.server.bodies import head_of, position_of, tagged
from firnline.server.rest import requests, responses, schemas
from firnline.server.rest.messages import AtSeq
from firnline.server.rest.openapi import FOUND, MISSING, router
from firnline.server.rest.path_params import Conversation

routes = router("turns")

_ASKED_CHARS: Final = 200
_STEP: Final = 25  # questions read at once: each may have many megabytes
_SAME: Final = ("answer", "strategy", "tokens", "stability", "degraded", "recorded_at")
_WHOLE: Final = ("reason", "budget", "accounting", "sections", "left_out", "hits", "sha256")
_COUNTS: Final = ("calls", "prompt_tokens", "completion_tokens")


@routes.get(
    "/conversations/{conversation}/turns",
    response_model=schemas.PastTurnPage,
    responses={**FOUND, **MISSING},
)
async def list_turns(
    request: Request,
    memory: Reading,
    conversation: Conversation,
    limit: requests.Limit = 100,
    cursor: requests.Cursor = None,
) -> Response:
    """The turns whose prompts are recorded, the newest first.

    Those that went through this server: by REST, the proxy or Telegram.
    """
    await head_of(memory, conversation)
    before = position_of(cursor, int)
    if before is not None:
        before = min(max(before, 0), requests.SEQ_MAX)
    found = await prompts.turns(memory, conversation, before=before, limit=limit)
    asked = await _asked(memory, conversation, found)
    following = found[-1]["answer"] if len(found) == limit else None
    return tagged(request, responses.page([_told(kept, asked) for kept in found], following))


@routes.get(
    "/conversations/{conversation}/turns/{seq}",
    response_model=schemas.Prompt,
    responses={**FOUND, **MISSING},
)
async def get_turn(
    request: Request, memory: Reading, conversation: Conversation, seq: AtSeq
) -> Response:
    """The prompt that the answer `seq` came from, message by message, and what is known of it.

    Its hash is derived again: what is shown is what the model was given.
    """
    await head_of(memory, conversation)
    kept = await prompts.recorded(memory, conversation, seq)
    if kept is None:
        raise NotFound(f"no prompt is recorded for the entry {seq}")
    earlier = await prompts.turns(memory, conversation, before=seq, limit=1)
    whole = {
        **_told(kept, await _asked(memory, conversation, [kept])),
        **{name: kept[name] for name in _WHOLE},
        **{name: kept.get(name) for name in _COUNTS},
        "before": earlier[0]["answer"] if earlier else None,
        "proved": True,
        "prompt": kept["pieces"],
    }
    return tagged(request, whole)


def _told(kept: Mapping[str, Any], asked: Mapping[int, str]) -> dict[str, Any]:
    question = kept.get("question")
    return {
        **{name: kept[name] for name in _SAME},
        "question": question if question in asked else None,
        "asked": asked.get(question, "") if isinstance(question, int) else "",
        "model": kept.get("model") or "",
        "via": kept.get("via") or "",
        "messages": len(kept["pieces"]),
    }


async def _asked(
    memory: Memory, conversation: str, found: Sequence[Mapping[str, Any]]
) -> dict[int, str]:
    """How the questions begin, by their numbers."""
    named = [kept.get("question") for kept in found]
    seqs = sorted({seq for seq in named if isinstance(seq, int) and seq >= 0})
    known: dict[int, str] = {}
    for start in range(0, len(seqs), _STEP):
        for entry in await memory.read_at(conversation, seqs[start : start + _STEP]):
            known[entry.seq] = " ".join(entry.message.text[:_ASKED_CHARS].split())
    return known
