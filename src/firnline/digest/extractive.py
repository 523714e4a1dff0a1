"""A summary without a model: the most informative sentences, verbatim, in their order.

Every word gets a weight, by how often and how widely it is used. Sentences are chosen one by one:
the one whose new words weigh most for its length comes first, so that nothing is repeated. Names,
numbers, decisions and preferences count more; code and tool output less.

A sentence comes with those that it needs (`firnline.digest.replies`): an answer with its question,
and a question with its answer, both or neither. Suppositions are marked.

Lengths are in words between spaces; in Chinese and Japanese two characters count as one word.
"""

# ruff: noqa: RUF001 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import heapq
import math
import re
from bisect import bisect, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Final, NamedTuple

from firnline.context import marks
from firnline.context.render import SUPPOSED
from firnline.digest import replies, rules
from firnline.digest.replies import SPEAKERS
from firnline.language.lexicon import COMMON
from firnline.language.prose import (
    CJK,
    ELLIPSIS,
    Count,
    cut_to,
    cut_words,
    fold_text,
    half_words,
    sentences,
)
from firnline.language.statements import speaker as statement
from firnline.log import limits
from firnline.log.entry import Entry
from firnline.log.message import Message
from firnline.log.regex import regex
from firnline.protocols import Brief

__all__ = ["sentences", "source_words", "speaker", "summarize"]

_LABELLED: Final = regex(r"([@+~]?[^\W_][^:\n]{0,39}): (.*)", re.DOTALL)
_LABEL_CHARS_MAX: Final = 40
_LABEL_WORDS_MAX: Final = 4
_CODE: Final = regex(r"```[^\n]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_TERM: Final = regex(rf"[{CJK}]{{2}}|[^\W_{CJK}]+")
_HARD: Final = regex(r"[A-ZÀ-ÞА-Я0-9][\w.,:/-]*")
_POINTED: Final = (".", "!", "?", "…", ":", ";", ",", "。", "！", "？", "”", '"', ")", "|")
_CODE_WORDS: Final = 12
_TOOL_WORDS: Final = 30
_ROLE_WEIGHTS: Final = {"User": 1.25, "Assistant": 0.75, "Tool": 0.5, "System": 0.7, "": 1.6}
_NO_USERS: Final = ("Assistant", "Tool", "System")
_ANSWER: Final = 1.4
_NOTED_HALVES: Final = 4
_WISH: Final = 1.3
_LITTLE: Final = 0.6
_OTHERS_SHARE: Final = 6
_OTHERS_WORDS: Final = 12
_NEAR: Final = 6
_ENOUGH: Final = 3
_SHORTEST: Final = 4


class _Sentence(NamedTuple):
    """A candidate sentence: its speaker, its text, its half words and its weight.

    `place` is its number in the source, and `with_` are those of the sentences that come with it.
    """

    speaker: str
    text: str
    halves: int
    weight: float
    place: int = -1
    with_: tuple[int, ...] = ()


def summarize(brief: Brief, count: Count | None = None) -> str:
    """The summary that the brief requests, made of sentences of its source.

    Between `words_min` and `words_max` words if the source has that many, and at most
    `tokens_max` tokens by `count`. A source shorter than `words_min` is shortened, too. Of a window
    only the entries from `first_seq` on are read. The same brief gives the same text.
    """
    texts = list(_texts(brief))
    total = sum(half_words(text) for _, text, _ in texts) // 2
    if not total:
        return ""
    least = brief.words_min if total >= brief.words_min else 0
    pool = _pool(texts, max(least, 1))
    chosen = _choose(pool, least, brief.words_max, _goal(brief, total))
    text = _format_summary(pool, chosen)
    return cut_to(text, max(brief.words_max, 0), brief.tokens_max, count)


def source_words(brief: Brief) -> int:
    """The number of words of the brief's source."""
    return sum(half_words(text) for _, text, _ in _texts(brief)) // 2


def _goal(brief: Brief, total: int) -> int:
    """The number of words to aim for: few if the source is short, so that it gets shorter."""
    if total < brief.words_min:
        return max(1, total * 3 // 5)
    wanted = (brief.words_min + brief.words_max) // 2 if brief.words_min else brief.words_max
    if total >= _ENOUGH * wanted:
        return wanted
    return max(brief.words_min, min(wanted, total * 3 // 5))


# -- the source -------------------------------------------------------------------------------


def _texts(brief: Brief) -> Iterator[tuple[str, str, bool]]:
    """Speaker and text of the whole source, oldest first; True for earlier summaries."""
    for earlier in () if brief.window else brief.earlier:
        for line in earlier.splitlines():
            yield *_split_label(line), True
    for entry in _entries(brief):
        yield speaker(entry.message), marks.said(entry.message), False


def speaker(message: Message) -> str:
    """The speaker's label: a user's name, if there is one that is not ambiguous."""
    label = SPEAKERS.get(message.role, "System")
    if message.role != "user" or not message.name:
        return label
    words = message.name.replace(":", " ").split()[:_LABEL_WORDS_MAX]
    name = " ".join(words)[:_LABEL_CHARS_MAX].strip()
    mistaken = name.casefold() in map(str.casefold, _ROLE_WEIGHTS)
    return label if mistaken or _split_label(f"{name}: x") != (name, "x") else name


def _split_label(line: str) -> tuple[str, str]:
    """Speaker and text of a summary's line; no speaker if it does not start with a label.

    Text that only looks like a label does no harm: it is written unchanged.
    """
    match = _LABELLED.match(line)
    words = match[1].split(" ") if match else []
    return (match[1], match[2]) if match and len(words) <= _LABEL_WORDS_MAX else ("", line)


def _entries(brief: Brief) -> Iterable[Entry]:
    if not brief.window:
        return brief.entries
    return [entry for entry in brief.window if entry.seq >= brief.first_seq]


def _pool(texts: Sequence[tuple[str, str, bool]], least: int) -> list[_Sentence]:
    """The candidate sentences, with at least `least` words if the source has them.

    Code and tool output are shortened and repetitions dropped, unless too little would remain.
    """
    pool: list[_Sentence] = []
    for short, once in ((True, True), (False, True), (False, False)):
        pool = _sentences(texts, short=short, once=once)
        if sum(sentence.halves for sentence in pool) >= 2 * least:
            break
    return _limit_pool(pool, least)


def _sentences(
    texts: Sequence[tuple[str, str, bool]], *, short: bool, once: bool
) -> list[_Sentence]:
    """The sentences of the source; with `once`, a repetition only if others need it."""
    pieces = [(who, list(_pieces(who, text, short=short)), old) for who, text, old in texts]
    source = replies.linked(pieces)
    parts = [replies.together(source, place) for place in range(len(source))]
    needed = {place for part in parts if len(part) > 1 for place in part}
    answers = {said.answer for said in source}
    seen: dict[str, int] = {}
    same: dict[int, int] = {}  # what was just said, in the same words; an answer is one of its own
    found = []
    for place, said in enumerate(source):
        key = fold_text(said.text).rstrip(" .!?…")
        known = once and (not key or key in seen)
        if known and place not in answers and place - seen.get(key, place) <= _NEAR:
            same[place] = seen.get(key, place)
        if known and (place not in needed or place in same):
            continue
        seen[key] = place
        weight = 0.0 if known or not parts[place] else _weight(said)
        with_ = tuple(same.get(one, one) for one in parts[place] if one != place)
        halves = half_words(said.text)
        found.append(_Sentence(said.speaker, said.text, halves, weight, place, with_))
    return [sentence for sentence in found if sentence.halves]


def _weight(said: replies.Said) -> float:
    """The weight of a sentence apart from its words."""
    weight = _base_weight(said.speaker, said.text) * (1.5 if said.earlier else 1.0)
    if said.speaker != SPEAKERS["assistant"]:
        return weight
    if said.needs < 0 and half_words(said.text) <= _NOTED_HALVES:
        return 0.0  # "Noted."
    return weight * (_ANSWER if said.needs >= 0 else 1.0)


def _pieces(speaker: str, text: str, *, short: bool) -> Iterator[str]:
    """The sentences of one message; code becomes its first line, tool output its first words."""
    if not short:
        yield from map(_one_line, sentences(text))
        return
    if speaker == "Tool":
        text = cut_words(text[: limits.SENTENCE_CHARS_MAX], _TOOL_WORDS)
    if "```" in text:
        text = _CODE.sub(lambda match: f"\n\n{_first_line(match[1])}\n\n", text)
    yield from map(_one_line, sentences(text))


def _first_line(code: str) -> str:
    lines = [line.strip() for line in code.strip().splitlines() if line.strip()]
    if not lines:
        return ""
    line = cut_words(lines[0], _CODE_WORDS)
    return line if len(lines) == 1 or line.endswith(ELLIPSIS) else line + ELLIPSIS


def _one_line(sentence: str) -> str:
    return " ".join(sentence.split())


def _base_weight(speaker: str, text: str) -> float:
    """The weight of a sentence apart from its words."""
    weight = _ROLE_WEIGHTS.get(speaker, _ROLE_WEIGHTS["User"])
    cues = rules.cues(text)
    weight *= 1.6 if cues.decision else 1.0
    weight *= 1.5 if cues.preference or cues.marked else 1.0
    weight *= 0.8 if cues.question else 1.0
    weight *= _WISH if speaker not in _NO_USERS and replies.asks_for(text) else 1.0
    little = statement.is_comment(text) or statement.is_said_by_others(text)
    weight *= _LITTLE if little or statement.points_back(text) else 1.0
    weight *= _LITTLE if text.startswith(SUPPOSED) else 1.0
    return weight * (1.0 + 0.15 * min(len(_HARD.findall(text)), 4))


def _limit_pool(pool: list[_Sentence], least: int) -> list[_Sentence]:
    """The heaviest sentences and the questions they answer, in their order, to bound the work."""
    if len(pool) <= limits.SENTENCES_MAX:
        return pool
    order = sorted(range(len(pool)), key=lambda i: (-pool[i].weight, i))
    kept = order[: limits.SENTENCES_MAX]
    halves = sum(pool[i].halves for i in kept)
    for i in order[limits.SENTENCES_MAX :]:
        if halves >= 2 * least:
            break
        kept.append(i)
        halves += pool[i].halves
    needed = {place for i in kept for place in pool[i].with_}
    others = (i for i, sentence in enumerate(pool) if sentence.place in needed)
    return [pool[i] for i in sorted({*kept, *others})]


# -- the choice -------------------------------------------------------------------------------


def _choose(pool: list[_Sentence], least: int, most: int, goal: int) -> dict[int, str]:
    """The chosen sentences by their position, with their text: some may be cut to fit.

    A sentence is chosen with those that come with it.
    """
    choice = _Choice(pool, most)
    left: list[int] = []
    for i in _rank_sentences(pool):
        if choice.halves >= 2 * goal:
            return choice.texts
        if not (pool[i].weight and choice.take(i)):
            left.append(i)
    choice.fill(left, least)
    return choice.texts


class _Choice:
    """The sentences chosen so far, in at most `most` words."""

    def __init__(self, pool: Sequence[_Sentence], most: int) -> None:
        self.texts: dict[int, str] = {}
        self.halves = 0
        self._pool, self._most = pool, most
        self._places = {sentence.place: i for i, sentence in enumerate(pool)}
        self._taken: list[int] = []
        self._others_words = max(most // _OTHERS_SHARE, _OTHERS_WORDS)

    def others(self, i: int) -> list[int]:
        """The sentences that come with one and are not chosen yet."""
        found = (self._places.get(place, -1) for place in self._pool[i].with_)
        return [other for other in found if other >= 0 and other not in self.texts]

    def take(self, i: int) -> bool:
        """Choose a sentence with those that come with it; False if they do not fit."""
        texts = self._with_others(i)
        texts[i] = self._pool[i].text
        return self._add(texts)

    def fill(self, left: Sequence[int], least: int) -> None:
        """Choose from sentences that are too long or say little, until there are `least` words.

        Of the best one there is at least the beginning.
        """
        spoken = [i for i in left if self._pool[i].weight]
        for shortest, found in ((_SHORTEST, spoken), (_SHORTEST, left), (1, left)):
            for i in found:
                if self.halves >= min(2 * max(least, 1), 2 * self._most - 1):
                    return
                self._cut(i, shortest)
        chains = (sorted((*self.others(i), i)) for i in left)
        for i in chain.from_iterable(chains):
            if self.halves < 2 * max(least, 1):
                self._cut_alone(i)

    def _cut(self, i: int, shortest: int) -> None:
        """Choose as much of a sentence as fits, if that is at least `shortest` words."""
        texts = self._with_others(i)
        room = self._room({**texts, i: ""})
        if room >= min(shortest, (self._pool[i].halves + 1) // 2):
            self._add({**texts, i: cut_words(self._pool[i].text, room)})

    def _cut_alone(self, i: int) -> None:
        """Choose as much of a sentence as fits, without those that come with it."""
        room = self._room({i: ""})
        if i not in self.texts and room > 0:
            self._add({i: cut_words(self._pool[i].text, room)})

    def _with_others(self, i: int) -> dict[int, str]:
        """What comes with a sentence; long ones are cut."""
        return {j: cut_words(self._pool[j].text, self._others_words) for j in self.others(i)}

    def _room(self, texts: Mapping[int, str]) -> int:
        """The words that are left with these texts."""
        return (2 * self._most - self.halves - self._cost(texts)) // 2

    def _add(self, texts: Mapping[int, str]) -> bool:
        cost = self._cost(texts)
        if self.halves + cost > 2 * self._most:
            return False
        for i in texts.keys() - self.texts.keys():
            insort(self._taken, i)
        self.texts.update(texts)
        self.halves += cost
        return True

    def _cost(self, texts: Mapping[int, str]) -> int:
        """The half words that these texts add, with their labels."""
        total = 0
        taken = list(self._taken)
        for i, text in texts.items():
            total += half_words(text) - half_words(self.texts.get(i, ""))
            total += _label_cost(self._pool, taken, i)
            insort(taken, i)
        return total


def _rank_sentences(pool: list[_Sentence]) -> Iterator[int]:
    """Positions in the order in which the sentences add most to those before them.

    What a sentence adds only shrinks as others are chosen, so a stale value is an upper bound and
    only the top of the heap is computed again.
    """
    terms = [frozenset(_terms(sentence.text)) for sentence in pool]
    weights = _weights(terms)
    said: set[str] = set()

    def adds(i: int) -> float:
        new = math.fsum(weights[term] for term in terms[i] if term not in said)
        old = 0.05 * len(terms[i])
        length = max(pool[i].halves / 2, _SHORTEST)
        return pool[i].weight * (new + old) / math.pow(length, 0.7)

    # Of equals, the newest comes first.
    heap = [(-adds(i), -i) for i in range(len(pool))]
    heapq.heapify(heap)
    while heap:
        i = -heapq.heappop(heap)[1]
        now = -adds(i)
        if heap and (now, -i) > heap[0]:
            heapq.heappush(heap, (now, -i))
            continue
        said |= terms[i]
        yield i


def _terms(text: str) -> Iterator[str]:
    for term in _TERM.findall(text.casefold()):
        if term not in COMMON:
            yield term if len(term) < 5 or not term.isascii() else term.rstrip("s")  # noqa: PLR2004


def _weights(terms: Sequence[frozenset[str]]) -> dict[str, float]:
    """Weights of words: highest for those that are used often, but not everywhere."""
    spread = Counter(term for group in terms for term in group)
    size = len(terms)
    return {term: math.log1p(number) * math.log1p(size / number) for term, number in spread.items()}


# -- the text ---------------------------------------------------------------------------------


def _label_cost(pool: Sequence[_Sentence], taken: Sequence[int], i: int) -> int:
    """The half words of labels that the text needs in addition if sentence `i` is chosen."""
    place = bisect(taken, i)
    before = taken[place - 1] if place else None
    after = taken[place] if place < len(taken) else None
    return _label(pool, before, i) + _label(pool, i, after) - _label(pool, before, after)


def _label(pool: Sequence[_Sentence], before: int | None, i: int | None) -> int:
    if i is None or not pool[i].speaker:
        return 0
    same = before is not None and pool[before].speaker == pool[i].speaker
    return 0 if same else half_words(f"{pool[i].speaker}:")


def _format_summary(pool: Sequence[_Sentence], chosen: dict[int, str]) -> str:
    """The chosen sentences in their order, a line for each turn of a speaker."""
    lines: list[str] = []
    speaker: str | None = None
    for before, i in pairwise([-1, *sorted(chosen)]):
        text = chosen[i]
        if pool[i].speaker != speaker:
            speaker = pool[i].speaker
            lines.append(f"{speaker}: {text}" if speaker else text)
        else:
            lines[-1] = _join_sentences(lines[-1], text, next_to=i == before + 1)
    return "\n".join(lines)


def _join_sentences(line: str, text: str, *, next_to: bool) -> str:
    """The line followed by another sentence of its speaker.

    A colon announces only the sentence that followed it in the source.
    """
    if line.endswith((":", "：")) and not next_to:
        return f"{line}{ELLIPSIS} {text}"
    ends = line.endswith(_POINTED) or "://" in line.rsplit(maxsplit=1)[-1]
    return f"{line} {text}" if ends else f"{line}; {text}"
