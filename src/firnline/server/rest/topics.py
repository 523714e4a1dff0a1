"""Topics: what the parts of a conversation are about, and how important they are."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request, Response

from firnline.errors import InputError, NotFound
from firnline.memory import Memory
from firnline.server.auth import Reading, Writing, charge, may_write, parts_of
from firnline.server.bodies import etag_response, json_response, require_head
from firnline.server.rest import paging, requests, responses, schemas
from firnline.server.rest.contexts import budget_of
from firnline.server.rest.openapi import CONVERSATION, FOUND_OR_MISSING, problems, router
from firnline.server.rest.path_params import Conversation
from firnline.topics import TopicStats

routes = router("topics", CONVERSATION)

TopicId = Annotated[requests.Seq, Path(description="The topic's id.")]


@routes.get("/topics", response_model=schemas.Topics, responses=FOUND_OR_MISSING)
async def list_topics(request: Request, memory: Reading, conversation: Conversation) -> Response:
    """List the topics, the active one first, including archived ones."""
    await require_head(memory, conversation)
    found = await memory.topics(conversation)
    return etag_response(request, {"data": [topic.to_json() for topic in found]})


@routes.get("/topics/{topic}", response_model=schemas.Topic, responses=FOUND_OR_MISSING)
async def get_topic(
    request: Request, memory: Reading, conversation: Conversation, topic: TopicId
) -> Response:
    """Get one topic."""
    return etag_response(request, (await _require_topic(memory, conversation, topic)).to_json())


@routes.get(
    "/topics/{topic}/messages", response_model=schemas.EntryPage, responses=FOUND_OR_MISSING
)
async def list_topic_messages(
    request: Request,
    memory: Reading,
    conversation: Conversation,
    topic: TopicId,
    limit: requests.Limit = 100,
    cursor: requests.Cursor = None,
) -> Response:
    """Every message of a topic, archived or not, in order."""
    found = await _require_topic(memory, conversation, topic)
    seqs = await memory.topic_seqs(conversation, found.topic_id)
    return etag_response(request, await paging.entries(memory, conversation, seqs, cursor, limit))


@routes.post("/topics/match", response_model=schemas.TopicMatch, responses=problems(404, 415))
async def match_topic(
    memory: Reading, conversation: Conversation, body: requests.MatchRequest
) -> Response:
    """Find the topic that is most similar to a text."""
    await require_head(memory, conversation)
    match = await memory.match_topic(conversation, body.text)
    none = {"topic": None, "raw": None, "similarity": None}
    return json_response(responses.plain(match) if match else none)


@routes.post("/topics/context", response_model=schemas.Context, responses=problems(404, 409, 415))
async def build_topic_context(
    request: Request,
    memory: Reading,
    conversation: Conversation,
    body: requests.TopicContextRequest | None = None,
) -> Response:
    """The active topic: its summary as a system message, then its active messages.

    With a key that may write, a digest that is due is created first.
    """
    await require_head(memory, conversation)
    budget = budget_of(parts_of(request), memory, body.budget if body else None)
    context = await memory.topic_context(conversation, budget, fold=may_write(request))
    charge(request, context.tokens)
    return json_response(responses.context(context))


@routes.post(
    "/topics/{topic}/merge", response_model=schemas.Topic, responses=problems(404, 409, 415)
)
async def merge_topics(
    memory: Writing, conversation: Conversation, topic: TopicId, body: requests.MergeRequest
) -> Response:
    """Move the messages of another topic into this one."""
    for one in (topic, body.topic):
        await _require_topic(memory, conversation, one)
    return json_response((await memory.merge_topics(conversation, topic, body.topic)).to_json())


@routes.patch(
    "/topics/{topic}/tags", response_model=schemas.Topic, responses=problems(404, 409, 415)
)
async def tag_topic(
    memory: Writing, conversation: Conversation, topic: TopicId, body: requests.TagsRequest
) -> Response:
    """Add and remove tags of a topic; a search can be limited to tags."""
    await _require_topic(memory, conversation, topic)
    changed = await memory.tag_topic(conversation, topic, add=body.add, remove=body.remove)
    return json_response(changed.to_json())


@routes.post("/feedback", response_model=schemas.Topic, responses=problems(404, 409, 415))
async def give_feedback(
    memory: Writing, conversation: Conversation, body: requests.FeedbackRequest
) -> Response:
    """Vote on whether a message was useful; changes the importance of its topic."""
    await require_head(memory, conversation)
    return json_response((await memory.feedback(conversation, body.seq, body.vote)).to_json())


async def _require_topic(memory: Memory, conversation: str, topic: int) -> TopicStats:
    """The topic, or the one that it was merged into."""
    await require_head(memory, conversation)
    try:
        return await memory.topic_stats(conversation, topic)
    except InputError as error:
        raise NotFound(f"there is no topic {topic}") from error
