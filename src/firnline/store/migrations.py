"""Numbered SQL migration files, shared by all SQL backends."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources.abc import Traversable
from typing import Final

from firnline.errors import StoreError, StoreTooNew
from firnline.log.regex import regex

_FILE: Final = regex(r"(\d{4})_\w+\.sql")


def load(folder: Traversable) -> Mapping[int, str]:
    """Read a folder of migrations; their numbers must be 1, 2, 3 and so on."""
    files = [file for file in folder.iterdir() if _FILE.fullmatch(file.name)]
    found = {int(file.name[:4]): file.read_text(encoding="utf-8") for file in files}
    if len(found) != len(files):
        raise StoreError(f"two migrations have the same number: {sorted(f.name for f in files)}")
    if sorted(found) != list(range(1, len(found) + 1)):
        raise StoreError(f"the numbers of the migrations have gaps: {sorted(found)}")
    return dict(sorted(found.items()))


def check_version(version: int, newest: int) -> None:
    """Raise `StoreTooNew` if a newer Firnline migrated the database."""
    if version > newest:
        raise StoreTooNew(
            f"the database has schema version {version}, newer than version {newest} of this "
            "Firnline; upgrade Firnline; nothing was changed"
        )
