"""Background jobs: exports and imports that take longer than a request.

The number of running and remembered jobs of a tenant is limited. Their files are deleted after an
hour, when the server stops, or when a conversation is erased.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TypeAlias, cast
from weakref import WeakValueDictionary

from firnline.errors import FirnlineError, NotFound, TooFast, outline
from firnline.log.message import utc_now
from firnline.protocols import Clock
from firnline.server.limits import (
    JOB_REPORT_SECONDS,
    JOBS_KEPT_MAX,
    JOBS_RECEIVING_MAX,
    JOBS_RUNNING_MAX,
)
from firnline.server.problems import as_problem
from firnline.store.scratch import ScratchFolder

logger: Final = logging.getLogger("firnline.server")

LIFE: Final = timedelta(hours=1)
"""How long a finished job is remembered."""

Kind: TypeAlias = Literal["export", "import"]


@dataclass(slots=True, kw_only=True)
class BackgroundJob:
    """An export or import.

    `file` is its result, without a name, so that nothing is left when the process ends. `upload`
    has the uploaded file, deleted when the job ends; until it has arrived, the job is `receiving`.
    """

    tenant: str
    kind: Kind
    created_at: datetime
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    state: Literal["running", "done", "failed"] = "running"
    receiving: bool = False
    done: int = 0
    total: int = 0
    finished_at: datetime | None = None
    result: dict[str, Any] | None = None
    report: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    file: BinaryIO | None = None
    upload: ScratchFolder | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    turn: threading.Lock = field(default_factory=threading.Lock)

    def progress(self, done: int, total: int) -> None:
        """Report progress; a total of 0 leaves the previous one."""
        self.done, self.total = done, total or self.total
        self.news.set()

    def size(self) -> int:
        """The size of the file."""
        return 0 if self.file is None else os.fstat(self.file.fileno()).st_size

    def piece(self, at: int, most: int) -> bytes:
        """Read a piece of the file; safe for concurrent readers."""
        with self.turn:
            if self.file is None:
                raise NotFound("the file has been deleted")
            self.file.seek(at)
            return self.file.read(most)

    def drop(self) -> None:
        """Delete the files."""
        if self.file is not None:
            with self.turn:
                self.file.close()
                self.file = None
        if self.upload is not None:
            self.upload.close()


JobWork: TypeAlias = Callable[[BackgroundJob], Awaitable[dict[str, Any] | None]]
"""Runs a job and returns its result."""


class Jobs:
    """The jobs of a server."""

    def __init__(self, *, clock: Clock = utc_now) -> None:
        self._clock = clock
        self._jobs: dict[str, list[BackgroundJob]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._places: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def open(self, tenant: str, kind: Kind, *, receiving: bool = False) -> BackgroundJob:
        """Register a job, to be started or failed; `TooFast` if too many are running.

        One that is `receiving` takes no place of a running one: its client may be slow.
        """
        running = [job for job in self.all(tenant) if job.state == "running"]
        uploads = sum(job.receiving for job in running)
        if len(running) - uploads >= JOBS_RUNNING_MAX:
            raise TooFast(
                f"{JOBS_RUNNING_MAX} jobs are already running; wait for one to finish",
                retry_after=5.0,
            )
        if receiving and uploads >= JOBS_RECEIVING_MAX:
            text = f"{JOBS_RECEIVING_MAX} uploads are already arriving; wait for one to finish"
            raise TooFast(text, retry_after=5.0)
        job = BackgroundJob(tenant=tenant, kind=kind, created_at=self._clock(), receiving=receiving)
        self._jobs.setdefault(tenant, []).append(job)
        return job

    def start(self, job: BackgroundJob, work: JobWork) -> None:
        """Run the job in the background, as soon as there is a place for it."""
        job.receiving = False
        task = self._tasks[job.id] = asyncio.create_task(self._run(job, work))
        task.add_done_callback(lambda _: self._tasks.pop(job.id, None))

    def fail(self, job: BackgroundJob, error: FirnlineError) -> None:
        """End the job with an error."""
        job.error = json.loads(bytes(as_problem(error, f"/api/v1/jobs/{job.id}").body))
        job.drop()
        self._end(job, "failed")

    def get(self, tenant: str, job_id: str) -> BackgroundJob:
        """One of the tenant's jobs; `NotFound` for jobs of other tenants too."""
        for job in self.all(tenant):
            if job.id == job_id:
                return job
        raise NotFound("there is no such job, or it finished more than an hour ago")

    def all(self, tenant: str) -> list[BackgroundJob]:
        """The tenant's jobs, newest first; drops those that are too old or too many."""
        now, known = self._clock(), self._jobs.pop(tenant, [])
        kept: list[BackgroundJob] = []
        for age, job in enumerate(reversed(known)):
            recent = age < JOBS_KEPT_MAX and abs(now - (job.finished_at or now)) < LIFE
            if recent or job.state == "running":
                kept.append(job)
            else:
                job.drop()
        if kept:
            self._jobs[tenant] = kept[::-1]
        return kept

    async def forget(self, tenant: str) -> None:
        """Stop and drop the tenant's jobs: they may hold copies of an erased conversation."""
        known = self.all(tenant)
        tasks = [self._tasks[job.id] for job in known if job.id in self._tasks]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for job in known:
            job.drop()
            if job.state == "running" and job.id not in self._tasks:
                self.fail(job, FirnlineError("the job was stopped"))

    async def close(self) -> None:
        """Stop everything."""
        for tenant in list(self._jobs):
            await self.forget(tenant)
        self._jobs.clear()

    async def _run(self, job: BackgroundJob, work: JobWork) -> None:
        try:
            places = self._places.setdefault(job.tenant, asyncio.Semaphore(JOBS_RUNNING_MAX))
            async with places:
                job.result = await work(job)
        except FirnlineError as error:
            self.fail(job, error)
        except asyncio.CancelledError:
            self.fail(job, FirnlineError("the job was stopped"))
        except Exception as error:
            logger.exception("job: internal error")
            self.fail(job, FirnlineError(f"internal error: {outline(error)}"))
        else:
            self._end(job, "done")

    def _end(self, job: BackgroundJob, state: Literal["done", "failed"]) -> None:
        if job.upload is not None:
            job.upload.close()
        job.state, job.finished_at = state, self._clock()
        job.news.set()
        job.ended.set()


async def watch(job: BackgroundJob) -> AsyncIterator[BackgroundJob]:
    """The job whenever it has progressed, at a limited rate, and at once when it ends."""
    while job.state == "running":
        job.news.clear()  # first, so that progress during the report is not missed
        yield job
        await job.news.wait()
        with suppress(TimeoutError):
            await asyncio.wait_for(job.ended.wait(), JOB_REPORT_SECONDS)
    yield job


def unnamed_file() -> BinaryIO:
    """A temporary file without a name; it disappears when it is closed or the process ends."""
    return cast("BinaryIO", tempfile.TemporaryFile(prefix="firnline-"))


def upload_path(upload: ScratchFolder, name: str) -> Path:
    """Where to write an uploaded file that its client calls `name`."""
    return upload.file(_safe(name))


def _safe(name: str) -> str:
    """The last part of an untrusted path, valid on every file system."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    shown = "".join(c for c in last if c.isprintable() and c not in '<>:"|?*').strip(" .")
    return shown.encode()[-200:].decode(errors="ignore") or "file"
