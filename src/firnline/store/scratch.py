"""Temporary files with users' text, of which nothing stays, even if the process is killed.

A folder is locked while its process lives. The lock ends with the process, so the next one that
needs such a folder, or the next start of the server, finds what a killed process has left. On
Linux, `ScratchFolder.file` has no name, so its text is gone with the process.
"""

from __future__ import annotations

import itertools
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import BinaryIO, Final

from firnline.store import limits

try:
    import fcntl
    import resource
except ImportError:  # Windows: folders are deleted at their end, but not after a crash
    fcntl = None  # type: ignore[assignment]

PREFIX: Final = "firnline-scratch-"
_turns: Final = itertools.count()


class ScratchFolder:
    """A private temporary folder; `close` deletes it. Use `with`, or close it yourself."""

    def __init__(self) -> None:
        remove_stale()
        self.path, self._lock = _create()
        self._files: list[BinaryIO] = []

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()

    def file(self, name: str) -> Path:
        """The path of a new file, to be written and read as often as needed until `close`."""
        path = self.path / name
        with path.open("xb") as file:
            own = _keep_open(file)
        if own is not None:  # each time it is opened, it is another reader of the same file
            self._files.append(own)
            path.unlink()
            path.symlink_to(f"/proc/self/fd/{own.fileno()}")
        return path

    def close(self) -> None:
        """Delete the folder; again does nothing."""
        if self._lock is None:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        for file in self._files:  # then, so that no path leads to another file of this number
            file.close()
        os.close(self._lock)
        self._lock = None


def _keep_open(file: BinaryIO) -> BinaryIO | None:
    """The same open file under a number that is not soon used again; None if it cannot be reopened.

    Otherwise a late reader, whose job was canceled, could find another tenant's file there.
    """
    if fcntl is None or not Path(f"/proc/self/fd/{file.fileno()}").exists():
        return None
    most = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0] % 2**31, limits.SCRATCH_NUMBERS_MAX)
    number = most // 2 + next(_turns) % max(most // 2 - 1, 1)
    try:
        return os.fdopen(fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, number), "rb")
    except OSError:  # too many open files
        return None


def remove_stale() -> None:
    """Delete the folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if _is_ours(folder):
            delete_if_unlocked(folder)


def delete_if_unlocked(path: Path) -> None:
    """Delete a file or folder whose process has ended."""
    lock = try_lock(path)
    if lock is None:
        return
    try:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    except OSError:
        return  # the next process may have the permission
    finally:
        os.close(lock)


def try_lock(path: Path) -> int | None:
    """Lock a file or folder as long as this descriptor is open; None if another process has it."""
    if fcntl is None:
        return None
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        same = os.fstat(number).st_ino == path.lstat().st_ino  # not deleted before it was locked
    except OSError:  # it is locked, or gone
        same = False
    if same:
        return number
    os.close(number)
    return None


def _create() -> tuple[Path, int | None]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        if fcntl is None:
            return path, os.open(os.devnull, os.O_RDONLY)
        lock = try_lock(path)
        if lock is not None:
            return path, lock
        shutil.rmtree(path, ignore_errors=True)  # another process took it for stale


def _is_ours(folder: Path) -> bool:
    """Whether it is a folder of this user: others may put anything into the temporary folder."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    own = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    return stat.S_ISDIR(found.st_mode) and own
