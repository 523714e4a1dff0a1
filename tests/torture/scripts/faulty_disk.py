"""A disk that fails on demand: a SQLite VFS in Python over the real one."""

import os
import signal

import apsw

WRITE_FAILS = apsw.SQLITE_IOERR_WRITE
DISK_FULL = apsw.SQLITE_FULL
_AS_ERROR = {
    "read": apsw.SQLITE_IOERR_READ,
    "write": WRITE_FAILS,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
}


class FaultyDisk(apsw.VFS):
    """Fails the `nth` operation of a kind on a kind of file; if `stuck`, every one from there on.

    Files are ``main``, ``wal``, ``journal`` and ``temp``; ``any`` is all of them. `code` is the
    SQLite result the operation fails with, or "kill": the process ends there by SIGKILL.
    """

    def __init__(self, name="faulty"):
        self.base = apsw.vfs_names()[0]  # by name: this one may become the default
        super().__init__(name, self.base)
        self.name = name
        self.off()

    def __str__(self):
        return f"fault {self.last}"

    async def watch(self, memory):
        """Nothing to do once a store is open: it was opened on this disk."""

    def off(self):
        self.plan = None
        self.count = 0
        self.hits = []

    def on(self, operations, file, nth, code=None, *, stuck=False):
        self.off()
        self.plan = self.last = (operations, file, nth, code, stuck)

    def xOpen(self, name, flags):  # noqa: N802
        return _File(self, name, flags)

    def meet(self, operation, file):
        """Called before each operation; raises if the plan says so."""
        if self.plan is None:
            return
        operations, wanted, nth, code, stuck = self.plan
        if operation not in operations or wanted not in (file, "any"):
            return
        self.count += 1
        if self.count == nth or (stuck and self.count > nth):
            if code == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            error = apsw.exception_for(code or _AS_ERROR[operation])
            self.hits.append(error)
            raise error

    def excepthook(self, *_):
        """Errors that SQLite has no use for, for example while it closes a file."""
        return True


def _kind(flags):
    if flags & apsw.SQLITE_OPEN_MAIN_DB:
        return "main"
    if flags & apsw.SQLITE_OPEN_WAL:
        return "wal"
    return "journal" if flags & apsw.SQLITE_OPEN_MAIN_JOURNAL else "temp"


class _File(apsw.VFSFile):
    def __init__(self, disk, name, flags):
        self._disk = disk
        self._kind = _kind(flags[0])
        super().__init__(disk.base, name, flags)

    def xRead(self, amount, offset):  # noqa: N802
        self._disk.meet("read", self._kind)
        return super().xRead(amount, offset)

    def xWrite(self, data, offset):  # noqa: N802
        self._disk.meet("write", self._kind)
        super().xWrite(data, offset)

    def xSync(self, flags):  # noqa: N802
        self._disk.meet("sync", self._kind)
        super().xSync(flags)

    def xLock(self, level):  # noqa: N802
        try:
            super().xLock(level)
        except apsw.IOError as error:
            # A reader that closes last tries for a lock it cannot have. SQLite does not mind, but
            # apsw would raise it from `close`, unless it is called busy.
            raise apsw.BusyError from error

    def xTruncate(self, size):  # noqa: N802
        self._disk.meet("truncate", self._kind)
        super().xTruncate(size)

    def excepthook(self, *_):
        return True
