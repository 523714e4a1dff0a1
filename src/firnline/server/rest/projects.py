"""Projects and their dashboard."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from fastapi import Request, Response

from firnline.client.paths import project_path
from firnline.engine.digest_history import project_state
from firnline.errors import NotFound
from firnline.log import limits
from firnline.log.entry import Head, Project
from firnline.memory import Memory
from firnline.server.auth import Reading, Writing
from firnline.server.bodies import etag_response, json_response, read_cursor
from firnline.server.rest import paging, responses, schemas
from firnline.server.rest.openapi import (
    FOUND,
    FOUND_OR_MISSING,
    LOCATION,
    Responses,
    problems,
    router,
)
from firnline.server.rest.path_params import ProjectName
from firnline.server.rest.requests import Cursor, Limit, ProjectRequest
from firnline.server.rest.stats import list_pending
from firnline.server.titles import titles_of

routes = router("projects")

_NEWEST: Final = 20
_ACTIVE: Final = "active"


@routes.get("/projects", response_model=schemas.ProjectPage, responses=FOUND)
async def list_projects(
    request: Request, memory: Reading, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """The dashboard: every project with its status, schedule, task, sizes and pending digests.

    The active project with the latest activity includes the state of its conversations.
    """
    after = read_cursor(cursor, str) or ""
    found = [project for project in await memory.projects() if project.name > after]
    pending = set(await list_pending(memory))
    boards = [await _board(memory, project, pending) for project in found[:limit]]
    active = max(filter(_is_active, boards), key=lambda board: board["last_activity"], default=None)
    if active is not None:
        active["context"] = await _combined_state(memory, active)
    following = found[limit - 1].name if len(found) > limit else None
    page = responses.page(boards, following)
    return etag_response(request, {**page, "active": active["name"] if active else None})


def _is_active(board: dict[str, Any]) -> bool:
    return bool(board["status"] == _ACTIVE and board["last_activity"])


@routes.get("/projects/{project}", response_model=schemas.ProjectBoard, responses=FOUND_OR_MISSING)
async def get_project(request: Request, memory: Reading, project: ProjectName) -> Response:
    """A project with the combined state of its newest conversations."""
    for known in await memory.projects():
        if known.name == project:
            board = await _board(memory, known, set(await list_pending(memory)))
            return etag_response(
                request, {**board, "context": await _combined_state(memory, board)}
            )
    raise NotFound("there is no project with this name")


_SAVED: Final[Responses] = {
    200: {"description": "Replaced."},
    201: {"description": "Created.", "model": schemas.Project, "headers": LOCATION},
    **problems(415),
}


@routes.put("/projects/{project}", response_model=schemas.Project, responses=_SAVED)
async def save_project(memory: Writing, project: ProjectName, body: ProjectRequest) -> Response:
    """Create or replace a project; its conversations stay with it."""
    known = {one.name for one in await memory.projects()}
    saved = replace(Project(project), **body.model_dump())
    await memory.save_project(saved)
    if project in known:
        return json_response(responses.project(saved))
    return json_response(responses.project(saved), 201, {"location": project_path(project)})


async def _board(memory: Memory, project: Project, pending: set[str]) -> dict[str, Any]:
    """The project with the totals of all its conversations; the newest ones are listed."""
    count = due = 0
    newest: list[Head] = []
    async for head in paging.heads(memory, project.name):
        count += 1
        due += head.conversation in pending
        newest.append(head)
        if len(newest) >= limits.PAGE_MAX:
            newest = _newest(newest)
    heads, size = _newest(newest), await memory.project_size(project.name)
    titles = await titles_of(memory, heads)
    listed = [responses.head(head, title) for head, title in zip(heads, titles, strict=True)]
    return {
        **responses.project(project),
        "conversations": count,
        "entries": size.entries,
        "tokens": size.tokens,
        "pending": due,
        "last_activity": listed[0]["updated_at"] if listed else None,
        "newest": listed,
        "context": None,
    }


def _newest(heads: list[Head]) -> list[Head]:
    return sorted(heads, key=lambda head: head.updated_at, reverse=True)[:_NEWEST]


async def _combined_state(memory: Memory, board: dict[str, Any]) -> dict[str, Any] | None:
    """The state of the conversations that are listed, and the name of the newest."""
    names = [head["conversation"] for head in reversed(board["newest"])]
    if not names:
        return None
    state = project_state([await memory.in_force(name) for name in names])
    return {"conversation": names[-1], "state": responses.plain(state)}
