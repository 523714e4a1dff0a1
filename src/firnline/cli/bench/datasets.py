"""The formats by name, and how their files and folders are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from firnline.cli.bench.assistants import beam, longmemeval
from firnline.cli.bench.cases import BenchCase
from firnline.cli.bench.location import JsonSpot
from firnline.cli.bench.talks import locomo, realtalk
from firnline.errors import InputError
from firnline.store.files import local_path, source_path

FORMATS: Final[dict[str, Callable[[JsonSpot, str], BenchCase]]] = {
    "locomo": locomo,
    "longmemeval": longmemeval,
    "realtalk": realtalk,
    "beam": beam,
}

_CHATS: Final = ("chat_trunecated.json", "chat.json")  # BEAM's spelling; it asks on the former


def load(form: str, path: Path, *, limit: int | None = None) -> list[BenchCase]:
    """The conversations of a file or folder; at most `limit`.

    `InputError` says where the format is wrong, and what was expected.
    """
    cases: list[BenchCase] = []
    seen: set[str] = set()
    for spot, name in _parts(form, path):
        for case in parse(form, spot, name):
            if case.conversation in seen:
                raise InputError(
                    f"{spot.where}: the conversation {case.conversation!r} occurs twice"
                )
            seen.add(case.conversation)
            cases.append(case)
            if len(cases) == limit:
                return cases
    if not cases:
        raise InputError(f"{path.name}: no conversation found")
    return cases


def parse(form: str, spot: JsonSpot, name: str) -> Iterator[BenchCase]:
    """The conversations of a JSON value: a list, or one that is called `name`."""
    if isinstance(spot.value, list):
        for number, item in enumerate(spot.each("conversation"), 1):
            yield FORMATS[form](item, f"{name}-{number}")
    else:
        yield FORMATS[form](spot, name)


def _parts(form: str, path: Path) -> Iterator[tuple[JsonSpot, str]]:
    """The JSON values at the path, each with a name."""
    if not local_path(path).exists():
        raise InputError(f"there is no file {path}")
    path = source_path(path, folders=True)
    if not path.is_dir():
        yield JsonSpot(_read(path), path.name), path.stem
    elif form == "realtalk":
        for file in sorted(path.glob("*.json")):
            yield JsonSpot(_read(file), file.name), file.stem
    elif form == "beam":
        yield from _chats(path)
    else:
        raise InputError(f"{path} is a folder; {form} is a single JSON file")


def _chats(path: Path) -> Iterator[tuple[JsonSpot, str]]:
    """BEAM's folders, one per chat, with a file for the chat and one for its questions."""
    folders = [path, *sorted((f for f in path.iterdir() if f.is_dir()), key=_by_number)]
    for folder in folders:
        chat = next((folder / name for name in _CHATS if (folder / name).exists()), None)
        if chat is not None:
            asked = folder / "probing_questions" / "probing_questions.json"
            value = {"chat": _read(chat), "probing_questions": _read(asked)}
            yield JsonSpot(value, folder.name), folder.name


def _by_number(path: Path) -> tuple[int, str]:
    return (int(path.name) if path.name.isdecimal() else 0, path.name)


def _read(path: Path) -> object:
    try:
        return json.loads(source_path(path).read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path.name}: not JSON: {error}") from error
