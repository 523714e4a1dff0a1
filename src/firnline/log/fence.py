"""Keeps quoted text apart from the lines that Firnline writes around it in a prompt. Pure.

A section of a prompt has marker lines: its first and last line, a line's number and speaker, notes
on what is not shown. Each begins with a bracket and a reserved word. A line of quoted text that
reads like one gets a backslash in front of its bracket; all other text is unchanged. The rule looks
at what a reader sees: case, spaces, invisible characters, other forms of letters and brackets, and
every line break of Unicode make no difference. It depends on the text alone, so that a prompt
starts like the one before it.
"""

# ruff: noqa: RUF001 - other scripts and their look-alikes are meant

from __future__ import annotations

import unicodedata
from typing import Final

from firnline.log import limits
from firnline.log.regex import regex
from firnline.log.text import normalize

_MARKER: Final = regex(
    r"\[(?:/?recalled\]|/recalled|/(?:summary|importantdata|document|task)\]|messages?\d"
    r"|importantdata|summary(?:\d|given)|document\d|taskathand|alsosaid|calls[a-z\d]"
    r"|\.\.\.(?:about|themiddleofmessage|moreofmessage)\d"
    r"|(?:user|assistant|system|developer|tool)message\d"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day(?:\d{4}|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\d)"
    r"|/?profile\]|whattheuserhasstated|/?otherconversations\]|fromotherconversations|conversation[a-z0-9/:.]"
    r"|\d+\](?:\[outdated|(?:user|assistant|system|developer|tool)[^:]*:)|outdated:)"
)
"""The start of a marker line as `_fold` writes it."""
_ROLE: Final = regex(r"\[(?:system|developer)\]")
"""What precedes the application's words where an endpoint only has the user's role for them."""
_FOLDED_MAX: Final = 96  # longer than the start of any marker
_UNSEEN: Final = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Me", "Mn", "Zl", "Zp", "Zs"))
_BLANK: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and signs without a shape
_TWINS: Final = str.maketrans(
    "авеёкмнорстухіјѕԁɡαβεικνορτυχıłøđʟᴀʙᴄᴅᴇɢʜɪᴊᴋᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ∕⁄╱⧸꞉∶ːː׃։",
    "abeekmhopctyxijsdgabeikvoptuxilodlabcdeghijkmnoprstuvwyz////::::::",
)
"""Letters of other alphabets that look like Latin ones, and forms of slash and colon."""
_COLONS: Final = regex("[:：﹕︓꞉∶ː׃։]")
_ROUND: Final = str.maketrans("()（）", "[][]")
_JSON_BREAKS: Final = {0x7F: "\\u007f", 0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def escape(text: str) -> str:
    """Quoted text in which no line reads as a marker."""
    if text.isascii() and "[" not in text and "(" not in text and "{" not in text:
        return text
    return "".join(_escape_line(line) for line in text.splitlines(keepends=True))


def escape_role(text: str) -> str:
    """Text that does not start like words of the application."""
    folded, at = _fold(text)
    return f"{text[:at]}\\{text[at:]}" if _ROLE.match(folded) else text


def is_marker(line: str) -> bool:
    """Whether a line reads as a marker."""
    return _MARKER.match(_fold(line)[0]) is not None


def one_line(text: str) -> str:
    """The text with one space for each run of spaces, line breaks and invisible characters."""
    seen = (" " if unicodedata.category(c) in _UNSEEN else c for c in text)
    return " ".join("".join(seen).split())


def speaker(role: str, name: str | None) -> str:
    """Who said something: the role and the name, after which a colon can follow.

    The role comes first, so that a name cannot be taken for one.
    """
    shown = speaker_name(name) if name else ""
    return f"{role} {shown}" if shown else role


def speaker_name(name: str) -> str:
    """A name without line breaks, colons and round brackets, cut after 64 characters."""
    shown = one_line(name[: limits.NAME_CHARS_MAX])
    shown = _COLONS.sub("_", shown).translate(_ROUND)
    return shown[: limits.SPEAKER_CHARS_MAX].strip()


def escape_json(text: str) -> str:
    """JSON in which no character breaks a line but a line feed; the value stays the same."""
    return text if text.isascii() and "\x7f" not in text else text.translate(_JSON_BREAKS)


def _escape_line(line: str) -> str:
    folded, at = _fold(line)
    return f"{line[:at]}\\{line[at:]}" if _MARKER.match(folded) else line


def _fold(line: str) -> tuple[str, int]:
    """What a reader sees at the start of a line that begins with a bracket, and where it begins.

    Brackets of any kind as square ones, Latin letters and their twins as small ones, digits, dots,
    slashes and colons; nothing else. Empty if the line begins with something else.
    """
    folded, start = "", 0
    for at, char in enumerate(line):
        if unicodedata.category(char) in _UNSEEN or char in _BLANK:
            continue
        seen = "".join(map(_plain, normalize("NFKD", char)))
        if not folded:
            if not seen.startswith("["):
                return "", at
            start = at
        folded += seen
        if len(folded) >= _FOLDED_MAX:
            break
    return folded, start


def _plain(char: str) -> str:
    kind = unicodedata.category(char)
    if kind in ("Ps", "Pe"):
        return "[" if kind == "Ps" else "]"
    if kind == "Nd":
        return str(unicodedata.digit(char))
    plain = char.casefold().translate(_TWINS)
    return plain if plain.isascii() and (plain.isalnum() or plain in "/:.") else ""
