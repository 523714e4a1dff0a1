"""Answers the messages stored by the webhook, and sends the answers.

Workers in any number of processes share the work; a claim decides which one answers in a chat.
Messages that arrive in the meantime are answered together: the newest is the question, and the
others are in its context. An answer is stored once and then sent part by part. Each sent part is
recorded, so a part is sent twice only after a crash between the two.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import groupby, takewhile
from typing import Any, Final

from firnline.engine.background import BackgroundTask, retry_delay
from firnline.engine.events import Events, Values
from firnline.errors import ConflictError, FirnlineError, StoreError, UnknownConversation, outline
from firnline.log import limits
from firnline.log.entry import Entry
from firnline.log.message import utc_now
from firnline.memory import Memory
from firnline.models.guard import Backoff
from firnline.models.model_like import ModelLike, as_model
from firnline.protocols import Clock, Event, Observer
from firnline.server.limits import (
    TELEGRAM_FAILURES_MAX,
    TELEGRAM_GIVE_UP_SECONDS,
    TELEGRAM_OVERTAKEN_MAX,
)
from firnline.server.offline_model import OfflineModel
from firnline.server.telegram.answer import (
    Asking,
    Overtaken,
    answer,
    answer_to,
    answered_by,
    apologize,
    questions_of,
)
from firnline.server.telegram.api import Api, TelegramError
from firnline.server.telegram.jobs import (
    Claim,
    Place,
    ReplyJob,
    delivery_of,
    drop_jobs,
    is_ahead,
    jobs_of,
)
from firnline.server.telegram.settings import BotSettings, checked
from firnline.server.telegram.split import parts_of
from firnline.store.cards import TenantCards

logger: Final = logging.getLogger("firnline.telegram")

_FIXED: Final = frozenset({"start", "help"})
_TYPING_SECONDS: Final = 4.5  # Telegram shows it for five seconds


class TelegramWorker(BackgroundTask):
    """Answers in the chats of these bots.

    `memory_of` returns the memory of a tenant. `model` answers; without one, matching
    messages of the conversation are quoted. `lease_seconds` is how long a chat waits for a worker
    that died, `answer_seconds` how long one answer may take.
    """

    def __init__(  # noqa: PLR0913 - all by name, most for tests
        self,
        bots: Sequence[BotSettings],
        memory_of: Callable[[str], Awaitable[Memory]],
        *,
        model: ModelLike | None = None,
        observer: Observer | None = None,
        clock: Clock = utc_now,
        concurrency: int = 8,
        poll_seconds: float = 1.0,
        lease_seconds: float = 60.0,
        answer_seconds: float = 180.0,
        backoff: Backoff | None = None,
    ) -> None:
        super().__init__(logger, poll_seconds=poll_seconds)
        self._memory_of, self._clock = memory_of, clock
        self.bots = checked(bots)
        self._bots = {bot.id: bot for bot in self.bots}
        self._apis = {bot.id: Api(bot.token, url=bot.api_url) for bot in bots}
        self._names: dict[int, str] = {}
        self._events = {bot.id: Events(bot.tenant, observer) for bot in bots}
        self._model = as_model(model)
        self._lease_seconds, self._answer_seconds = lease_seconds, answer_seconds
        self._backoff = backoff or Backoff(first=1.0)
        self._gate = asyncio.Semaphore(concurrency)
        self._busy: dict[Place, asyncio.Task[int]] = {}

    # -- the loop -----------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop and close the connections; unanswered messages stay pending."""
        await super().stop()
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        for api in self._apis.values():
            await api.close()

    async def run(self) -> None:
        """Answer until canceled."""
        try:
            await super().run()
        finally:
            for task in self._busy.values():
                task.cancel()
            if self._busy:
                await asyncio.wait({*self._busy.values()})

    async def step(self) -> float:
        """Start answering in every chat with due jobs."""
        await self._begin()
        return self.poll_seconds

    async def once(self) -> int:
        """Answer everything that is due; returns how many answers were sent or given up."""
        return sum(await asyncio.gather(*await self._begin()))

    async def _begin(self) -> list[asyncio.Task[int]]:
        """Start a task for every chat with due jobs; a slow chat does not delay the others."""
        begun = []
        for bot in self._bots.values():
            for place in await self._due(bot):
                if place not in self._busy:
                    task = asyncio.create_task(self._chat(place))
                    self._busy[place] = task
                    task.add_done_callback(partial(self._ended, place))
                    begun.append(task)
        return begun

    def _ended(self, place: Place, task: asyncio.Task[int]) -> None:
        del self._busy[place]
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            logger.error("%s: internal error: %s", place.conversation, outline(error))
        elif task.result():
            self.wake()  # messages may have arrived after the last look

    async def _due(self, bot: BotSettings) -> list[Place]:
        """The bot's chats whose oldest job is due."""
        jobs = await jobs_of(await self._cards(bot.tenant), f"{bot.id}/")
        firsts = [next(chat) for _, chat in groupby(jobs, lambda job: job.place)]
        return [job.place for job in firsts if not self._is_postponed(job)]

    def _is_postponed(self, job: ReplyJob) -> bool:
        return is_ahead(job.due, self._clock, limits.POSTPONE_SECONDS_MAX)

    async def _cards(self, tenant: str) -> TenantCards:
        return (await self._memory_of(tenant)).cards

    # -- one chat -----------------------------------------------------------------------------

    async def _chat(self, place: Place) -> int:
        """Answer everything that is due in a chat, in order, unless another process does."""
        async with self._gate:
            try:
                cards = await self._cards(place.tenant)
                claim = await Claim.take(
                    cards, place, seconds=self._lease_seconds, clock=self._clock
                )
                return await self._claimed(place, claim) if claim else 0
            except FirnlineError as error:
                why = outline(error)
                logger.warning("%s: cannot answer now: %s", place.conversation, why)
                return 0

    async def _claimed(self, place: Place, claim: Claim) -> int:
        try:
            return await _renewing(claim, self._lease_seconds, self._all(place, claim))
        finally:
            with suppress(FirnlineError):  # it expires
                await asyncio.shield(claim.release())

    async def _all(self, place: Place, claim: Claim) -> int:
        done = overtaken = 0
        while jobs := await jobs_of(await self._cards(place.tenant), place.prefix):
            if self._is_postponed(jobs[0]):
                break
            batch = jobs
            try:
                if batch := _together(await self._meant(jobs)):
                    done += await self._batch(
                        batch, claim, patient=overtaken < TELEGRAM_OVERTAKEN_MAX
                    )
                overtaken = 0
            except Overtaken:
                overtaken += 1
            except UnknownConversation as error:
                logger.info("%s: %s", place.conversation, error)
                break
            except Exception as error:
                if not claim.held:
                    raise
                await self._postpone(batch[0], error)
        return done

    async def _batch(self, batch: Sequence[ReplyJob], claim: Claim, *, patient: bool) -> int:
        """Answer some messages together and send the answer; returns 1."""
        first = batch[0]
        memory = await self._memory_of(first.place.tenant)
        found = await answer_to(memory, first.place.conversation, first.seq)
        if found is None:
            found = await self._answered(memory, batch, patient=patient)
        answered = {first.seq, *answered_by(found)}
        await self._send([job for job in batch if job.seq in answered][-1], found, claim)
        await drop_jobs(memory.cards, first.place, answered)
        return 1

    async def _answered(self, memory: Memory, batch: Sequence[ReplyJob], *, patient: bool) -> Entry:
        place, last = batch[0].place, batch[-1].seq

        async def overtaken() -> bool:
            jobs = await jobs_of(memory.cards, place.prefix) if patient else []
            return any(job.seq > last for job in _together(await self._meant(jobs)))

        asking = Asking(
            memory=memory,
            bot=self._bots[place.bot_id],
            model=self._model or OfflineModel(memory, place.conversation),
            jobs=batch,
            questions=await questions_of(memory, batch),
            seconds=self._answer_seconds,
            overtaken=overtaken,
            events=self._events[place.bot_id],
        )
        if batch[0].failures >= TELEGRAM_FAILURES_MAX:
            return await apologize(asking)
        typing = asyncio.create_task(self._typing(batch[-1]))
        try:
            return await answer(asking)
        finally:
            typing.cancel()
            await asyncio.wait({typing})

    async def _meant(self, jobs: Sequence[ReplyJob]) -> list[ReplyJob]:
        """The jobs that are for this bot; in a group, a message may mention other users."""
        meant = [job for job in jobs if job.mentions is None or await self._is_me(job)]
        others = {job.seq for job in jobs} - {job.seq for job in meant}
        if others:
            place = jobs[0].place
            await drop_jobs(await self._cards(place.tenant), place, others)
        return meant

    async def _is_me(self, job: ReplyJob) -> bool:
        bot_id = job.place.bot_id
        if bot_id not in self._names:
            me = await self._apis[bot_id].call("getMe")
            self._names[bot_id] = str(me.get("username") or "").lower()
        return self._names[bot_id] in (job.mentions or ())

    async def _typing(self, job: ReplyJob) -> None:
        """Show the typing status in the chat."""
        while True:
            # A failure does not matter.
            with suppress(TelegramError):
                await self._apis[job.place.bot_id].call(
                    "sendChatAction",
                    chat_id=job.chat_id,
                    message_thread_id=job.forum_topic,
                    action="typing",
                )
            await asyncio.sleep(_TYPING_SECONDS)

    # -- sending ------------------------------------------------------------------------------

    async def _send(self, job: ReplyJob, found: Entry, claim: Claim) -> None:
        """Send the remaining parts of an answer; a final failure is recorded."""
        cards = await self._cards(job.place.tenant)
        sent = await delivery_of(cards, job.place, found.seq)
        if sent.error:
            return
        parts = parts_of(found.message.text)
        try:
            for part in parts[len(sent.message_ids) :]:
                if not claim.held:
                    raise ConflictError(f"{job.place.conversation}: the claim has expired")
                number = await self._part(job, part, first=not sent.message_ids)
                sent = replace(sent, message_ids=(*sent.message_ids, number))
                await sent.save(cards)
        except TelegramError as error:
            late = self._clock().timestamp() - job.queued > TELEGRAM_GIVE_UP_SECONDS
            if not error.final and not late:
                raise
            await replace(sent, error=str(error)).save(cards)
            self._tell(job, "failed", len(sent.message_ids))
            logger.warning("%s: answer not sent: %s", job.place.conversation, error)
        else:
            self._tell(job, "sent", len(parts))

    async def _part(self, job: ReplyJob, text: str, *, first: bool) -> int:
        """Send one part; returns its message id."""
        message: dict[str, Any] = {"message_thread_id": job.forum_topic, "text": text}
        if job.group and first:  # only the first part is a reply to the question
            reply = {"message_id": job.message_id, "allow_sending_without_reply": True}
            message["reply_parameters"] = reply
        api = self._apis[job.place.bot_id]
        try:
            sent = await api.call("sendMessage", chat_id=job.chat_id, **message)
        except TelegramError as error:
            moved_to = error.context.get("moved_to")
            if moved_to is None:
                raise
            sent = await api.call("sendMessage", chat_id=moved_to, **message)
        return int(sent["message_id"])

    async def _postpone(self, first: ReplyJob, error: Exception) -> None:
        """Schedule a retry; the oldest job of a chat holds the time for all."""
        attempts = first.attempts + 1
        wait = retry_delay(self._backoff, attempts, error)
        why = outline(error)
        logger.warning("%s: no answer: %s; retry in %.0f s", first.place.conversation, why, wait)
        # Only failures to create an answer count for an apology, not failures to send or store.
        failed = not isinstance(error, TelegramError | StoreError)
        later = replace(
            first,
            attempts=attempts,
            failures=first.failures + failed,
            due=self._clock().timestamp() + wait,
        )
        await (await self._cards(first.place.tenant)).put(later.card())

    def _tell(self, job: ReplyJob, outcome: str, parts: int) -> None:
        place = job.place
        values: Values = {"bot": self._bots[place.bot_id].name, "outcome": outcome, "parts": parts}
        self._events[place.bot_id](
            Event("telegram_answer", place.tenant, place.conversation, values)
        )


def _together(jobs: Sequence[ReplyJob]) -> list[ReplyJob]:
    """The jobs for one answer: a command alone, else all jobs up to the next command."""
    if not jobs or jobs[0].command in _FIXED:
        return [*jobs[:1]]
    return [*takewhile(lambda job: job.command not in _FIXED, jobs)]


async def _renewing(claim: Claim, seconds: float, work: Awaitable[int]) -> int:
    """Do the work and renew the claim meanwhile; the work stops if the claim is lost."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=seconds / 3)
            if not task.done():
                await claim.renew()
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError, FirnlineError):
                await task
