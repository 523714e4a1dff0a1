"""A disk that loses what was not synced when the power is cut: a SQLite VFS in Python."""

import apsw

SECTOR = 512
KEPT = (apsw.SQLITE_OPEN_MAIN_DB, apsw.SQLITE_OPEN_WAL, apsw.SQLITE_OPEN_MAIN_JOURNAL)


class Disk(apsw.VFS):
    """Works like the real one, and knows of each file what would survive a power cut.

    `on_operation` is called with the number of each operation that changes a file. With
    `lying=True`, the disk reports syncs that it does not do.
    """

    def __init__(self, rng, on_operation, *, lying=False):
        self.base, self.name = apsw.vfs_names()[0], "power-cut"
        super().__init__(self.name, self.base)
        self.lying = lying
        self.files = {}
        self._rng, self._on_operation, self._count = rng, on_operation, 0

    def xOpen(self, name, flags):  # noqa: N802
        return _File(self, name, flags)

    def xDelete(self, name, sync):  # noqa: N802
        super().xDelete(name, sync)
        self.files.pop(name, None)
        self.changed()

    def changed(self):
        self._count += 1
        self._on_operation(self._count)

    def after_cut(self):
        """The bytes of each file after a power cut now: a file that was never synced can be gone.

        Of the writes since the last sync there is none, all, a prefix, any, or sectors of any.
        """
        return {
            name: image.after_cut(self._rng)
            for name, image in self.files.items()
            if image.synced or self._rng.random() < 0.5
        }


class Image:
    """What the disk has of a file, and the changes in its cache."""

    def __init__(self):
        self.durable, self.waiting, self.synced = bytearray(), [], False

    def sync(self):
        for change in self.waiting:
            change(self.durable)
        self.waiting, self.synced = [], True

    def write(self, data, offset):
        self.waiting.append(_Write(offset, data))

    def truncate(self, size):
        self.waiting.append(_Truncate(size))

    def after_cut(self, rng):
        found, waiting = bytearray(self.durable), self.waiting
        mode = rng.choice(["none", "all", "prefix", "some", "torn"])
        if mode == "prefix":
            waiting = waiting[: rng.randrange(len(waiting) + 1)]
        for change in waiting if mode != "none" else ():
            if mode == "torn":
                change.tear(found, rng)
            elif mode != "some" or rng.random() < 0.5:
                change(found)
        return bytes(found)


class _Write:
    def __init__(self, offset, data):
        self.offset, self.data = offset, data

    def __call__(self, found):
        if len(found) < self.offset:
            found.extend(bytes(self.offset - len(found)))
        found[self.offset : self.offset + len(self.data)] = self.data

    def tear(self, found, rng):
        for at in range(0, len(self.data), SECTOR):
            if rng.random() < 0.6:
                _Write(self.offset + at, self.data[at : at + SECTOR])(found)


class _Truncate:
    def __init__(self, size):
        self.size = size

    def __call__(self, found):
        del found[self.size :]

    def tear(self, found, rng):
        if rng.random() < 0.6:
            self(found)


class _File(apsw.VFSFile):
    def __init__(self, disk, name, flags):
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        kept = path and any(flags[0] & kind for kind in KEPT)
        self._disk, self._image = disk, disk.files.setdefault(path, Image()) if kept else None
        super().__init__(disk.base, name, flags)

    def xWrite(self, data, offset):  # noqa: N802
        super().xWrite(data, offset)
        if self._image is not None:
            self._image.write(bytes(data), offset)
            self._disk.changed()

    def xTruncate(self, size):  # noqa: N802
        super().xTruncate(size)
        if self._image is not None:
            self._image.truncate(size)
            self._disk.changed()

    def xSync(self, flags):  # noqa: N802
        super().xSync(flags)
        if self._image is not None:
            self._disk.changed()  # before it is done, and after it
            if not self._disk.lying:
                self._image.sync()
            self._disk.changed()

    def xLock(self, level):  # noqa: N802
        try:
            super().xLock(level)
        except apsw.IOError as error:
            raise apsw.BusyError from error  # see `faulty_disk`

    def excepthook(self, *_):
        return True
