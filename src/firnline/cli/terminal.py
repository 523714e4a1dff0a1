"""Output for a terminal: tables, a progress bar, and text without control characters."""

from __future__ import annotations

import shutil
import sys
import time
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TextIO

from firnline.protocols import Progress

_BAR: Final = 24
_REDRAW_SECONDS: Final = 0.1
_SHOWN_AFTER_SECONDS: Final = 0.5


def plain(text: str) -> str:
    """Text without control characters, which could change the terminal's state."""
    return "".join(c if c in "\n\t" or c.isprintable() else _visible(c) for c in text)


def _visible(character: str) -> str:
    # Joiners and variation selectors shape emoji and scripts; they are harmless.
    if unicodedata.category(character) in ("Zs", "Zl", "Zp"):
        return " "
    if character in "\u200c\u200d\ufe0e\ufe0f":
        return character
    return f"\\u{ord(character):04x}"


def cut(text: str, width: int) -> str:
    """At most `width` characters, with an ellipsis if the text is shortened."""
    return text if len(text) <= width else text[: width - 1] + "…"


def table(names: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Aligned columns under their names; `right` lists the right-aligned ones."""
    shown = [[plain(cell).replace("\n", " ") for cell in row] for row in (names, *rows)]
    widths = [max(_width(row[i]) for row in shown) for i in range(len(names))]
    lines = []
    for row in shown:
        cells = [_pad(cell, widths[i], right=i in right) for i, cell in enumerate(row)]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("─" * width for width in widths))
    return "\n".join(lines)


def _width(text: str) -> int:
    """Terminal columns: wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def _pad(text: str, width: int, *, right: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks


@contextmanager
def progress_bar(what: str, stream: TextIO = sys.stderr) -> Iterator[Progress]:
    """A bar for work that takes more than a moment; only shown on a terminal."""
    started = drawn = time.monotonic()
    shown = False

    def draw(done: int, total: int) -> None:
        nonlocal drawn, shown
        now = time.monotonic()
        if not stream.isatty() or now - started < _SHOWN_AFTER_SECONDS:
            return
        if now - drawn < _REDRAW_SECONDS and done != total:
            return
        drawn, shown = now, True
        columns = shutil.get_terminal_size().columns
        stream.write("\r\033[K" + cut(_bar(plain(what), done, total), columns - 1))
        stream.flush()

    try:
        yield draw
    finally:
        if shown:
            stream.write("\r\033[K")
            stream.flush()


def _bar(what: str, done: int, total: int) -> str:
    if not total:
        return f"{what}: {done:,}"
    full = min(_BAR, _BAR * done // total)
    return f"{what} {'█' * full}{'░' * (_BAR - full)} {100 * done // total:3d}% {done:,}/{total:,}"
