"""Export and import: conversations as JSON Lines, and files of other programs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as PathParameter
from fastapi.responses import StreamingResponse

from firnline.client.paths import PREFIX
from firnline.errors import InputError, NotFound, WrongType
from firnline.log import limits
from firnline.memory import Memory
from firnline.server.auth import Reading, Writing, parts_of
from firnline.server.bodies import etag_response, json_response, require_head
from firnline.server.jobs import BackgroundJob, unnamed_file, upload_path, watch
from firnline.server.rest import events, paging, responses, schemas
from firnline.server.rest.openapi import (
    FOUND,
    FOUND_OR_MISSING,
    LOCATION,
    MISSING,
    Responses,
    operation_id,
    problems,
    router,
)
from firnline.server.rest.requests import ExportRequest, Name
from firnline.store.scratch import ScratchFolder
from firnline.transfer.jsonl import Manifest

routes = router("transfer")
raw_routes = APIRouter(tags=["transfer"], generate_unique_id_function=operation_id)
"""Routes whose body is not JSON and is read in pieces."""

JSON_LINES: Final = "application/jsonl"
_IMPORT_TYPES: Final = frozenset({JSON_LINES, "application/x-ndjson", "application/octet-stream"})
_EXAMPLE: Final = '{"firnline":1,"tenant":"default"}\n{"conversation":"c","entries":1,...}\n...\n'
_LINES: Final[Responses] = {
    200: {
        "description": "One JSON object per line; the last one is the manifest.",
        "content": {JSON_LINES: {"schema": {"type": "string"}, "example": _EXAMPLE}},
    },
    **MISSING,
}
_ACCEPTED: Final[Responses] = {
    202: {"description": "Started; `Location` is the job.", "headers": LOCATION},
    **MISSING,
    **problems(415),
}
_EVENTS: Final[Responses] = {
    200: {
        "description": "Events with the job's current state.",
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
        Query(max_length=100, description="Conversations to export; default: all."),
    ] = None,
) -> Response:
    """Stream conversations with their messages, digests and topics.

    The manifest comes last, so a response that breaks off is recognized as incomplete.
    """
    names = await _check_names(memory, conversation)
    lines = (piece async for piece, _ in memory.export_pieces(names))
    return StreamingResponse(lines, media_type=JSON_LINES, headers=_attachment("firnline"))


@routes.post("/exports", status_code=202, response_model=schemas.Job, responses=_ACCEPTED)
async def begin_export(
    request: Request, memory: Reading, body: ExportRequest | None = None
) -> Response:
    """Write the same to a file in the background."""
    names = await _check_names(memory, body.conversations if body else None)

    async def work(job: BackgroundJob) -> dict[str, Any]:
        job.progress(0, await _count_entries(memory, names))
        file = job.file = unnamed_file()
        manifest = Manifest()
        async for lines, manifest in memory.export_pieces(names):
            await asyncio.to_thread(file.write, lines)
            job.progress(manifest.entries, 0)
        await asyncio.to_thread(file.flush)
        return dict(responses.plain(manifest))

    jobs = parts_of(request).jobs
    job = jobs.open(memory.tenant, "export")
    jobs.start(job, work)
    return _accept(job)


@raw_routes.post(
    "/import",
    status_code=202,
    response_model=schemas.Job,
    responses=_ACCEPTED,
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
        Query(max_length=500, description="Name of the file; allows files of other programs."),
    ] = None,
    as_format: Annotated[
        str | None, Query(alias="format", max_length=50, description="Its format, if known.")
    ] = None,
    zone: Annotated[
        str, Query(max_length=100, description="Time zone of times without one.")
    ] = "UTC",
    person: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=limits.NAME_CHARS_MAX,
            description="Whom the conversations of another program are with.",
        ),
    ] = None,
) -> Response:
    """Import conversations from a file, sent as the body. Importing it again adds nothing.

    A Firnline export is checked completely before anything is stored. With a `name`, files of
    other programs are accepted too, and the job has a `report` of what was imported and what not.
    """
    if request.headers.get("content-type", "").partition(";")[0].lower() not in _IMPORT_TYPES:
        raise WrongType(f"the body must be an export; send Content-Type: {JSON_LINES}")
    if name is None and person is not None:
        raise InputError(
            "a Firnline export says whom its conversations are with; with person, send the name"
            " of a file of another program"
        )
    jobs = parts_of(request).jobs
    job = jobs.open(memory.tenant, "import", receiving=True)
    try:
        path = await _receive(request, job, name or "import.jsonl")
    except BaseException:
        jobs.fail(job, InputError("the upload was interrupted"))
        raise

    async def work(job: BackgroundJob) -> dict[str, Any] | None:
        try:
            if name is None:
                return dict(responses.plain(await memory.import_(path, progress=job.progress)))
            report = await memory.import_file(
                path, as_format=as_format, zone=zone, person=person, progress=job.progress
            )
        except InputError as error:
            raise InputError(str(error).replace(str(path), "the file")) from None
        job.report = responses.plain(report)
        return None

    jobs.start(job, work)
    return _accept(job)


async def _receive(request: Request, job: BackgroundJob, name: str) -> Path:
    """Write the body to a file, in pieces."""
    job.upload = await asyncio.to_thread(ScratchFolder)
    path = upload_path(job.upload, name)
    buffer = bytearray()
    with path.open("wb") as file:
        async for piece in request.stream():
            buffer += piece
            if len(buffer) >= limits.COPY_BYTES:
                await asyncio.to_thread(file.write, bytes(buffer))
                buffer.clear()
        await asyncio.to_thread(file.write, bytes(buffer))
    return path


async def _check_names(memory: Memory, names: Sequence[str] | None) -> list[str] | None:
    """The names without repetition, all of which must exist; None means all conversations."""
    if names is None:
        return None
    for name in names:
        await require_head(memory, name)
    return list(dict.fromkeys(names))


async def _count_entries(memory: Memory, names: Sequence[str] | None) -> int:
    """The number of messages that an export will have."""
    if names is None:
        return sum([head.entries async for head in paging.heads(memory)])
    return sum([(await require_head(memory, name)).entries for name in names])


# -- jobs -------------------------------------------------------------------------------------


def _accept(job: BackgroundJob) -> Response:
    return json_response(_job_json(job), 202, {"location": f"{PREFIX}/jobs/{job.id}"})


def _job_json(job: BackgroundJob) -> dict[str, Any]:
    url = f"{PREFIX}/jobs/{job.id}"
    file = f"{url}/file" if job.state == "done" and job.file else None
    return responses.fill(schemas.Job, job, url=url, file=file)


@routes.get("/jobs", response_model=schemas.Jobs, responses=FOUND)
async def list_jobs(request: Request, memory: Reading) -> Response:
    """Exports and imports of this server, newest first; finished jobs are kept for an hour."""
    found = parts_of(request).jobs.all(memory.tenant)
    return etag_response(request, {"data": [_job_json(job) for job in found]})


@routes.get("/jobs/{job}", response_model=schemas.Job, responses=FOUND_OR_MISSING)
async def get_job(request: Request, memory: Reading, job: JobId) -> Response:
    """The progress and the result of a job."""
    return etag_response(request, _job_json(parts_of(request).jobs.get(memory.tenant, job)))


@routes.get("/jobs/{job}/events", response_class=StreamingResponse, responses=_EVENTS)
async def watch_job(request: Request, memory: Reading, job: JobId) -> Response:
    """Stream the job as events: `progress`, then `done` or `failed`."""
    found = parts_of(request).jobs.get(memory.tenant, job)
    return events.stream(_job_events(found))


async def _job_events(job: BackgroundJob) -> AsyncIterator[bytes]:
    async for state in watch(job):
        name = "progress" if state.state == "running" else state.state
        yield events.event(name, _job_json(state))


@routes.get("/jobs/{job}/file", response_class=StreamingResponse, responses=_LINES)
async def get_job_file(request: Request, memory: Reading, job: JobId) -> Response:
    """The file of an export."""
    found = parts_of(request).jobs.get(memory.tenant, job)
    if found.state != "done" or found.file is None:
        raise NotFound("there is no file: the job is running, failed, or is not an export")
    size = found.size()
    headers = {**_attachment(f"firnline-{found.id}"), "content-length": str(size)}
    return StreamingResponse(_read_file(found, size), media_type=JSON_LINES, headers=headers)


async def _read_file(job: BackgroundJob, size: int) -> AsyncIterator[bytes]:
    for at in range(0, size, limits.COPY_BYTES):
        yield await asyncio.to_thread(job.piece, at, limits.COPY_BYTES)


def _attachment(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}.jsonl"'}
