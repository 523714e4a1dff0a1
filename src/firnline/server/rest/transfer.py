"""Export and import: a tenant's conversations as JSON Lines, and other programs' files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as PathParameter
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect

from firnline.client.paths import PREFIX
from firnline.errors import InputError, NotFound, WrongType
from firnline.log.entry import Key
from firnline.memory import Memory
from firnline.server.auth import Reading, Writing, parts_of
from firnline.server.bodies import head_of, sent, tagged
from firnline.server.jobs import Job, named_file, reports, unnamed_file
from firnline.server.rest import events, paging, responses, schemas
from firnline.server.rest.openapi import (
    FOUND,
    LOCATION,
    MISSING,
    Responses,
    operation_id,
    problems,
    router,
)
from firnline.server.rest.requests import ExportRequest, Name
from firnline.transfer import jsonl

routes = router("transfer")
raw_routes = APIRouter(tags=["transfer"], generate_unique_id_function=operation_id)
"""Those whose body is not JSON and is read piece by piece."""

JSON_LINES: Final = "application/jsonl"
_TAKEN_TYPES: Final = frozenset({JSON_LINES, "application/x-ndjson", "application/octet-stream"})
_PIECE: Final = 1024 * 1024
_EXAMPLE: Final = '{"firnline":1,"tenant":"default"}\n{"conversation":"c","entries":1,...}\n...\n'
_LINES: Final[Responses] = {
    200: {
        "description": "One JSON object a line; the last one is the manifest.",
        "content": {JSON_LINES: {"schema": {"type": "string"}, "example": _EXAMPLE}},
    },
    **MISSING,
}
_BEGUN: Final[Responses] = {
    202: {"description": "Begun; `Location` tells how far it is.", "headers": LOCATION},
    **MISSING,
    **problems(415),
}
_EVENTS: Final[Responses] = {
    200: {
        "description": "Events with the job as it is then.",
        "content": {
            events.MEDIA_TYPE: {
                "schema": {"type": "string"},
                "example": 'event: progress\ndata: {"done":1000,"total":4000}\n\n',
            }
        },
    },
    **MISSING,
}
JobId = Annotated[
    str, PathParameter(max_length=100, description="The job's id.", examples=["5f1c0a52b7d94e6f"])
]


@routes.get("/export", response_class=StreamingResponse, responses=_LINES)
async def export(
    memory: Reading,
    conversation: Annotated[
        list[Name] | None,
        Query(max_length=100, description="These; all of them unless given."),
    ] = None,
) -> Response:
    """Conversations with entries, digests and topics, as they are read.

    If it breaks off, the manifest is missing, and nobody will take it for complete.
    """
    keys = await _keys(memory, conversation)
    lines = (piece async for piece, _ in jsonl.pieces(memory.store, memory.tenant, keys))
    return StreamingResponse(lines, media_type=JSON_LINES, headers=_as_file("firnline"))


@routes.post("/exports", status_code=202, response_model=schemas.Job, responses=_BEGUN)
async def begin_export(
    request: Request, memory: Reading, body: ExportRequest | None = None
) -> Response:
    """Prepare the same as a file, and tell how far it is."""
    keys = await _keys(memory, body.conversations if body else None)

    async def work(job: Job) -> dict[str, Any]:
        job.progress(0, await _entries(memory, keys))
        file = job.file = unnamed_file()
        manifest = jsonl.Manifest()
        async for lines, manifest in jsonl.pieces(memory.store, memory.tenant, keys):
            await asyncio.to_thread(file.write, lines)
            job.progress(manifest.entries, 0)
        await asyncio.to_thread(file.flush)
        return dict(responses.plain(manifest))

    jobs = parts_of(request).jobs
    job = jobs.open(memory.tenant, "export")
    jobs.start(job, work)
    return _begun(job)


@raw_routes.post(
    "/import",
    status_code=202,
    response_model=schemas.Job,
    responses=_BEGUN,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {JSON_LINES: {"schema": {"type": "string"}, "example": _EXAMPLE}},
        }
    },
)
async def begin_import(
    request: Request,
    memory: Writing,
    name: Annotated[
        str | None,
        Query(max_length=500, description="What the file is called, if it may be of any format."),
    ] = None,
    as_format: Annotated[
        str | None, Query(alias="format", max_length=50, description="Its format; else recognised.")
    ] = None,
    zone: Annotated[
        str, Query(max_length=100, description="The time zone of times that name none.")
    ] = "UTC",
) -> Response:
    """Take conversations from a file, which is the body itself. Importing it again adds nothing.

    An export of ours is checked as a whole before anything is stored. With a `name`, files of other
    programs are taken, too, and the job has a `report` of what was found and not understood.
    """
    if request.headers.get("content-type", "").partition(";")[0].lower() not in _TAKEN_TYPES:
        raise WrongType(f"the body is an export: say Content-Type: {JSON_LINES}")
    jobs = parts_of(request).jobs
    job = jobs.open(memory.tenant, "import")
    try:
        path = await _received(request, job, name or "import.jsonl")
    except BaseException as error:
        jobs.failed(job, InputError("the file did not arrive whole"))
        if isinstance(error, ClientDisconnect):
            raise InputError("the body ended early") from None
        raise

    async def work(job: Job) -> dict[str, Any] | None:
        try:
            if name is None:
                return dict(responses.plain(await memory.import_(path, progress=job.progress)))
            report = await memory.import_file(
                path, as_format=as_format, zone=zone, progress=job.progress
            )
        except InputError as error:
            raise InputError(str(error).replace(str(path), "the file")) from None
        job.report = responses.plain(report)
        return None

    jobs.start(job, work)
    return _begun(job)


async def _received(request: Request, job: Job, name: str) -> Path:
    """The body as a file; memory holds a piece of it."""
    file, path = named_file(name)
    job.path = path
    held = bytearray()
    with file:
        async for piece in request.stream():
            held += piece
            if len(held) >= _PIECE:
                await asyncio.to_thread(file.write, bytes(held))
                held.clear()
        await asyncio.to_thread(file.write, bytes(held))
    return path


async def _keys(memory: Memory, names: Sequence[str] | None) -> list[Key] | None:
    """The conversations that are named, each of which has to be there; None is all of them."""
    if names is None:
        return None
    for name in names:
        await head_of(memory, name)
    return [Key(memory.tenant, name) for name in dict.fromkeys(names)]


async def _entries(memory: Memory, keys: Sequence[Key] | None) -> int:
    """How many entries an export will have."""
    if keys is None:
        return sum([head.entries async for head in paging.heads(memory)])
    return sum([(await head_of(memory, key.conversation)).entries for key in keys])


# -- jobs -------------------------------------------------------------------------------------


def _begun(job: Job) -> Response:
    return sent(_shown(job), 202, {"location": f"{PREFIX}/jobs/{job.id}"})


def _shown(job: Job) -> dict[str, Any]:
    url = f"{PREFIX}/jobs/{job.id}"
    names = ("id", "kind", "state", "done", "total", "created_at", "finished_at")
    return {
        **{name: responses.plain(getattr(job, name)) for name in names},
        "url": url,
        "file": f"{url}/file" if job.state == "done" and job.file else None,
        "result": job.result,
        "report": job.report,
        "error": job.error,
    }


@routes.get("/jobs", response_model=schemas.Jobs, responses=FOUND)
async def list_jobs(request: Request, memory: Reading) -> Response:
    """Exports and imports of this server, the newest first; finished ones for an hour."""
    found = parts_of(request).jobs.all(memory.tenant)
    return tagged(request, {"data": [_shown(job) for job in found]})


@routes.get("/jobs/{job}", response_model=schemas.Job, responses={**FOUND, **MISSING})
async def get_job(request: Request, memory: Reading, job: JobId) -> Response:
    """How far a job is, and what came of it."""
    return tagged(request, _shown(parts_of(request).jobs.get(memory.tenant, job)))


@routes.get("/jobs/{job}/events", response_class=StreamingResponse, responses=_EVENTS)
async def watch_job(request: Request, memory: Reading, job: JobId) -> Response:
    """The same as events, as it goes on: `progress`, then `done` or `failed`."""
    found = parts_of(request).jobs.get(memory.tenant, job)
    return events.stream(_reported(found))


async def _reported(job: Job) -> AsyncIterator[bytes]:
    async for state in reports(job):
        name = "progress" if state.state == "running" else state.state
        yield events.event(name, _shown(state))


@routes.get("/jobs/{job}/file", response_class=StreamingResponse, responses=_LINES)
async def get_job_file(request: Request, memory: Reading, job: JobId) -> Response:
    """What an export has made."""
    found = parts_of(request).jobs.get(memory.tenant, job)
    if found.state != "done" or found.file is None:
        raise NotFound("there is no file: the job goes on, has failed, or made none")
    size = found.size()
    headers = {**_as_file(f"firnline-{found.id}"), "content-length": str(size)}
    return StreamingResponse(_read(found, size), media_type=JSON_LINES, headers=headers)


async def _read(job: Job, size: int) -> AsyncIterator[bytes]:
    for at in range(0, size, _PIECE):
        yield await asyncio.to_thread(job.piece, at, _PIECE)


def _as_file(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}.jsonl"'}
