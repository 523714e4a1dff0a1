"""Between a store and a PostgreSQL server: a connection that breaks on demand, and a pooler.

Both speak the real protocol on a Unix socket. The pooler does what PgBouncer does in its mode
"transaction": each transaction gets whichever server connection is free.
"""

import asyncio
import random
import struct
import tempfile
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

SOCKET = ".s.PGSQL.5432"


def url_behind(database, folder):
    """The database's URL through a proxy that listens in `folder`."""
    known = conninfo_to_dict(database.conninfo)
    return f"postgresql://{known['user']}@/{known['dbname']}?host={folder}"


async def _connect(database):
    host = conninfo_to_dict(database.conninfo)["host"]
    return await asyncio.open_unix_connection(Path(host) / SOCKET)


@asynccontextmanager
async def listening(serve):
    """A folder with a socket; `serve` is called for each connection."""
    tasks = set()

    async def accept(reader, writer):
        task = asyncio.current_task()
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # one of both ends has gone
        finally:
            await _close(writer)

    with tempfile.TemporaryDirectory(prefix="firnline-line-") as folder:
        server = await asyncio.start_unix_server(accept, Path(folder) / SOCKET)
        try:
            yield folder
        finally:
            server.close()
            for task in list(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


# -- a connection that breaks -----------------------------------------------------------------


class Line:
    """Forwards everything; breaks once at the next message that holds `cut_at`.

    Before the server gets it, or after it is done and before the client gets the answer.
    """

    def __init__(self, database):
        self._database = database
        self.cut_at, self.before, self.cuts = b"", True, 0
        self.sent = []  # to the server

    def break_at(self, text, *, before):
        self.cut_at, self.before = text, before

    async def serve(self, reader, writer):
        from_server, to_server = await _connect(self._database)
        answers = asyncio.create_task(_pump(from_server, writer))
        try:
            while data := await reader.read(1 << 20):
                self.sent.append(data)
                broken = bool(self.cut_at) and self.cut_at in data
                if broken:
                    self.cut_at, self.cuts = b"", self.cuts + 1
                    if self.before:
                        return
                    answers.cancel()
                    await asyncio.wait([answers])
                to_server.write(data)
                await to_server.drain()
                if broken:
                    rest = asyncio.create_task(_pump(reader, to_server))  # of a long message
                    await from_server.read(1 << 20)  # it is done, and the answer is lost
                    rest.cancel()
                    await asyncio.wait([rest])
                    return
        finally:
            answers.cancel()
            await _close(to_server)


async def _close(writer):
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def _pump(reader, writer):
    with suppress(ConnectionError):
        while data := await reader.read(1 << 20):
            writer.write(data)
            await writer.drain()
        writer.close()


# -- a pooler ---------------------------------------------------------------------------------


class Pooler:
    """Gives every transaction any free server connection."""

    def __init__(self, database, size=2):
        self._database = database
        self._size = size
        self._idle = []
        self._free = asyncio.Semaphore(size)
        self.transactions = 0

    async def _server(self):
        known = conninfo_to_dict(self._database.conninfo)
        reader, writer = await _connect(self._database)
        fields = ["user", known["user"], "database", known["dbname"], "client_encoding", "UTF8", ""]
        body = struct.pack("!I", 196608) + b"".join(item.encode() + b"\0" for item in fields)
        writer.write(struct.pack("!I", len(body) + 4) + body)
        while (await _message(reader))[0] != b"Z":
            pass
        return reader, writer

    async def serve(self, reader, writer):
        if not await _startup(reader, writer):
            return
        held = None
        try:
            while True:
                kind, body = await _message(reader)
                if kind == b"X":
                    return
                if held is None:
                    held = await self._take()
                held[1].write(_packed(kind, body))
                if kind in (b"Q", b"S") and await _answer(held[0], writer) == b"I":
                    self._give(held)
                    held = None
        finally:
            if held is not None:  # in the middle of a transaction: no other client may use it
                self._free.release()
                await _close(held[1])

    async def _take(self):
        await self._free.acquire()
        self.transactions += 1
        random.shuffle(self._idle)
        return self._idle.pop() if self._idle else await self._server()

    def _give(self, held):
        self._idle.append(held)
        self._free.release()

    async def close(self):
        for _, writer in self._idle:
            await _close(writer)


async def _startup(reader, writer):
    (size,) = struct.unpack("!I", await reader.readexactly(4))
    body = await reader.readexactly(size - 4)
    (code,) = struct.unpack("!I", body[:4])
    if code in (80877103, 80877104):  # TLS or GSS: no
        writer.write(b"N")
        return await _startup(reader, writer)
    if code == 80877102:  # a request to cancel
        return False
    writer.write(_packed(b"R", struct.pack("!I", 0)))
    for name, value in (("client_encoding", "UTF8"), ("server_version", "18.0"),
                        ("standard_conforming_strings", "on")):  # fmt: skip
        writer.write(_packed(b"S", f"{name}\0{value}\0".encode()))
    writer.write(_packed(b"K", struct.pack("!II", 1, 1)))
    writer.write(_packed(b"Z", b"I"))
    await writer.drain()
    return True


async def _answer(reader, writer):
    """Forward the server's messages up to the end of its answer; returns the session's state."""
    while True:
        kind, body = await _message(reader)
        writer.write(_packed(kind, body))
        if kind == b"Z":
            await writer.drain()
            return body


async def _message(reader):
    kind = await reader.readexactly(1)
    (size,) = struct.unpack("!I", await reader.readexactly(4))
    return kind, await reader.readexactly(size - 4)


def _packed(kind, body):
    return kind + struct.pack("!I", len(body) + 4) + body
