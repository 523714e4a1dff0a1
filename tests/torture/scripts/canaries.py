"""Words that occur once in the world, and the search for what is left of them on the disk."""

import json
import re
import sys
from pathlib import Path

LETTERS = "bcfhjkmnpqvwxz"  # without endings that a stemmer would cut off
IDEOGRAPHS = "鱻龘靐齉爩麤灪龖厵滟爨癵籱饢驫"
LENGTH = 16
SHARED = 3  # letters that an index may leave out because the word before begins with them too

_NARROW = re.compile(b"[%s]{%d,}" % (LETTERS.encode(), LENGTH - SHARED))
_WIDE = re.compile(b"(?:[%s]\\x00){%d,}" % (LETTERS.encode(), LENGTH - SHARED))


def canary(rng):
    """A word of capitals; a search index holds it in small letters."""
    return "".join(rng.choices(LETTERS, k=LENGTH)).upper()


def ideographs(rng):
    return "".join(rng.choices(IDEOGRAPHS, k=8))


def left(folder, words):
    """Where anything of these words is left, in any file of a folder: "word in file"."""
    found = []
    for path in Path(folder).rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            letters = _letters(data)
            found.extend(f"{w} in {path.name}" for w in words if _is_left(w, data, letters))
    return found


def _is_left(word, data, letters):
    if word.isascii():
        return word.lower()[SHARED:].encode() in letters
    return any(word.encode(code) in data for code in ("utf-8", "utf-16-le", "utf-16-be"))


def _letters(data):
    """All runs of a canary's letters, in capitals or not, of one byte or two: little to search."""
    small = data.lower()
    runs = _NARROW.findall(small) + [run.replace(b"\0", b"") for run in _WIDE.findall(small)]
    return b" ".join(runs)


def main():
    """``canaries.py FOLDER``, words as JSON on stdin: in a process that has no database open."""
    sys.stdout.write(json.dumps(left(sys.argv[1], json.load(sys.stdin))))


if __name__ == "__main__":
    main()
