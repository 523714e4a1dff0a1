"""Work that takes longer than a request: it goes on in this process and tells how far it is.

Jobs are few and not kept for ever: so many of a tenant go on at once, so many are remembered, and
what they leave behind is gone after an hour, with the server, or when a conversation is erased.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TypeAlias, cast

from firnline.errors import FirnlineError, NotFound, TooFast, outline
from firnline.log.message import utc_now
from firnline.protocols import Clock
from firnline.server.problems import as_problem

logger: Final = logging.getLogger("firnline.server")

RUNNING_MAX: Final = 2
"""Jobs of a tenant that go on at once."""
KEPT_MAX: Final = 20
"""Jobs of a tenant that are remembered, with their files."""
LIFE: Final = timedelta(hours=1)
"""How long a finished job is remembered."""
_MOMENT: Final = 0.2  # between two reports to a client

Kind: TypeAlias = Literal["export", "import"]


@dataclass(slots=True, kw_only=True)
class Job:
    """A piece of work.

    `file` holds what it made; it has no name, so nothing is left of it when the process ends.
    `path` is what it works on, and is gone when it has ended.
    """

    tenant: str
    kind: Kind
    created_at: datetime
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    state: Literal["running", "done", "failed"] = "running"
    done: int = 0
    total: int = 0
    finished_at: datetime | None = None
    result: dict[str, Any] | None = None
    report: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    file: BinaryIO | None = None
    path: Path | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    turn: threading.Lock = field(default_factory=threading.Lock)

    def progress(self, done: int, total: int) -> None:
        """So much is done; a `Progress`. 0 leaves what was said of the total."""
        self.done, self.total = done, total or self.total
        self.news.set()

    def size(self) -> int:
        """How large the file is."""
        return 0 if self.file is None else os.fstat(self.file.fileno()).st_size

    def piece(self, at: int, most: int) -> bytes:
        """A piece of the file; several clients may be reading it."""
        with self.turn:
            if self.file is None:
                raise NotFound("the file was dropped meanwhile")
            self.file.seek(at)
            return self.file.read(most)

    def drop(self) -> None:
        """Let go of the files."""
        if self.file is not None:
            with self.turn:
                self.file.close()
                self.file = None
        if self.path is not None:
            shutil.rmtree(self.path.parent, ignore_errors=True)
            self.path = None


Doing: TypeAlias = Callable[[Job], Awaitable[dict[str, Any] | None]]
"""Does the work, and returns its result."""


class Jobs:
    """The jobs of a server."""

    def __init__(self, *, clock: Clock = utc_now) -> None:
        self._clock = clock
        self._jobs: dict[str, list[Job]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def open(self, tenant: str, kind: Kind) -> Job:
        """A place for a job, which is then to be started or failed; `TooFast` if there is none."""
        running = [job for job in self.all(tenant) if job.state == "running"]
        if len(running) >= RUNNING_MAX:
            raise TooFast(f"{RUNNING_MAX} jobs go on already", retry_after=5.0)
        job = Job(tenant=tenant, kind=kind, created_at=self._clock())
        self._jobs.setdefault(tenant, []).append(job)
        return job

    def start(self, job: Job, doing: Doing) -> None:
        """Do the work in the background."""
        task = self._tasks[job.id] = asyncio.create_task(self._run(job, doing))
        task.add_done_callback(lambda _: self._tasks.pop(job.id, None))

    def failed(self, job: Job, error: FirnlineError) -> None:
        """The job came to nothing."""
        job.error = json.loads(bytes(as_problem(error, f"/api/v1/jobs/{job.id}").body))
        job.drop()
        self._end(job, "failed")

    def get(self, tenant: str, job_id: str) -> Job:
        """One of the tenant's jobs; another's is as unknown as one that never was."""
        for job in self.all(tenant):
            if job.id == job_id:
                return job
        raise NotFound("there is no such job, or it ended more than an hour ago")

    def all(self, tenant: str) -> list[Job]:
        """The tenant's jobs, the newest first; those that are too old or too many are dropped."""
        now, known = self._clock(), self._jobs.pop(tenant, [])
        kept: list[Job] = []
        for age, job in enumerate(reversed(known)):
            recent = age < KEPT_MAX and now - (job.finished_at or now) < LIFE
            if recent or job.state == "running":
                kept.append(job)
            else:
                job.drop()
        if kept:
            self._jobs[tenant] = kept[::-1]
        return kept

    async def forget(self, tenant: str) -> None:
        """Stop and drop what could hold copies of a conversation that is being erased."""
        known = self.all(tenant)
        tasks = [self._tasks[job.id] for job in known if job.id in self._tasks]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for job in known:
            job.drop()
            if job.state == "running" and job.id not in self._tasks:
                self.failed(job, FirnlineError("it was stopped"))

    async def close(self) -> None:
        """Stop everything."""
        for tenant in list(self._jobs):
            await self.forget(tenant)
        self._jobs.clear()

    async def _run(self, job: Job, doing: Doing) -> None:
        try:
            job.result = await doing(job)
        except FirnlineError as error:
            self.failed(job, error)
        except asyncio.CancelledError:
            self.failed(job, FirnlineError("it was stopped"))
        except Exception as error:
            logger.exception("a mistake in a job")
            self.failed(job, FirnlineError(f"a mistake in Firnline: {outline(error)}"))
        else:
            self._end(job, "done")

    def _end(self, job: Job, state: Literal["done", "failed"]) -> None:
        if job.path is not None:
            shutil.rmtree(job.path.parent, ignore_errors=True)
        job.state, job.finished_at = state, self._clock()
        job.news.set()
        job.ended.set()


async def reports(job: Job) -> AsyncIterator[Job]:
    """The job again and again as it goes on, not too often, and at once when it has ended."""
    while job.state == "running":
        job.news.clear()  # before it is told: what happens meanwhile is news
        yield job
        await job.news.wait()
        with suppress(TimeoutError):
            await asyncio.wait_for(job.ended.wait(), _MOMENT)
    yield job


def unnamed_file() -> BinaryIO:
    """A file for a job; its bytes are gone once it is closed, however the process ends."""
    return cast("BinaryIO", tempfile.TemporaryFile(prefix="firnline-"))


def named_file(name: str) -> tuple[BinaryIO, Path]:
    """A file of this name, in a folder of its own, and its path; the folder goes with the job."""
    path = Path(tempfile.mkdtemp(prefix="firnline-"), _safe(name))
    return path.open("wb"), path


def _safe(name: str) -> str:
    """The last part of a path that somebody else gave, as every file system takes it."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    shown = "".join(c for c in last if c.isprintable() and c not in '<>:"|?*').strip(" .")
    return shown.encode()[-200:].decode(errors="ignore") or "file"
