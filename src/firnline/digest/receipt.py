"""The receipt of a digest: what it kept and what it lost. Made by code, without a model.

Important facts that are lost are carried along verbatim, as residue, so that a summary can omit a
number from its text but not from the memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from firnline.context import marks
from firnline.context.render import SUPPOSED
from firnline.digest import claims, extractive, replies, rules
from firnline.digest.items import Item
from firnline.language import prose
from firnline.language.lexicon import COMMON
from firnline.language.names import fold_name
from firnline.log import fence, limits
from firnline.log.entry import Entry
from firnline.log.message import Message, encode_json
from firnline.log.regex import regex
from firnline.log.text import Json, plural

KINDS: Final = ("names", "numbers", "dates", "urls", "decisions", "preferences", "questions")
"""The kinds of facts that a receipt counts."""

_PLURAL: Final = {"name": "names", "number": "numbers", "date": "dates", "url": "urls"}
_CARRIED_KINDS: Final = ("decisions", "preferences", "questions", "urls", "dates", "numbers")
"""The kinds that are carried along if they are lost, the most valuable first."""
_SAME_SHARE: Final = 0.7
_BEFORE_MAX: Final = 2
_BEFORE_WORDS: Final = 16
_BEFORE_CHARS: Final = 200
"""What a quote answers: at most so many sentences, and of each so many words and characters."""
_AROUND_CHARS: Final = 500  # more than all of them
_SHOWN: Final = ("speaker", "answers", "supposed")
_NO_SEQ: Final = -1
_FAR: Final = regex(f"[{prose.CJK}]")
_PAIR: Final = regex(f"(?=([{prose.CJK}]{{2}}))")


class _Thing(NamedTuple):
    """A fact in the span: its kind, its value, its entry and its quote.

    `answers` is what was said before, if the quote says little without it. `asked`: it is in a
    question that is answered, and so no statement.
    """

    kind: str
    value: str
    seq: int
    quote: str
    claim: claims.TextClaim | None = None
    speaker: str = ""
    answers: str = ""
    asked: bool = False
    supposed: bool = False


class _Memory(NamedTuple):
    """The content of a digest: its facts, and pairs of characters of unspaced scripts."""

    facts: claims.SourceFacts
    pairs: frozenset[str]


def receipt(
    entries: Sequence[Entry],
    text: str,
    items: Iterable[Item],
    carried: Iterable[Mapping[str, Json]] = (),
    earlier: Iterable[str] = (),
) -> dict[str, Json]:
    """What a digest with this text and these items keeps and loses of the entries.

    ``covers`` is the span; ``kinds`` has for each kind the number of facts, how many are kept, and
    which are lost; ``residue`` has quotes of important lost facts with their sequence numbers and
    speakers, what they answer, and whether they are supposed, the most valuable first. ``skipped``,
    if there is any, has what is not digested and why. `carried` is the residue of the previous
    digest: what is still not in the text is carried on. `earlier` are the texts of digests that
    this one continues: their facts that are missing here are lost, too. In code only URLs count.
    All lists are bounded; the counts are exact.
    """
    kept_items = [item for item in items if item.superseded_by is None]
    memory_text = "\n\n".join([text, *(_item_text(item) for item in kept_items)])
    memory = _Memory(claims.source_facts([memory_text]), frozenset(_PAIR.findall(memory_text)))
    things = _things([*map(_as_entry, earlier), *entries])
    lost = [thing for thing in things if not _is_kept(thing, memory)]
    return {
        "covers": _coverage(entries),
        "kinds": {kind: _tally(kind, things, lost) for kind in KINDS},
        "residue": _residue(lost, carried, memory),
    }


def continue_receipt(
    paper: Mapping[str, Any], before: Iterable[Mapping[str, Any]], first_seq: int, last_seq: int
) -> dict[str, Any]:
    """The receipt, over the whole span, of a digest that continues others.

    What they lost stays lost and counts.
    """
    whole = {**paper, "kinds": {kind: dict(paper["kinds"][kind]) for kind in KINDS}}
    tokens = paper["covers"]["tokens"]
    for earlier in before:
        tokens += (earlier.get("covers") or {}).get("tokens", 0)
        for kind, old in (earlier.get("kinds") or {}).items():
            tally = whole["kinds"][kind]
            tally["total"] += old["total"] - old["kept"]
            tally["lost"] = [*tally["lost"], *old["lost"]][: limits.LOST_MAX]
    rows = [row for each in (paper, *before) for row in (each.get("skipped") or {}).get("rows", ())]
    if rows:
        total = sum((each.get("skipped") or {}).get("total", 0) for each in (paper, *before))
        whole["skipped"] = {"total": total, "rows": rows[: limits.LOST_MAX]}
    entries = last_seq - first_seq + 1
    covers = {"first_seq": first_seq, "last_seq": last_seq, "entries": entries, "tokens": tokens}
    return {**whole, "covers": covers}


def tally_skipped(rows: Sequence[Json]) -> dict[str, Json]:
    """What was not digested, with the reasons: all are counted, the first are listed."""
    return {"total": len(rows), "rows": list(rows[: limits.LOST_MAX])}


def _as_entry(text: str) -> Entry:
    """An earlier digest's text as an entry without a sequence number."""
    return Entry(_NO_SEQ, Message.assistant(text), 0, 0, "", "")


def _item_text(item: Item) -> str:
    value = item.value if isinstance(item.value, str) else encode_json(item.value)
    return f"{item.name} {value}. {item.quote}"


def _coverage(entries: Sequence[Entry]) -> dict[str, Json]:
    return {
        "first_seq": entries[0].seq if entries else None,
        "last_seq": entries[-1].seq if entries else None,
        "entries": len(entries),
        "tokens": sum(entry.tokens for entry in entries),
    }


def _tally(kind: str, things: Sequence[_Thing], lost: Sequence[_Thing]) -> dict[str, Json]:
    number = sum(thing.kind == kind for thing in things)
    gone = [thing for thing in lost if thing.kind == kind]
    listed: list[Json] = [
        {
            "value": thing.value[: limits.RESIDUE_QUOTE_CHARS_MAX],
            "seq": None if thing.seq == _NO_SEQ else thing.seq,
        }
        for thing in gone[: limits.LOST_MAX]
    ]
    return {"total": number, "kept": number - len(gone), "lost": listed}


# -- facts of the entries ---------------------------------------------------------------------


def _things(entries: Sequence[Entry]) -> list[_Thing]:
    """All facts of the span, each once, at its first entry."""
    found: dict[tuple[str, str], _Thing] = {}
    answered = max((e.seq for e in entries if _answers(e)), default=-1)
    around = _Surroundings(entries)
    for entry in entries:
        for thing in _entry_things(entry, around, open_question=entry.seq > answered):
            key = thing.claim.key if thing.claim else prose.fold_text(thing.value)
            found.setdefault((thing.kind, key), thing)
    return list(found.values())


class _Surroundings:
    """What the sentences of entries need to be understood."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        texts = [
            (extractive.speaker(entry.message), _sentences(entry), entry.seq == _NO_SEQ)
            for entry in entries
        ]
        self.sentences = {id(entry): text[1] for entry, text in zip(entries, texts, strict=True)}
        self._said = replies.linked(texts)
        self._first: dict[int, int] = {}
        number = 0
        for entry, (_, pieces, _) in zip(entries, texts, strict=True):
            self._first[id(entry)] = number
            number += len(pieces)

    def of(self, entry: Entry, sentence: int) -> dict[str, Any]:
        """The fields of things in a sentence of an entry, by its number."""
        number = self._first[id(entry)] + sentence
        said = self._said[number]
        there = replies.together(self._said, number) or [said.needs]
        before = [one for one in there if 0 <= one < number][-_BEFORE_MAX:]
        return {
            "speaker": said.speaker,
            "answers": " ".join(map(self._line, before)),
            "asked": said.answer >= 0,
            "supposed": said.text.startswith(SUPPOSED),
        }

    def _line(self, number: int) -> str:
        said = self._said[number]
        text = prose.beginning(prose.cut_words(said.text, _BEFORE_WORDS), _BEFORE_CHARS)
        return f"{said.speaker}: {text}"


def _sentences(entry: Entry) -> list[str]:
    return list(prose.sentences(rules.CODE.sub("\n\n", marks.said(entry.message))))


def _answers(entry: Entry) -> bool:
    return entry.message.role == "assistant" and bool(marks.said(entry.message).strip())


def _entry_things(entry: Entry, around: _Surroundings, *, open_question: bool) -> Iterator[_Thing]:
    role = entry.message.role
    text = marks.said(entry.message)
    if not text.strip():
        return
    for number, sentence in enumerate(around.sentences[id(entry)]):
        fields: dict[str, Any] = {}
        found = [*_claimed_things(sentence, entry.seq, urls_only=role == "tool")]
        if role != "tool":
            by_user = role == "user"
            found += _cued_things(sentence, entry.seq, by_user=by_user, asks=open_question)
        for thing in found:
            fields = fields or around.of(entry, number)
            yield thing._replace(**fields)
    for code in rules.CODE.findall(text):
        # Numbers in code mean little without the code; URLs do not.
        for thing in _claimed_things(code, entry.seq, urls_only=True):
            yield thing._replace(speaker=extractive.speaker(entry.message), quote=thing.value)


def _claimed_things(sentence: str, seq: int, *, urls_only: bool) -> Iterator[_Thing]:
    for claim in claims.claims(sentence):
        if claim.sure and (claim.kind == "url" or not urls_only):
            quote = _quote_around(sentence, claim)
            yield _Thing(_PLURAL[claim.kind], claim.value, seq, quote, claim)


def _cued_things(sentence: str, seq: int, *, by_user: bool, asks: bool) -> Iterator[_Thing]:
    cues = rules.cues(sentence)
    quote = prose.beginning(sentence, limits.RESIDUE_QUOTE_CHARS_MAX).strip()
    if cues.decision if by_user else cues.settled:
        yield _Thing("decisions", quote, seq, quote)
    if cues.preference and by_user:
        yield _Thing("preferences", quote, seq, quote)
    if cues.question and by_user and asks:
        yield _Thing("questions", quote, seq, quote)


def _quote_around(sentence: str, claim: claims.TextClaim) -> str:
    """The sentence, or the part around the claim that fits into a quote."""
    limit = limits.RESIDUE_QUOTE_CHARS_MAX
    if len(sentence) <= limit:
        return sentence
    start = max(0, min(claim.start - limit // 3, len(sentence) - limit))
    end = start + limit
    # Cut at spaces if possible: half a word or number would be a different one.
    first = sentence.find(" ", start, claim.start) + 1 if start else 0
    last = sentence.rfind(" ", claim.start + len(claim.value), end) if end < len(sentence) else end
    return sentence[max(start, first) : last if last > 0 else end].strip()


# -- what is kept and lost --------------------------------------------------------------------


def _is_kept(thing: _Thing, memory: _Memory) -> bool:
    if thing.claim is not None:
        return claims.supports(memory.facts, thing.claim)
    return _is_repeated(thing.quote, memory)


def _is_repeated(quote: str, memory: _Memory) -> bool:
    """Whether the memory has nearly all words of a quote, and all its checkable claims."""
    near, pairs = fold_name(_FAR.sub(" ", quote)).split(), _PAIR.findall(quote)
    words = [word for word in near if word not in COMMON]
    if not words and not pairs:
        words = near
    there = sum(word in memory.facts.words for word in words)
    there += sum(pair in memory.pairs for pair in pairs)
    if there < _SAME_SHARE * (len(words) + len(pairs)):
        return False
    sure = (claim for claim in claims.claims(quote) if claim.sure)
    return all(claims.supports(memory.facts, claim) for claim in sure)


def _residue(
    lost: Sequence[_Thing], carried: Iterable[Mapping[str, Json]], memory: _Memory
) -> list[Json]:
    """Quotes of lost facts, the most valuable first, so that the last ones can be dropped."""
    waiting = [t for t in lost if t.kind in _CARRIED_KINDS and t.seq != _NO_SEQ and not t.asked]
    # A row of a table or a line of code means little by itself.
    waiting = [t for t in waiting if t.kind == "urls" or not prose.is_code(t.quote)]
    fresh = len(waiting)
    waiting += [
        thing for thing in _carried_things(carried) if not _is_repeated(thing.quote, memory)
    ]
    order = sorted(
        range(len(waiting)),
        key=lambda i: (_CARRIED_KINDS.index(waiting[i].kind), i >= fresh, -waiting[i].seq, i),
    )
    taken: dict[tuple[int, str], _Thing] = {}
    room = limits.RESIDUE_CHARS_MAX
    for thing in (waiting[i] for i in order):
        key = (thing.seq, thing.quote)
        chars = len(thing.quote) + len(thing.answers)
        if key in taken or len(taken) >= limits.RESIDUE_MAX or chars > room:
            continue
        taken[key] = thing
        room -= chars
    return [_row(thing) for thing in taken.values()]


def _row(thing: _Thing) -> Json:
    row: dict[str, Json] = {"seq": thing.seq, "kind": thing.kind, "quote": thing.quote}
    more = {name: getattr(thing, name) for name in _SHOWN}
    return {**row, **{name: value for name, value in more.items() if value}}


def _carried_things(carried: Iterable[Mapping[str, Json]]) -> Iterator[_Thing]:
    """The residue of an earlier digest; damaged rows are skipped."""
    for row in carried:
        seq, kind, quote = row.get("seq"), row.get("kind"), row.get("quote")
        if type(seq) is int and kind in _CARRIED_KINDS and isinstance(quote, str) and quote:
            quote = quote[: limits.RESIDUE_QUOTE_CHARS_MAX]
            yield _Thing(
                str(kind),
                quote,
                seq,
                quote,
                speaker=_text(row.get("speaker")),
                answers=_text(row.get("answers")),
                supposed=row.get("supposed") is True,
            )


def _text(value: Json) -> str:
    return value[:_AROUND_CHARS] if isinstance(value, str) else ""


# -- for display ------------------------------------------------------------------------------


def describe(receipt: Mapping[str, Any]) -> str:
    """The receipt in a few lines."""
    covers = receipt.get("covers") or {}
    lines = []
    if covers.get("entries"):
        first, last = covers["first_seq"], covers["last_seq"]
        lines.append(
            f"covers messages {first} to {last}: {plural(covers['entries'], 'message')}, "
            f"{plural(covers['tokens'], 'token')}"
        )
    for kind, tally in (receipt.get("kinds") or {}).items():
        if tally["total"]:
            lines.append(
                f"{kind}: {tally['kept']:,} of {tally['total']:,} kept{_describe_lost(tally)}"
            )
    skipped = receipt.get("skipped") or {}
    if skipped:
        rows = "; ".join(f"{row['why']} [{row['seq']}]" for row in skipped["rows"])
        lines.append(f"skipped: {skipped['total']:,}: {rows}")
    residue = receipt.get("residue") or []
    if residue:
        lines.append("carried along verbatim:")
        lines += [f"  [{row['seq']}] {fence.one_line(row['quote'])}" for row in residue]
    return "\n".join(lines) or "covers nothing"


def _describe_lost(tally: Mapping[str, Any]) -> str:
    if not tally["lost"]:
        return ""
    names = ", ".join(
        fence.one_line(row["value"]) + ("" if row["seq"] is None else f" [{row['seq']}]")
        for row in tally["lost"]
    )
    more = tally["total"] - tally["kept"] - len(tally["lost"])
    return f"; lost: {names}" + (f" and {more:,} more" if more else "")
