"""Fixtures of all tests, and the list of requirements at the end of a run."""

import gc
import os
import shutil
import signal
import ssl
import sys
import tempfile
from collections import defaultdict
from functools import cache
from itertools import chain
from pathlib import Path

import anyio._backends._asyncio
import hypothesis
import pytest

from firnline import Memory
from firnline.engine import recall
from support import debian, mongo_server, postgres_server, selection
from support.selection import BACKENDS, backend

# pytest rewrites what anyio imports, which CPython 3.11.7 refuses in a deep stack: so it is now.
assert anyio._backends._asyncio

# No deadline: speed is measured in benchmarks.
EXAMPLES = 400 if "FIRNLINE_TORTURE" in os.environ else 25
SLOW = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile(
    "firnline", deadline=None, max_examples=EXAMPLES, suppress_health_check=SLOW
)
hypothesis.settings.load_profile("firnline")

# Shells start background jobs with SIGINT ignored, and programs inherit that: those
# that tests start would not get Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Reading the system's certificates takes longer than most tests, and each HTTP client does it.
ssl.create_default_context = cache(ssl.create_default_context)

# Tests write to memory if there is room: thousands of new stores wait for no disk.
# Tests of durability choose a disk.
MEMORY = Path("/dev/shm")
ROOM = 4 * 1024**3


def _has_room(place: Path) -> bool:
    """Whether there is room for the files of a run, and programs can be run there."""
    runs = not os.statvfs(place).f_flag & os.ST_NOEXEC
    return runs and shutil.disk_usage(place).free > ROOM


if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and _has_room(MEMORY):
    os.environ["TMPDIR"] = os.fspath(MEMORY)
    tempfile.tempdir = None


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Imported and collected objects stay until the end: the garbage collector skips them.

    It runs rarely for later ones: it took a twentieth of the time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000)
        gc.enable()


@pytest.fixture(autouse=True)
def _no_embedder(monkeypatch, request):
    """Tests choose their embedder: the installed one would load a model for each of them."""
    if "default_embedder" not in request.keywords:
        monkeypatch.setattr(recall, "default_embedder", lambda: None)


def pytest_runtest_setup(item):
    """Skip what needs a program that Debian packages where there is none."""
    for mark in item.iter_markers("debian"):
        if debian.find(mark.args[0]) is None:
            pytest.skip(debian.HELP.format(debian.NEEDED[mark.args[0]]))


@pytest.fixture(params=BACKENDS)
def url(request, tmp_path: Path) -> str:
    """A new store's URL, once for each backend."""
    if request.param in ("postgres", "mongo"):
        return request.getfixturevalue(request.param).url
    return f"sqlite:///{tmp_path}/store.db" if request.param == "sqlite" else "memory:"


@pytest.fixture
async def memory(url: str):
    """An open memory that digests at once, once for each backend."""
    async with Memory.open(url, background=False) as memory:
        yield memory


# -- servers for all processes of a run --------------------------------------------------------

_SERVERS = {}


def _server(name, kit, available) -> str:
    """The URL of an existing server, or of one that is started now and stopped at the end."""
    if kit.EXISTING or not available:
        return kit.EXISTING
    if name not in _SERVERS:
        _SERVERS[name] = kit.Server()
    return _SERVERS[name].url


def _postgres_server() -> str:
    return _server("postgres", postgres_server, postgres_server.binaries())


def _mongo_server() -> str:
    try:
        return _server("mongo", mongo_server, mongo_server.script())
    except mongo_server.DidNotStartError as error:
        sys.stderr.write(f"{error}\n")
        return ""


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """All processes of a run share the servers and the selection of the main process."""
    node.workerinput["postgres"] = _postgres_server()
    node.workerinput["mongo"] = _mongo_server()
    node.workerinput["whole"] = _is_whole(node.config)


def pytest_unconfigure():
    while _SERVERS:
        _SERVERS.popitem()[1].stop()


@pytest.fixture(scope="session")
def postgres_databases(request):
    """Databases of a real server, emptied for each test."""
    of_worker = getattr(request.config, "workerinput", {})
    server = of_worker["postgres"] if of_worker else _postgres_server()
    if not server:
        pytest.skip(postgres_server.NOT_AVAILABLE)
    databases = postgres_server.Databases(server, f"firnline_{of_worker.get('workerid', 'main')}")
    yield databases
    databases.close()


@pytest.fixture
def postgres(postgres_databases):
    """An empty database, for a role that is subject to policies."""
    with postgres_databases.one() as database:
        yield database


@pytest.fixture(scope="session")
def mongo_databases(request):
    """Databases of a real server, emptied for each test."""
    of_worker = getattr(request.config, "workerinput", {})
    server = of_worker["mongo"] if of_worker else _mongo_server()
    if not server:
        pytest.skip(mongo_server.NOT_AVAILABLE)
    databases = mongo_server.Databases(server, f"firnline_{of_worker.get('workerid', 'main')}")
    yield databases
    databases.close()


@pytest.fixture
def mongo(mongo_databases):
    """An empty database."""
    with mongo_databases.one() as database:
        yield database


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """One more than the number of cores: tests of pages, servers and crashes wait at times."""
    return min((os.cpu_count() or 1) + 1, 8)


def pytest_collection_modifyitems(config, items):
    """See `support.selection`."""
    left_out = selection.spared(items) if _is_whole(config) else set()
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
    rest = [item for item in items if item not in left_out]
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    items[:] = selection.shared_out(rest, workers)


def _is_whole(config) -> bool:
    """Whether this is a plain run of all tests: none were selected, and no long versions."""
    named = config.args_source != pytest.Config.ArgsSource.TESTPATHS
    asked = named or config.option.keyword or config.option.markexpr
    whole = getattr(config, "workerinput", {}).get("whole", not asked)
    return whole and "FIRNLINE_TORTURE" not in os.environ


# -- one line per requirement -----------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    # On the report: nothing else comes back from the process that ran the test.
    for mark in item.iter_markers("requirement"):
        report.user_properties.append(("requirement", (mark.args[0], backend(item))))
    return report


def _requirements(stats):
    """For each requirement: on which backends its tests ran, and whether they passed."""
    results = defaultdict(set)
    for report in chain.from_iterable(stats.values()):
        if not isinstance(report, pytest.TestReport) or report.skipped:
            continue
        if report.when == "call" or not report.passed:
            for kind, value in report.user_properties:
                if kind == "requirement":
                    results[value[0]].add((value[1], report.passed))
    return results


def _hops(stats):
    """What `tests/tidy/test_hops.py` measured."""
    reports = (r for r in chain.from_iterable(stats.values()) if isinstance(r, pytest.TestReport))
    found = (dict(report.user_properties).get("hops") for report in reports)
    return sorted({(name, tuple(figures)) for name, figures in filter(None, found)})


def pytest_terminal_summary(terminalreporter):
    hops = _hops(terminalreporter.stats)
    if hops:
        terminalreporter.section("hops")
    for name, (depth, files, all_depth, all_files) in hops:
        every = f"all {all_depth} deep, {all_files} files"
        terminalreporter.write_line(f"{name}: flow {depth} deep, {files} files; {every}")
    results = _requirements(terminalreporter.stats)
    if results:
        terminalreporter.section("requirements")
    for name, runs in sorted(results.items()):
        where = " ".join(name for name in BACKENDS if name in {met for met, _ in runs})
        word = "passed" if all(passed for _, passed in runs) else "failed"
        terminalreporter.write_line(f"{name} {word} {where}".rstrip())
