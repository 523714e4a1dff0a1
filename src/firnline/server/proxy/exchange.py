"""One exchange through the proxy: remember what is new, ask with what fits, remember the answer.

Memory trouble never breaks a chat: what cannot be remembered is passed on as it came, and the
answer says so.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote

from firnline.context.budget import Budget
from firnline.context.context import Context
from firnline.context.tools import Tool
from firnline.errors import (
    BudgetError,
    ConflictError,
    FirnlineError,
    InputError,
    UnknownConversation,
    outline,
)
from firnline.log import limits
from firnline.log.entry import Entry
from firnline.log.message import Message
from firnline.log.tokens import counter, find_model
from firnline.memory import Memory
from firnline.server.auth import Caller
from firnline.server.drafts import AnswerDraft, QuestionRef, store_answer
from firnline.server.offline_model import OfflineModel
from firnline.server.prompts import try_record
from firnline.server.proxy.dialect import OPENAI, Shape
from firnline.server.proxy.identity import Named, fingerprint, longer
from firnline.server.proxy.locate import Attempt, Place, branch, place, remember
from firnline.server.proxy.openai_stream import Asking
from firnline.server.proxy.request_context import fitted, joined, leading, words_now
from firnline.server.proxy.upstream import OfflineReply, Reply, Upstream
from firnline.server.state import Parts

logger: Final = logging.getLogger("firnline.proxy")

_RESERVE_MAX: Final = 4_096
_RESERVE_SHARE: Final = 8
_TOOL_SHARE: Final = 4
_OK: Final = 200


@dataclass(slots=True, kw_only=True)
class Exchange:
    """A request to a model, as the proxy takes it; `body` is of the `shape` that `upstream` wants.

    `where` is its place in the log, None if it could not be remembered; `degraded` says why.
    """

    parts: Parts
    caller: Caller
    memory: Memory
    body: dict[str, Any]
    headers: Mapping[str, str]
    shape: Shape = OPENAI
    upstream: Upstream | None = None
    query: str = ""
    where: Place | None = None
    context: Context | None = None
    degraded: str = ""
    digest: int = 0
    unstored: bool = False
    sent: Sequence[Message] = field(default_factory=tuple)

    @property
    def model(self) -> str:
        """The model that the client asks for."""
        return str(self.body.get("model") or "")

    # -- before upstream is asked -------------------------------------------------------------

    async def remember(self, name: Named | None, attempt: Attempt) -> None:
        """Store what is new; the question is durable before anybody is asked.

        Raises what is wrong only if memory is all that could answer.
        """
        try:
            self.sent = self.shape.load(self.body)
            self.where = await place(self.memory, name, self.sent, attempt)
        except Exception as error:
            if self.upstream is None:
                raise  # nobody else would answer it
            self._degrade("not stored", error)  # the chat goes on, whatever is wrong here

    async def build(self) -> Asking:
        """The request that goes upstream: as much of the conversation as fits.

        `BudgetError` if not even the newest message does.
        """
        settings = self.parts.settings
        where, body = self.where, dict(self.body)
        tools: Any = ()
        if where is not None and settings.recall_tools and self.upstream is not None:
            tools = self._recall_tools(where)
        if where is not None:
            try:
                body = self.shape.put(self.body, await self._context(where, tools))
            except BudgetError:
                raise
            except Exception as error:  # noqa: BLE001 - as above
                self._degrade("no context", error)
        if tools:
            body["tools"] = self._offered(tools)
        return Asking(
            body=self.shape.finish(body),
            send=self._send,
            count=counter(self.model),
            shape=self.shape,
            tools=tools,
            room=2 * self._tool_tokens if tools else 0,
            room_needed=self._tool_tokens,
        )

    def _recall_tools(self, where: Place) -> list[Tool]:
        """Ours, but for those whose names the client's own tools have."""
        given = self.body.get("tools")
        theirs = set(map(self.shape.tool_name, given if isinstance(given, list) else ()))
        ours = self.memory.tools(where.conversation, tokens_max=self._tool_tokens)
        return [tool for tool in ours if tool.name not in theirs]

    def _offered(self, tools: Any) -> list[dict[str, Any]]:
        given = self.body.get("tools")
        return [*(given if isinstance(given, list) else ()), *map(self.shape.offer, tools)]

    @property
    def _tool_tokens(self) -> int:
        return min(limits.RECALL_TOKENS, self._budget().limit // (2 * _TOOL_SHARE))

    def _budget(self, kept: int = 0) -> Budget:
        """The model's window or the server's, less the answer, and less `kept`."""
        window = min(
            find_model(self.model).window_tokens,
            self.parts.settings.window_tokens or limits.BATCH_BYTES_MAX,
        )
        asked = self.body.get("max_completion_tokens") or self.body.get("max_tokens")
        usual = min(_RESERVE_MAX, window // _RESERVE_SHARE)
        reserve = asked if isinstance(asked, int) and 0 < asked < window else usual
        if form := self.body.get("response_format") or self.body.get("output_config"):
            reserve += int(counter(self.model).text(json.dumps(form)))
        return Budget(window, min(reserve + kept, window - 1), model=self.model)

    async def _context(self, where: Place, tools: Any) -> Sequence[Message]:
        asked = [message.text for message in self.sent if message.role == "user"]
        count = counter(self.model)
        now = sum(int(count.message(message)) for message in words_now(self.sent))
        context = await self.memory.context(
            where.conversation,
            self._budget(kept=self.shape.margin + now + (2 * self._tool_tokens if tools else 0)),
            question=asked[-1] if asked and asked[-1].strip() else None,
            system=joined(self.sent[: leading(self.sent)]),
            tools=self._offered(tools),
        )
        self.context = fitted(context, where.question, self.sent, count)
        if self.context.degraded:
            self.degraded = self.degraded or "; ".join(self.context.degraded)
        if self.context["digests"].pieces or self.context["important"].pieces:
            newest = await self.memory.in_force(where.conversation)
            self.digest = max((digest.version for digest in newest), default=0)
        self.parts.tokens.charge(self.caller.id, self.context.tokens)
        return self.context.messages

    def _degrade(self, what: str, error: Exception) -> None:
        if not isinstance(error, FirnlineError):
            logger.error("a mistake in the proxy's memory", exc_info=error)
        self.degraded = f"{what}: {error}" if isinstance(error, FirnlineError) else what
        logger.warning("a chat goes on without its memory: %s: %s", what, outline(error))

    async def _send(self, body: dict[str, Any]) -> Reply:
        if self.upstream is None:
            conversation = self.where.conversation if self.where else None
            return OfflineReply(OfflineModel(self.memory, conversation), body)
        content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        return await self.upstream.send(
            "POST",
            self.shape.path,
            content=content,
            headers=self.headers,
            token=self.caller.token,
            query=self.query,
        )

    # -- the answer ---------------------------------------------------------------------------

    async def store(self, asking: Asking) -> Entry | None:
        """Put the answer into the log, and note where its history leads."""
        if self.where is None:
            return None
        try:
            return await self._stored(asking.message)
        except Exception as error:  # noqa: BLE001 - the client gets its answer all the same
            self._degrade("answer not stored", error)
            self.unstored = not isinstance(error, UnknownConversation)  # then there is no place
            return None

    async def _stored(self, message: Message) -> Entry:
        if self.where is None:
            raise InputError("there is no place for the answer")
        conversation, asked = self.where.conversation, (self.where.question, self.where.hash)
        try:
            if self.where.named:
                stored = await store_answer(self.memory, conversation, QuestionRef(*asked), message)
            else:
                stored = await self.memory.append(
                    conversation, message, expected_seq=self.where.next_seq
                )
        except ConflictError:
            # Somebody asked the same at the same time, and was answered first.
            self.where = await branch(self.memory, self.where)
            stored = await self.memory.append(self.where.conversation, message)
        await self._note(self.where, stored[-1])
        return stored[-1]

    async def _note(self, where: Place, answer: Entry) -> None:
        """Keep the prompt of an answer, and the beginning of a history that it makes."""
        notes: list[Awaitable[None]] = []
        if self.context is not None:
            facts = {"question": where.question, "model": self.model, "via": "proxy"}
            context = replace(self.context, conversation=where.conversation)
            notes.append(try_record(self.memory, context, answer.seq, **facts))
        if where.hashes:
            name = longer(where.hashes[-1], fingerprint(answer.message))
            notes.append(remember(self.memory, where.conversation, [name], [answer.seq]))
        await asyncio.gather(*notes)  # together, so that they share a commit

    async def whole(self, asking: Asking, answer: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        """The whole answer, stored before the client gets it."""
        data = await answer
        await self.store(asking)
        return data

    async def events(
        self, asking: Asking, answer: AsyncGenerator[tuple[str, str], None]
    ) -> AsyncGenerator[tuple[str, str], None]:
        """The answer's events; it is stored before its last ones are handed on."""
        async with aclosing(answer) as arriving:
            async for text, data in arriving:
                if text or data:
                    yield text, data
                else:
                    await self.store(asking)

    def keeper(self) -> _Lenient:
        """Who keeps the answer's text while it comes."""
        where = self.where
        begin = self.parts.drafts.begin
        draft = None
        if where is not None:
            draft = begin(self.memory, where.conversation, where.question, where.hash)
        return _Lenient(draft, self)

    def told(self) -> dict[str, str]:
        """What the client is told of its memory, in headers."""
        told = {"x-firnline-status": "degraded" if self.degraded else "ok"}
        if self.degraded:
            told["x-firnline-degraded"] = _ascii(self.degraded)
        if self.where is not None:
            told["x-firnline-conversation"] = quote(self.where.conversation, safe=":@/ ")
            told["x-firnline-source"] = _ascii(self.where.source)
            told["x-firnline-digest"] = str(self.digest)
        if self.context is not None:
            told["x-firnline-tokens"] = str(self.context.tokens)
        return told


class _Lenient:
    """A draft whose trouble does not end the chat; without one, nothing is kept."""

    def __init__(self, draft: AnswerDraft | None, exchange: Exchange) -> None:
        self._draft, self._exchange = draft, exchange

    async def add(self, text: str) -> None:
        await self._try("add", text)

    async def end(self) -> None:
        # An answer that could not be stored is taken from its draft later, as far as it goes.
        await self._try("leave" if self._exchange.unstored else "end")

    async def cut(self, why: str) -> None:
        await self._try("cut", why)

    async def _try(self, verb: str, *arguments: str) -> None:
        if self._draft is None:
            return
        try:
            await getattr(self._draft, verb)(*arguments)
        except FirnlineError as error:
            logger.error("an answer in the making cannot be kept: %s", error)  # noqa: TRY400
            self._draft = None


def _ascii(text: str) -> str:
    return " ".join(text.split()).encode("ascii", "replace").decode()[:200]
