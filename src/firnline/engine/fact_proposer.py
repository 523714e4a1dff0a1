"""Asks a model for facts that the rules do not find, in the background; code decides.

The answers are recorded next to the log before they are used, so that a model is asked once for a
span of messages, and facts can be made again without it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from firnline.digest import prompts
from firnline.digest.proposals import accepted, quoted, unread
from firnline.digest.testimony import called_in
from firnline.engine.digest_writer import refuse
from firnline.errors import FirnlineError, ModelError
from firnline.log import limits
from firnline.log.entry import Entry, Key
from firnline.log.threads import run_by_size
from firnline.models.guard import Spend
from firnline.protocols import ChatModel, Store
from firnline.store import fact_proposals as cards
from firnline.store.fact_proposals import ProposedFacts
from firnline.store.facts import StatementChain

logger: Final = logging.getLogger("firnline.facts")


class FactProposer:
    """Asks a model about the conversations of people, each message once."""

    def __init__(
        self, store: Store, chain: StatementChain, model: ChatModel, spend: Spend | None
    ) -> None:
        self._store, self._chain, self._model, self._spend = store, chain, model, spend

    async def propose(self, key: Key) -> int:
        """Ask about what was not asked yet; returns how many facts were stated."""
        head = await self._store.head(key)
        if head is None or head.person is None:
            return 0
        person, found = head.person, 0
        called = await _called(self._store, key)
        start = await cards.progress(self._store, key, person)
        while start < head.entries:
            page = await self._store.read(key, start, head.seq, limits.BACKLOG_PAGE)
            for part in _parts(page):
                found += await self._ask(key, person, called, part)
                start = part[-1].seq + 1
                await cards.set_progress(self._store, key, person, start)
            if not page:
                break  # erased meanwhile
        return found

    async def _ask(self, key: Key, person: str, called: str, part: Sequence[Entry]) -> int:
        asked = unread(part, person, called)
        if not asked:
            return 0
        facts = quoted(asked, await self._answer(key, asked))
        proposed = ProposedFacts(part[0].seq, part[-1].seq + 1, facts)
        proposed = await cards.put(self._store, key, person, proposed)
        return await _apply(self._store, self._chain, key, person, called, proposed)

    async def _answer(self, key: Key, asked: Sequence[Entry]) -> Sequence[Any]:
        """What the model proposes; every failure of it is a `ModelError`."""
        refuse(key, self._spend.allow(key, 0) if self._spend else 0.0)
        messages = prompts.facts_messages(asked)
        try:
            completion = await self._model.complete(messages, schema=prompts.FACTS_SCHEMA)
        except ModelError as error:
            if error.context.get("code") != "invalid_json":
                raise
            logger.warning("%s: the model's facts are not used: %s", key.conversation, error)
            return []  # it would say the same again
        except FirnlineError:
            raise
        except Exception as error:
            raise ModelError(f"the model failed: {type(error).__name__}: {error}") from error
        if self._spend is not None:
            self._spend.record(key, completion.prompt_tokens + completion.completion_tokens)
        return prompts.parse_facts(completion.message.text)


async def replay(store: Store, chain: StatementChain, key: Key, person: str) -> None:
    """Make the facts of a model again, from what is recorded of its answers."""
    stored = await cards.recorded(store, key, person)
    called = await _called(store, key) if stored else ""
    for proposed in stored:
        await _apply(store, chain, key, person, called, proposed)


async def _apply(
    store: Store, chain: StatementChain, key: Key, person: str, called: str, proposed: ProposedFacts
) -> int:
    """Store what of the proposals is stated; returns how many statements these are."""
    seqs = sorted({seq for one in proposed.facts if type(seq := one.get("seq")) is int})
    span = proposed.first_seq, proposed.next_seq
    entries = await store.at(key, [seq for seq in seqs if span[0] <= seq < span[1]])
    size = sum(len(entry.message.text) for entry in entries)
    work = partial(accepted, key.conversation, person, called, entries, proposed.facts)
    said = await run_by_size(size, work)
    if said:
        await chain.add_statements(key, person, span, said)
    return len(said)


async def _called(store: Store, key: Key) -> str:
    """What the person is called in the conversation."""
    return called_in(await store.read(key, 0, None, limits.READ_PAGE)) or ""


def _parts(page: Sequence[Entry]) -> Iterator[list[Entry]]:
    """The entries in parts that fit a prompt."""
    part: list[Entry] = []
    size = 0
    for entry in page:
        chars = min(len(entry.message.text), limits.PROMPT_TEXT_CHARS_MAX)
        if part and size + chars > limits.FACTS_PROMPT_CHARS:
            yield part
            part, size = [], 0
        part.append(entry)
        size += chars
    if part:
        yield part
