"""Writing a digest: summary and important data, checked, with a receipt.

A long span is written in steps, each based on the one before, so that no prompt exceeds a model's
window. A summary that fails the checks is requested once more and then written offline.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from firnline.context.marks import is_put_in
from firnline.context.plan import Fold
from firnline.context.render import WORDLESS, Sizes, excerpt, render_digest, residue_line
from firnline.context.view import INJECTED, Skipped, drop_echo, span_of
from firnline.digest import OFFLINE, check, items, offline_extractor, offline_summarizer
from firnline.digest.evidence import check_items, said_since
from firnline.digest.receipt import continue_receipt, receipt, tally_skipped
from firnline.errors import FirnlineError, ModelError, outline
from firnline.language.prose import count_words
from firnline.log import limits
from firnline.log.entry import Digest, Entry, Key, Topic, live
from firnline.log.message import Message, result_ids
from firnline.log.text import plural
from firnline.log.tokens import TokenCounter
from firnline.models.guard import Breaker, Spend
from firnline.protocols import Brief, Extractor, Store, Summarizer, Written

logger: Final = logging.getLogger("firnline.digest")

_WRONG: Final = frozenset(["empty", "refusal", "unsupported", "echo", "not_shorter", "broken"])
_FAR_TOO_SHORT: Final = 8  # fewer than 1/8 of the requested words is no summary
_QUOTE_CHARS: Final = 40
_TARGET_SHARE: Final = 0.95  # a summary is shorter than what it covers


class DigestWriter:
    """Turns entries and earlier digests into the text, data and receipt of a new one."""

    def __init__(
        self,
        store: Store,
        *,
        summarizer: Summarizer,
        extractor: Extractor,
        count: TokenCounter,
        spend: Spend | None,
        breaker: Breaker,
    ) -> None:
        self._store = store
        self._summarizer, self._extractor = summarizer, extractor
        self._offline = offline_summarizer(count.text)
        self._by_rules = offline_extractor()
        self._count, self._sizes = count, Sizes(count)
        self._spend, self._breaker = spend, breaker

    async def write(self, key: Key, digest: Digest, job: DigestJob) -> Digest:
        """The digest with its text, data and receipt; entries are read a bounded part at a time.

        If the model fails midway, the digest covers the finished parts; the rest stays open.
        """
        since = job.fold.first_seq if job.fold.slides else 0
        state = await asyncio.to_thread(_Progress.of, job.takes, since=since)
        start, last = job.fresh_from, digest.last_seq
        while start <= last or not state.written:
            span = await self._read(key, start, last, digest.topic)
            window = await self._window(key, digest, job)
            fresh = span.entries
            brief = _brief(job, state, fresh, window.entries)
            try:
                summary, extracted = await asyncio.gather(
                    self._summarize(key, brief), self._extract(key, brief)
                )
            except ModelError:
                torn = not fresh or result_ids(fresh[0].message)  # empty once erased
                if not state.written or job.fold.slides or torn:
                    raise
                digest = replace(digest, last_seq=start - 1)
                break
            skipped = window.skipped if window.entries else span.skipped
            state = await self._advanced(state, brief, summary, extracted, skipped, job.fold)
            start = (fresh[-1].seq if fresh else last) + 1
        made = replace(
            digest,
            text=state.text,
            data=items.to_json(state.items, state.set_aside),
            receipt=_over_span(state.receipt, digest, await self._covered(key, digest)),
            made_by=state.made_by,
            calls=state.calls,
            spent_tokens=state.spent_tokens,
        )
        rendered = Message.user(render_digest(made))
        return replace(made, tokens=int(self._count.message(rendered)))

    async def _covered(self, key: Key, digest: Digest) -> int:
        """How many entries the digest covers."""
        if digest.topic is None:
            return digest.last_seq - digest.first_seq + 1
        members = await self._store.members(key, digest.topic, digest.first_seq)
        return sum(seq <= digest.last_seq for seq in members)

    async def _read(self, key: Key, first: int, last: int, topic: int | None) -> _Span:
        """Entries from `first` to `last`, as many as one step takes; long ones are shortened."""
        found: list[Entry] = []
        skipped: list[Skipped] = []
        tokens = 0
        while first <= last:
            page = await span_of(
                self._store, key, first, last, topic=topic, limit=limits.BACKLOG_PAGE
            )
            if not page:
                break
            for entry in live(page):
                size = min(entry.tokens, limits.FOLD_MESSAGE_TOKENS)
                if found and tokens + size > limits.FOLD_TOKENS_MAX:
                    return _Span(tuple(found), tuple(skipped))
                if is_put_in(entry.message):
                    skipped.append(Skipped(entry.seq, INJECTED))
                own, echoes = await drop_echo(self._store, key, entry)
                skipped += echoes
                found.append(self._bounded(own))
                tokens += size
            first = page[-1].seq + 1
        return _Span(tuple(found), tuple(skipped))

    def _bounded(self, entry: Entry) -> Entry:
        """The entry for a summarizer: shortened to what fits a prompt."""
        if entry.tokens <= limits.FOLD_MESSAGE_TOKENS:
            return entry
        most = limits.FOLD_MESSAGE_TOKENS
        short = excerpt(entry.message, most, self._sizes, entry, marker=WORDLESS)
        message = short.message if short else Message(entry.message.role, WORDLESS.strip())
        return replace(entry, message=message)

    async def _window(self, key: Key, digest: Digest, job: DigestJob) -> _Span:
        if not job.fold.slides:
            return _Span()
        span = await self._read(key, digest.first_seq, digest.last_seq, None)
        return span._replace(entries=_entries_to_digest(span.entries))

    async def _advanced(
        self,
        state: _Progress,
        brief: Brief,
        summary: Written,
        extracted: Written,
        skipped: Sequence[Skipped],
        fold: Fold,
    ) -> _Progress:
        """The state after a step: the summary, the important data and the receipt so far."""
        found, aside = await asyncio.to_thread(check_items, extracted.items, brief.entries)
        merged = await asyncio.to_thread(items.merge, state.items, found)
        paper = await self._receipt(state, brief, summary.text, merged, skipped)
        paper["residue"] = self._bounded_residue(paper["residue"], fold.residue_tokens)
        return _Progress(
            written=True,
            text=summary.text,
            items=merged,
            set_aside=(*state.set_aside, *aside)[-limits.SET_ASIDE_MAX :],
            receipt=paper,
            before=() if fold.slides else (paper,),
            made_by=summary.made_by,
            calls=state.calls + summary.calls + extracted.calls,
            spent_tokens=state.spent_tokens + summary.spent_tokens + extracted.spent_tokens,
        )

    async def _receipt(
        self,
        state: _Progress,
        brief: Brief,
        text: str,
        known: Sequence[items.Item],
        skipped: Sequence[Skipped],
    ) -> dict[str, Any]:
        """What is kept and lost so far; computed in a thread, because it takes a while."""
        entries = brief.window or brief.entries
        earlier = () if brief.window else brief.earlier
        before = () if brief.window else state.before
        paper = await asyncio.to_thread(receipt, entries, text, known, state.residue, earlier)
        last = entries[-1].seq if entries else brief.first_seq
        if skipped:
            paper["skipped"] = tally_skipped([item.row() for item in skipped])
        return continue_receipt(paper, before, brief.first_seq, last)

    def _bounded_residue(self, residue: Sequence[Any], tokens_max: int) -> list[Any]:
        """As many quotes as fit, best first."""
        kept: list[Any] = []
        for item in residue:
            size = int(self._count.text(f"{residue_line(item)}\n"))
            if size <= tokens_max:
                kept.append(item)
                tokens_max -= size
        return kept

    async def _extract(self, key: Key, brief: Brief) -> Written:
        """New important data; if the extractor fails, rules find it."""
        try:
            return await self._ask(key, self._extractor, brief)
        except ModelError as error:
            name = key.conversation
            logger.warning("important data of %s is extracted by rules: %s", name, outline(error))
            return await self._by_rules(brief)

    async def _summarize(self, key: Key, brief: Brief) -> Written:
        """A summary that passed the checks: at most two requests, then it is written offline."""
        try:
            first = await self._ask(key, self._summarizer, brief)
        except ModelError as error:
            if not error.retryable or not error.context.get("asked", True):
                raise
            logger.info("%s: summary requested again: %s", key.conversation, outline(error))
            first = await self._ask(key, self._summarizer, brief)
        self._breaker.succeeded()
        if first.made_by == OFFLINE:  # it quotes the conversation, so nothing has to be checked
            return self._cut(first, brief)
        covered = sum(entry.tokens for entry in brief.window or brief.entries)
        covered += sum(self._count.text(text) for text in brief.earlier)
        problems = check.find_problems(brief, first.text, covered, self._count.text)
        best = first
        if problems and (second := await self._correct(key, brief, problems)):
            remaining = check.find_problems(brief, second.text, covered, self._count.text)
            if _severity(remaining) <= _severity(problems):
                best, problems = second, remaining
            best = replace(
                best,
                calls=first.calls + second.calls,
                spent_tokens=first.spent_tokens + second.spent_tokens,
            )
        if _is_wrong(best.text, brief, problems):
            codes = ", ".join(sorted({problem.code for problem in problems})) or "too short"
            logger.warning("%s: %s; summarized offline", key.conversation, codes)
            offline = await self._offline(brief)
            best = replace(best, text=offline.text, made_by=offline.made_by)
        return self._cut(best, brief)

    def _cut(self, written: Written, brief: Brief) -> Written:
        text = check.cut_to(written.text, brief.words_max, brief.tokens_max, self._count.text)
        return replace(written, text=text or _placeholder(brief))

    async def _correct(
        self, key: Key, brief: Brief, problems: Sequence[check.SummaryProblem]
    ) -> Written | None:
        """Another summary, requested with the reason; None if that fails."""
        try:
            complaint = check.complaint(problems)
            corrected = await self._ask(key, self._summarizer, replace(brief, complaint=complaint))
        except ModelError as error:
            logger.warning("%s: summary not requested again: %s", key.conversation, outline(error))
            return None
        self._breaker.succeeded()
        return corrected

    async def _ask(self, key: Key, writer: Summarizer, brief: Brief) -> Written:
        """What a summarizer or extractor returns; every failure of it is a `ModelError`.

        The call is counted before it is made, however it ends.
        """
        refuse(key, self._spend.allow(key, 0) if self._spend else 0.0)
        try:
            returned = await writer(brief)
        except FirnlineError:
            raise
        except Exception as error:
            raise ModelError(
                f"the digest writer failed: {type(error).__name__}: {error}"
            ) from error
        written = Written(text=returned) if isinstance(returned, str) else returned
        if not isinstance(written, Written):
            raise ModelError(f"a digest writer returned {type(written).__name__}, not Written")
        if self._spend is not None:
            self._spend.record(key, written.spent_tokens, max(written.calls - 1, 0))
        return written


# -- parts of a digest in progress --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DigestJob:
    """What to write: the plan, the digests it replaces, and the allowed length.

    `topic` is the topic as it was when the digest was planned.
    """

    fold: Fold
    takes: tuple[Digest, ...]
    fresh_from: int
    words: tuple[int, int]
    tokens_max: int | None
    topic: Topic | None = None


class _Span(NamedTuple):
    """Entries to digest, and what of them is not digested."""

    entries: tuple[Entry, ...] = ()
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Progress:
    """What has been written so far."""

    written: bool = False
    text: str = ""
    items: tuple[items.Item, ...] = ()
    set_aside: tuple[Any, ...] = ()
    receipt: dict[str, Any]
    before: tuple[Mapping[str, Any], ...] = ()
    made_by: str = OFFLINE
    calls: int = 0
    spent_tokens: int = 0

    @classmethod
    def of(cls, takes: Sequence[Digest], *, since: int) -> _Progress:
        """What earlier digests hold of the entries from `since` on."""
        known: tuple[items.Item, ...] = ()
        aside: tuple[Any, ...] = ()
        residue: list[Any] = []
        for digest in takes:
            kept = items.from_json(digest.data)
            known = items.merge(known, said_since(kept, since) if since else kept)
            put_aside = digest.data.get("set_aside")
            aside += tuple(put_aside) if isinstance(put_aside, list) else ()
            left = digest.receipt.get("residue")
            residue += (
                [row for row in left if _is_since(row, since)] if isinstance(left, list) else []
            )
        papers = tuple(digest.receipt for digest in takes)
        return cls(items=known, set_aside=aside, receipt={"residue": residue}, before=papers)

    @property
    def residue(self) -> Sequence[Any]:
        return tuple(self.receipt.get("residue", ()))


def _is_since(row: Any, first_seq: int) -> bool:
    seq = row.get("seq") if isinstance(row, dict) else None
    return type(seq) is int and seq >= first_seq


def _brief(
    job: DigestJob, state: _Progress, fresh: Sequence[Entry], window: tuple[Entry, ...]
) -> Brief:
    """What a summarizer is asked for: the new entries, after what is written already."""
    told = _entries_to_digest(fresh)
    earlier = (state.text,) if state.written else tuple(digest.text for digest in job.takes)
    wanted = job.words[0], max(job.words[1], limits.DIGEST_WORDS_MIN)
    words_min, words_max = _target(wanted, (*told, *window), earlier)
    return Brief(
        entries=told,
        earlier=earlier,
        window=window,
        first_seq=job.fold.first_seq,
        words_min=words_min,
        words_max=words_max,
        tokens_max=job.tokens_max and max(job.tokens_max, limits.DIGEST_TOKENS_MIN),
        prompt=job.fold.prompt,
    )


def _entries_to_digest(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries to digest: without the leading system messages and without injected ones."""
    start = 0
    while start < len(entries) and _begins_log(entries[start], start):
        start += 1
    return tuple(entry for entry in entries[start:] if not is_put_in(entry.message))


def _begins_log(entry: Entry, at: int) -> bool:
    return entry.seq == at and entry.message.role in ("system", "developer")


def _target(
    words: tuple[int, int], entries: Sequence[Entry], earlier: Sequence[str]
) -> tuple[int, int]:
    """The target in words: as requested, but fewer than the source has."""
    there = sum(count_words(entry.message.text) for entry in entries)
    there += sum(map(count_words, earlier))
    most = max(min(words[1], int(there * _TARGET_SHARE)), 1)
    return words[0] if words[0] <= most else most * 3 // 4, most


def _over_span(paper: Mapping[str, Any], digest: Digest, entries: int) -> dict[str, Any]:
    """The receipt for the whole span of the digest."""
    span = [digest.first_seq, digest.last_seq]
    covers = {"first_seq": span[0], "last_seq": span[1], "entries": entries}
    return {**paper, "covers": {**paper.get("covers", {}), **covers}, "span": span}


def refuse(key: Key, wait: float) -> None:
    """Raise `ModelError` if no requests are allowed for `wait` more seconds."""
    if wait > 0:
        raise ModelError(
            f"{key.conversation}: no model requests allowed for another {wait:.0f} s",
            retry_after=wait,
            asked=False,
        )


def _is_wrong(text: str, brief: Brief, problems: Sequence[check.SummaryProblem]) -> bool:
    """Whether a summary is unusable, even if cut: for example if it is nearly empty."""
    if any(problem.code in _WRONG for problem in problems):
        return True
    return count_words(text) < brief.words_min // _FAR_TOO_SHORT


def _severity(problems: Sequence[check.SummaryProblem]) -> int:
    return sum(100 if problem.code in _WRONG else 1 for problem in problems)


def _placeholder(brief: Brief) -> str:
    """The text for messages without sentences, such as images: a digest is never empty."""
    said = [entry.message.text.strip() for entry in brief.window or brief.entries]
    first = next(filter(None, said), "")
    return first[:_QUOTE_CHARS] or f"({plural(len(said), 'message')} without text)"
