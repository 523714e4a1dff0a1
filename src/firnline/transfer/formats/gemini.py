"""Google Takeout, My Activity, Gemini Apps, as JSON: questions and answers, newest first.

It has no conversations: the questions of one day (in UTC) become one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from firnline.log import limits
from firnline.log.regex import regex
from firnline.transfer.formats.cursor import records
from firnline.transfer.formats.records import (
    LinearConversation,
    Notes,
    SourceConversation,
    SourceFile,
    SourceMessage,
    as_dict,
    as_objects,
    as_text,
    brief,
    build_message,
    source_metadata,
    time_from_iso,
)

FORMAT: Final = "gemini"
_ASKED: Final = regex(r"(?:Prompted|Asked|Said)\s+")
_DID: Final = regex(r"(?:Used|Gave feedback|Created|Selected|Opened|Viewed|Cancelled)\b")
_BLOCKS: Final = regex(r"p|div|br|li|ul|ol|pre|blockquote|h[1-6]")
_ROWS: Final = ("tr", "table")
_CELLS: Final = ("td", "th")
_BLANKS: Final = regex(r"\s+")
_BREAKS: Final = regex(r"(?<![ \t])[ \t]*\n\s*")


def read(source: SourceFile, notes: Notes) -> Iterator[SourceConversation]:
    """The days, each in chronological order."""
    day, asked = "", list[tuple[str, Mapping[str, Any]]]()
    for where, value in records(source, notes):
        activity = as_dict(value)
        time = time_from_iso(activity.get("time"))
        if time is None or not isinstance(activity.get("title"), str):
            notes.reject("an activity without time or title", where)
            continue
        if not _is_ours(activity):
            notes.skip("an activity of another product", where)
            continue
        full = len(asked) >= limits.IMPORT_HELD_MAX
        if asked and (f"{time:%Y-%m-%d}" != day or full):
            yield LinearConversation(day, f"Gemini, {day}", _day(asked, notes))
            asked = []
        day = f"{time:%Y-%m-%d}"
        asked.append((where, activity))
    if asked:
        yield LinearConversation(day, f"Gemini, {day}", _day(asked, notes))


def _is_ours(activity: Mapping[str, Any]) -> bool:
    products = activity.get("products")
    named = [as_text(activity.get("header")), *(products if isinstance(products, list) else ())]
    return any("Gemini" in name or "Bard" in name for name in map(as_text, named))


def _day(asked: list[tuple[str, Mapping[str, Any]]], notes: Notes) -> Iterator[SourceMessage]:
    asked.reverse()  # of equally old ones the last in the file was first
    for where, activity in sorted(asked, key=lambda pair: str(pair[1]["time"])):
        title = activity["title"]
        answer = "\n".join(text_of(as_text(part.get("html"))) for part in _answers(activity))
        if not answer and _DID.match(title):
            notes.skip("an activity that is not a question", f"{where}: {title}")
            continue
        key, time = f"{activity['time']} {brief(title)}", time_from_iso(activity["time"])
        about = {"metadata": source_metadata(FORMAT, key), "created_at": time}
        yield from build_message(
            where, notes, role="user", content=_ASKED.sub("", title, 1), **about
        )
        if answer:
            about["metadata"] = source_metadata(FORMAT, f"{key}#1")
            yield from build_message(where, notes, role="assistant", content=answer, **about)
        else:
            notes.skip("a question whose answer is not in the file", where)


def _answers(activity: Mapping[str, Any]) -> list[dict[str, Any]]:
    return as_objects(activity.get("safeHtmlItem"))


class _Text(HTMLParser):
    """The text of HTML, with a line for each block and each row of a table.

    Each piece comes with whether its whitespace counts, as in `pre`.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[tuple[bool, str]] = []
        self._hidden = self._pre = self._cells = 0
        self._in_cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Start a block on a new line, a cell after a bar."""
        del attrs
        self._hidden += tag in ("script", "style")
        if tag in _CELLS:
            if self._cells:
                self._say(" | ")
            self._cells, self._in_cell = self._cells + 1, True
        elif tag in _ROWS:
            self._end_row()
        elif _BLOCKS.fullmatch(tag):
            self._break(tag, "- " if tag == "li" else "")
        self._pre += tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        """End a block with its line."""
        self._hidden -= tag in ("script", "style") and self._hidden > 0
        self._pre -= tag == "pre" and self._pre > 0
        if tag in _CELLS:
            self._in_cell = False
        elif tag in _ROWS:
            self._end_row()
        elif _BLOCKS.fullmatch(tag):
            self._break(tag, "")

    def handle_data(self, data: str) -> None:
        """Add text; whitespace between cells is dropped, and a cell stays on its line."""
        between = self._cells and not self._in_cell and data.isspace()
        if not self._hidden and not between:
            self._say(_BLANKS.sub(" ", data) if self._in_cell and not self._pre else data)

    def _say(self, text: str) -> None:
        """Add text; in a row, without double spaces."""
        if self._cells and not self._pre and self.words and self.words[-1][1].endswith(" "):
            text = text.lstrip(" ")
        if text:
            self.words.append((self._pre > 0, text))

    def _break(self, tag: str, then: str) -> None:
        """Start a new line, or add a space in a cell; no empty lines between blocks in `pre`."""
        if self._pre and tag != "br" and self.words[-1][1].endswith("\n"):
            return
        cell = self._in_cell and not self._pre and tag != "pre"
        self._say((" " if cell else "\n") + then)

    def _end_row(self) -> None:
        self._cells, self._in_cell = 0, False
        self._say("\n")


def text_of(html: str) -> str:
    """The text of HTML. Whitespace in `pre` is kept; cells are separated by bars."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    pieces = []
    for kept, group in groupby(parser.words, key=itemgetter(0)):
        piece = "".join(word for _, word in group)
        pieces.append(piece.strip("\n") if kept else _BREAKS.sub("\n", piece))
    # A line begins before `pre` does, so the first piece is never one whose blanks count.
    return "".join([*(first.lstrip() for first in pieces[:1]), *pieces[1:]]).rstrip()
