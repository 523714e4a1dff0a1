"""A real MongoDB for the tests: an existing server, or one that a script starts.

`FIRNLINE_TEST_MONGO` is the URL of an existing one; else the script next to the checkout is run,
once for all processes of a run. Its engine has no sessions and no transactions.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from pymongo import DeleteMany, MongoClient, WriteConcern

EXISTING = os.environ.get("FIRNLINE_TEST_MONGO", "")
NOT_AVAILABLE = "server not available"

_SCRIPT = Path(__file__).parents[3] / "shared" / "tools" / "mongo" / "mongo-server"
_ROOM = 4 * 1024**3
_TRIES = 10
_BROKEN_PIPE = 141  # the script fails like this at times: a broken pipe between its parts
_KEPT = ("schema", "chat_sessions")


def script():
    """The script that starts a server, or None if there is none."""
    return _SCRIPT if _SCRIPT.is_file() and shutil.which("node") and shutil.which("npm") else None


class DidNotStartError(Exception):
    """The script did not start a server."""


class Server:
    """A server that can be killed and started again at the same URL."""

    def __init__(self, *, durable=False):
        # Every write waits for the journal, so it is in memory unless the test is about durability.
        wanted = "/var/tmp" if durable else "/dev/shm"
        usable = os.access(wanted, os.W_OK) and shutil.disk_usage(wanted).free > _ROOM
        place = wanted if usable else None
        self.folder = Path(tempfile.mkdtemp(prefix="firnline-mongo-", dir=place))
        self._socket = self.folder / "mongo.sock"
        self._process = self._place = None
        try:
            self.start()
        except BaseException:
            self.stop()
            raise

    @property
    def url(self):
        return f"mongodb://{quote(str(self._socket), safe='')}/?directConnection=true"

    def start(self):
        uri = self._start()
        for _ in range(_TRIES):
            if uri or self._process.returncode != _BROKEN_PIPE:
                break
            uri = self._start()
        if not uri:
            log = (self.folder / "log").read_text(errors="replace")
            raise DidNotStartError(f"the server did not start: {log}")
        # Its socket is a new one each time; the link to it stays.
        self._place = Path(unquote(urlsplit(uri).netloc))
        self._socket.unlink(missing_ok=True)
        self._socket.symlink_to(self._place)

    def _start(self):
        """Where it listens; empty if the script ended."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [_SCRIPT, self.folder / "data"],
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        # If this process dies, the pipe to the guard is closed, and the guard ends the server.
        guard = ["sh", "-c", f"read _; kill -TERM {self._process.pid} 2>/dev/null"]
        self._guard = subprocess.Popen(guard, stdin=subprocess.PIPE, start_new_session=True)
        uri = self._process.stdout.readline().decode().strip()
        if not uri:
            self._ended()
        return uri

    def kill(self):
        """With -9: the script has become the server, so this is the server's process."""
        self._process.kill()
        self._ended()

    def restart(self):
        """As an administrator does."""
        self._process.send_signal(signal.SIGTERM)
        self._ended(60)
        self.start()

    def _ended(self, seconds=None):
        self._process.wait(seconds)
        self._process.stdout.close()
        self._guard.communicate()
        if self._place is not None:
            shutil.rmtree(self._place.parent, ignore_errors=True)

    def stop(self):
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._ended(20)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Databases:
    """Databases on a server, each reused when it is empty."""

    def __init__(self, url, prefix):
        self._url, self._prefix = url, prefix
        self.client = MongoClient(url, serverSelectionTimeoutMS=20_000)
        self._free, self._made = [], 0

    def close(self):
        for database in self._free:
            with suppress(Exception):
                self.client.drop_database(database.name)
        self.client.close()

    @contextmanager
    def one(self):
        """An empty database."""
        database = self._free.pop() if self._free else self._new()
        try:
            yield database
        finally:
            database.clean()
            self._free.append(database)

    def _new(self):
        self._made += 1
        name = f"{self._prefix}_{self._made}"
        self.client.drop_database(name)
        return Database(self.client, self._url, name)


class Database:
    """One database, with direct access to its contents."""

    def __init__(self, client, server, name):
        self.name = name
        self._client = client
        self.url = urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        self.look = client.get_database(name, write_concern=WriteConcern("majority", j=True))
        self._names = ()
        self._dropped = False

    def reconnect(self):
        """The driver reconnects by itself, also after the server was killed."""

    def clean(self):
        """As new, but with collections and indexes, unless a test has changed those."""
        if self._dropped:
            self._client.drop_database(self.name)
            self._dropped, self._names = False, ()
            return
        if not self._names:
            self._names = [
                name
                for name in self.look.list_collection_names()
                if name not in _KEPT and not name.startswith("system.")
            ]
        if self._names:
            every = [DeleteMany({}, namespace=f"{self.name}.{name}") for name in self._names]
            self._client.bulk_write(every, ordered=False)

    def meddle(self):
        """The schema must not be reused by other tests."""
        self._dropped = True
