"""Ranks old entries for a question by a weighted sum of features. Pure.

words         the question's words in the entry, as in bm25, in its best passage
around        how many of them are in the entry or up to four entries away; nearer counts more
session       how many of them are anywhere in the session that the entry is part of
answer        words of the previous entry that this one lacks: a question and its answer
before        how many are in the entry two before
speaker       the question names the speaker
date          its date is one that the question names, or a few days later
asks          it is itself a question
time, number  it has one, and the question asks for one
meaning       the cosine of the sentence vectors; `meaning_near` that of the neighboring entries
tokens        the cosines of the question's tokens and the nearest token of the entry, by weight:
              of the best entries, if the embedder has a vector for each token

A match need not be exact: a word with the same prefix or concept counts in part. Distance is
measured in entries or in words, whichever is larger, so a long message separates its neighbors as
much as several short ones. No feature is relative to the best of the pool, so that scores of
different conversations can be compared.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from operator import itemgetter
from statistics import fmean
from typing import Final, NamedTuple, TypeAlias

from firnline.language.stems import stem
from firnline.language.terms import index_terms, searchable_text
from firnline.log.entry import Entry
from firnline.log.message import Message
from firnline.log.regex import regex
from firnline.recall import weights
from firnline.recall.features import Passage, TextFeatures, read_features
from firnline.recall.query import DateRange, QueryTerm, RecallQuery, in_year

REACH: Final = 4
"""Entries on each side whose words count for an entry."""

_FADE: Final = 0.8  # the weight of a word in a neighboring entry
_FADES: Final = tuple(_FADE**steps for steps in range(REACH + 1))
_SAME_BEGINNING: Final = 0.6
_SAME_CONCEPT: Final = 0.35
_OFTEN: Final = 0.9  # k1 of bm25: how quickly repeated words stop counting
_LONG: Final = 0.4  # b of bm25: the penalty for long passages
_USUAL_WORDS: Final = 30.0
_SESSION_GAP: Final = timedelta(hours=4)
_SESSION_HOLE: Final = 12
_SESSION_WORDS: Final = 1_200
_LATER_DAYS: Final = 7.0  # the decay after a named day; before it twice as fast
_OWN_ROLE: Final = 0.4  # "I" means the user, but less reliably than a name
_PREFIX: Final = regex(r"\s*([^\W\d_][\w.'-]{0,30}(?: [^\W\d_][\w.'-]{0,30}){0,2}): ")

TermHits: TypeAlias = dict[int, float]  # by the number of the question's term, how well it matches
_NONE: Final[TermHits] = {}


class RankedEntry(NamedTuple):
    """An entry and its score, higher is better; `parts` are the summands by feature."""

    seq: int
    score: float
    parts: Mapping[str, float]


class _RankedTurn(NamedTuple):
    """An entry with its features."""

    seq: int
    message: Message
    speaker: frozenset[str]
    reading: TextFeatures
    session: int
    middle: float
    """Its middle, as a position in words."""


def rank(
    query: RecallQuery,
    pool: Mapping[int, Entry],
    matches: Mapping[int, float],
    near: Mapping[int, float] | None = None,
    floor: float | None = None,
) -> list[RankedEntry]:
    """Every entry of the pool, best first.

    The pool holds entries of one conversation: the found ones and their neighbors. `matches` are
    scores of the search index (higher is better); they break ties, and then the newest comes first.
    `near` are the cosines of the nearest entries, by sequence number. If several conversations are
    searched, `floor` is the smallest cosine found in any of them, so that scores can be compared
    even if a conversation has none of the nearest entries.
    """
    return order(features(query, pool, near, floor), pool, matches)


def order(
    found: Mapping[str, Mapping[int, float]], pool: Collection[int], matches: Mapping[int, float]
) -> list[RankedEntry]:
    """Every entry of the pool by its features, best first."""
    table = weights.of(found)
    ranked = [_score_entry(seq, found, table) for seq in pool]
    ranked.sort(key=lambda item: (-item.score, -matches.get(item.seq, 0.0), -item.seq))
    return ranked


def features(
    query: RecallQuery,
    pool: Mapping[int, Entry],
    near: Mapping[int, float] | None = None,
    floor: float | None = None,
) -> dict[str, Mapping[int, float]]:
    """The features of every entry of the pool, by name and sequence number; absent means 0."""
    turns = _turns(pool)
    found: dict[str, Mapping[int, float]] = {
        **_word_features(query, turns),
        **_other_features(query, turns),
    }
    if near or floor is not None:
        found |= _meaning_scores(near or {}, floor, turns)
    return found


def _score_entry(
    seq: int, found: Mapping[str, Mapping[int, float]], table: Mapping[str, float]
) -> RankedEntry:
    parts = {}
    for name, values in found.items():
        value = values.get(seq)
        if value:
            parts[name] = value * table[name]
    return RankedEntry(seq, math.fsum(parts.values()), parts)


# -- speakers and sessions --------------------------------------------------------------------


def _turns(pool: Mapping[int, Entry]) -> list[_RankedTurn]:
    """The entries in order, each with its speaker and session."""
    entries = [pool[seq] for seq in sorted(pool)]
    texts = [searchable_text(entry.message) for entry in entries]
    prefixed = _have_speaker_prefix(texts)
    turns: list[_RankedTurn] = []
    session, session_start, position = 0, 0.0, 0.0
    for entry, text in zip(entries, texts, strict=True):
        name, words = _split_speaker(entry.message, text, prefixed=prefixed)
        reading = read_features(words)
        if turns:
            position += _USUAL_WORDS * (entry.seq - turns[-1].seq - 1)  # entries not in the pool
            if position - session_start > _SESSION_WORDS or _starts_session(turns[-1], entry):
                session, session_start = session + 1, position
        long = sum(passage.words for passage in reading.passages)
        middle = position + long / 2
        turns.append(_RankedTurn(entry.seq, entry.message, _names(name), reading, session, middle))
        position += long
    return turns


def _split_speaker(message: Message, text: str, *, prefixed: bool) -> tuple[str | None, str]:
    """The speaker's name and the text."""
    found = _PREFIX.match(text) if prefixed and not message.name else None
    return (found[1], text[found.end() :]) if found else (message.name, text)


def _have_speaker_prefix(texts: Sequence[str]) -> bool:
    """Whether most texts start with their speaker; single colons can mean something else."""
    found = Counter(match[1] for match in map(_PREFIX.match, texts) if match)
    return 2 * sum(many for many in found.values() if many > 1) > len(texts)


@lru_cache(maxsize=1_024)
def _names(name: str | None) -> frozenset[str]:
    return frozenset(map(stem, index_terms(name))) if name else frozenset()


def _starts_session(before: _RankedTurn, entry: Entry) -> bool:
    """Whether a session starts: after a pause, or after a gap in the pool."""
    if entry.seq - before.seq > _SESSION_HOLE:
        return True
    earlier, later = before.message.created_at, entry.message.created_at
    return earlier is not None and later is not None and later - earlier > _SESSION_GAP


# -- words ------------------------------------------------------------------------------------


def _word_features(query: RecallQuery, turns: Sequence[_RankedTurn]) -> dict[str, dict[int, float]]:
    """The features that come from the question's words."""
    terms = _terms(query, turns)
    words: dict[int, float] = {}
    hits: dict[int, TermHits] = {}
    for turn in turns:
        found = [match(terms, passage) for passage in turn.reading.passages]
        best = max(found, key=itemgetter(0), default=None)
        if best and best[1]:
            words[turn.seq], hits[turn.seq] = best
    share = [term.weight for term in terms]
    coverage = {seq: sum(share[n] * hit for n, hit in there.items()) for seq, there in hits.items()}
    return {
        "words": words,
        "around": _nearby_scores(turns, hits, share),
        "session": _session_scores(turns, hits, share),
        "answer": _answer_scores(turns, hits, share),
        "before": {
            turn.seq: coverage[before.seq] * _fade(before, turn) / _FADE**2
            for before, turn in _turn_pairs(turns, 2)
            if before.seq in coverage
        },
    }


def _turn_pairs(
    turns: Sequence[_RankedTurn], steps: int
) -> Iterator[tuple[_RankedTurn, _RankedTurn]]:
    """Pairs of entries `steps` apart that are both in the pool."""
    here = {turn.seq: turn for turn in turns}
    return ((turn, here[turn.seq + steps]) for turn in turns if turn.seq + steps in here)


def _fade(one: _RankedTurn, other: _RankedTurn) -> float:
    """The weight of a word in a later entry: less with every entry, or page, between them."""
    entries, pages = other.seq - one.seq, (other.middle - one.middle) / _USUAL_WORDS
    return _FADES[entries] if pages <= entries else float(_FADE**pages)


def _terms(query: RecallQuery, turns: Sequence[_RankedTurn]) -> list[QueryTerm]:
    """The question's words with weights that add up to 1.

    Names of speakers are left out: they are in every greeting. A word that is rare in general but
    frequent in this conversation loses weight.
    """
    speakers = frozenset[str]().union(*(turn.speaker for turn in turns))
    terms = [term for term in query.terms if term.stem not in speakers] or list(query.terms)
    terms = [term._replace(weight=term.weight * _rarity(term, turns)) for term in terms]
    whole = math.fsum(term.weight for term in terms)
    return [term._replace(weight=term.weight / whole) for term in terms] if whole else []


def _rarity(term: QueryTerm, turns: Sequence[_RankedTurn]) -> float:
    """1 for a word of a single entry, almost 0 for one that all entries have."""
    having = 0
    for turn in turns:
        for passage in turn.reading.passages:
            if term.stem in passage.counts:
                having += 1
                break
    return 1 - math.log(having) / math.log(len(turns) + 1) if having > 1 else 1.0


def match(terms: Sequence[QueryTerm], passage: Passage) -> tuple[float, TermHits]:
    """How well a passage matches, and how well it matches each term."""
    score, hits = 0.0, TermHits()
    counts, kin = passage.counts, passage.kin
    slow = _OFTEN * (1 - _LONG + _LONG * passage.words / _USUAL_WORDS)
    for number, (word, weight, beginning, concepts) in enumerate(terms):
        if word in counts:
            often, hit = float(counts[word]), 1.0
        elif beginning and beginning in kin:
            often = hit = _SAME_BEGINNING
        elif concepts and not kin.isdisjoint(concepts):
            often = hit = _SAME_CONCEPT
        else:
            continue
        score += weight * often * (1 + _OFTEN) / (often + slow)
        hits[number] = hit
    return score, hits


def _nearby_scores(
    turns: Sequence[_RankedTurn], hits: Mapping[int, TermHits], share: Sequence[float]
) -> dict[int, float]:
    """What matches in an entry or near it, each term where it counts most."""
    best = {turn.seq: dict(hits.get(turn.seq, _NONE)) for turn in turns}
    for place, turn in enumerate(turns):
        mine = hits.get(turn.seq, _NONE)
        for other in turns[place + 1 : place + 1 + REACH]:
            if other.seq - turn.seq > REACH:
                break
            its = hits.get(other.seq, _NONE)
            if mine or its:
                fade = _fade(turn, other)
                _spread(mine, fade, best[other.seq])
                _spread(its, fade, best[turn.seq])
    return {seq: sum([share[n] * hit for n, hit in near.items()]) for seq, near in best.items()}


def _spread(hits: TermHits, fade: float, near: TermHits) -> None:
    for number, hit in hits.items():
        if hit * fade > near.get(number, 0.0):
            near[number] = hit * fade


def _session_scores(
    turns: Sequence[_RankedTurn], hits: Mapping[int, TermHits], share: Sequence[float]
) -> dict[int, float]:
    """What matches anywhere in the session of an entry."""
    best: defaultdict[int, TermHits] = defaultdict(dict)
    for turn in turns:
        there = best[turn.session]
        for number, hit in hits.get(turn.seq, _NONE).items():
            if hit > there.get(number, 0.0):
                there[number] = hit
    met = {
        session: sum(share[n] * hit for n, hit in all_.items()) for session, all_ in best.items()
    }
    return {turn.seq: met[turn.session] for turn in turns}


def _answer_scores(
    turns: Sequence[_RankedTurn], hits: Mapping[int, TermHits], share: Sequence[float]
) -> dict[int, float]:
    """What only the previous entry matches, or matches better."""
    found: dict[int, float] = {}
    for before, turn in _turn_pairs(turns, 1):
        there, here = hits.get(before.seq), hits.get(turn.seq, _NONE)
        if there:
            more = [(n, hit - here.get(n, 0.0)) for n, hit in there.items()]
            met = sum([share[n] * hit for n, hit in more if hit > 0])
            found[turn.seq] = met * _fade(before, turn) / _FADE
    return found


# -- speaker, date and kind -------------------------------------------------------------------


def _other_features(
    query: RecallQuery, turns: Sequence[_RankedTurn]
) -> dict[str, dict[int, float]]:
    """The features that come from the speaker, the date and the kind of sentence."""
    return {
        "speaker": _speaker_scores(query, turns),
        "date": _date_scores(query.dates, turns),
        "asks": {turn.seq: 1.0 for turn in turns if turn.reading.asks},
        "time": {turn.seq: 1.0 for turn in turns if query.when and turn.reading.timely},
        "number": {turn.seq: 1.0 for turn in turns if query.many and turn.reading.counts},
    }


def _speaker_scores(query: RecallQuery, turns: Sequence[_RankedTurn]) -> dict[int, float]:
    """Entries of the speakers that the question names; empty if it names all."""
    named = {turn.seq: 1.0 for turn in turns if not query.words.isdisjoint(turn.speaker)}
    if not named and query.role:
        named = {
            turn.seq: _OWN_ROLE
            for turn in turns
            if not turn.speaker and turn.message.role == query.role
        }
    return named if len(named) < len(turns) else {}


def _date_scores(dates: Sequence[DateRange], turns: Sequence[_RankedTurn]) -> dict[int, float]:
    """How well the day of an entry fits the question's days."""
    fits: dict[date, float] = {}
    dated: dict[int, float] = {}
    if not dates:
        return dated
    for turn in turns:
        at = turn.message.created_at
        if at is not None:
            day = at.date()
            if day not in fits:
                fits[day] = max(_date_fit(days, day) for days in dates)
            dated[turn.seq] = fits[day]
    return dated


def _date_fit(days: DateRange, day: date) -> float:
    """1 on one of the days, decreasing after them, and faster before them."""
    years = range(max(day.year - 1, 1), min(day.year + 2, 10_000))
    ranges = [in_year(days, year) for year in years] if days.yearly else [days]
    off = min(max((day - one.last).days, 2 * (one.first - day).days, 0) for one in ranges)
    return days.weight * math.exp(-off / _LATER_DAYS)


# -- vectors ----------------------------------------------------------------------------------


def _meaning_scores(
    cosines: Mapping[int, float], floor: float | None, turns: Sequence[_RankedTurn]
) -> dict[str, dict[int, float]]:
    """An entry's cosine and the mean of its neighbors'.

    Only the nearest are known. All others are further away, so the smallest known cosine is assumed
    for them.
    """
    least = min(cosines.values()) if floor is None else floor
    own = {turn.seq: cosines.get(turn.seq, least) for turn in turns}
    neighbors = dict.fromkeys(own, least)
    for before, turn in _turn_pairs(turns, 1):
        half = _fade(before, turn) / _FADE / 2
        neighbors[turn.seq] += half * (own[before.seq] - least)
        neighbors[before.seq] += half * (own[turn.seq] - least)
    return {"meaning": own, "meaning_near": neighbors}


def token_feature(
    scores: Mapping[int, float], compared: Collection[int], pool: Collection[int]
) -> dict[int, float]:
    """The feature of all entries of the pool, given the scores of those that were `compared`.

    One that has no codes yet is taken for an average one, and the others for the worst.
    """
    usual, least = fmean(scores.values()), min(scores.values())
    asked = set(compared)
    return {seq: scores.get(seq, usual if seq in asked else least) for seq in pool}
