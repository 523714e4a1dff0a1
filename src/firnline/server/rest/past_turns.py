"""Past turns: the exact prompt behind each answer, as recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastapi import Request, Response

from firnline.errors import NotFound
from firnline.memory import Memory
from firnline.server import prompts
from firnline.server.auth import Reading
from firnline.server.bodies import etag_response, read_cursor, require_head
from firnline.server.rest import paging, requests, responses, schemas
from firnline.server.rest.messages import AtSeq
from firnline.server.rest.openapi import CONVERSATION, FOUND_OR_MISSING, router
from firnline.server.rest.path_params import Conversation
from firnline.store.rows import SEQ_MAX

routes = router("turns", CONVERSATION)

_QUESTION_CHARS: Final = 200
_LIST_FIELDS: Final = ("answer", "strategy", "tokens", "stability", "degraded", "recorded_at")
_PROMPT_FIELDS: Final = ("reason", "budget", "accounting", "sections", "left_out", "hits", "sha256")
_COUNT_FIELDS: Final = ("calls", "prompt_tokens", "completion_tokens")


@routes.get("/turns", response_model=schemas.PastTurnPage, responses=FOUND_OR_MISSING)
async def list_turns(
    request: Request,
    memory: Reading,
    conversation: Conversation,
    limit: requests.Limit = 100,
    cursor: requests.Cursor = None,
) -> Response:
    """List the turns with a recorded prompt, newest first.

    Turns that this server handled: REST, proxy or Telegram.
    """
    await require_head(memory, conversation)
    before = read_cursor(cursor, int)
    if before is not None:
        before = min(max(before, 0), SEQ_MAX)
    found = await prompts.list_records(memory, conversation, before=before, limit=limit)
    questions = await _read_questions(memory, conversation, found)
    following = found[-1]["answer"] if len(found) == limit else None
    return etag_response(
        request, responses.page([_turn_json(record, questions) for record in found], following)
    )


@routes.get("/turns/{seq}", response_model=schemas.Prompt, responses=FOUND_OR_MISSING)
async def get_turn(
    request: Request, memory: Reading, conversation: Conversation, seq: AtSeq
) -> Response:
    """The prompt behind the answer `seq`, message by message.

    Its hash is recomputed: the messages are those that were sent to the model.
    """
    await require_head(memory, conversation)
    record = await prompts.read(memory, conversation, seq)
    if record is None:
        raise NotFound(f"no prompt is recorded for message {seq}")
    earlier = await prompts.list_records(memory, conversation, before=seq, limit=1)
    body = {
        **_turn_json(record, await _read_questions(memory, conversation, [record])),
        **{name: record[name] for name in _PROMPT_FIELDS},
        **{name: record.get(name) for name in _COUNT_FIELDS},
        "before": earlier[0]["answer"] if earlier else None,
        "proved": True,
        "prompt": record["pieces"],
    }
    return etag_response(request, body)


def _turn_json(record: Mapping[str, Any], questions: Mapping[int, str]) -> dict[str, Any]:
    question = record.get("question")
    return {
        **{name: record[name] for name in _LIST_FIELDS},
        "question": question if question in questions else None,
        "asked": questions.get(question, "") if isinstance(question, int) else "",
        "model": record.get("model") or "",
        "via": record.get("via") or "",
        "messages": len(record["pieces"]),
        "whole": record.get("whole_tokens"),
        "window": record["budget"]["window_tokens"],
    }


async def _read_questions(
    memory: Memory, conversation: str, found: Sequence[Mapping[str, Any]]
) -> dict[int, str]:
    """The first words of the questions, by sequence number."""
    named = [record.get("question") for record in found]
    seqs = sorted({seq for seq in named if isinstance(seq, int) and seq >= 0})
    questions: dict[int, str] = {}
    for start in range(0, len(seqs), paging.ENTRIES_READ):
        for entry in await memory.read_at(conversation, seqs[start : start + paging.ENTRIES_READ]):
            questions[entry.seq] = " ".join(entry.message.text[:_QUESTION_CHARS].split())
    return questions
