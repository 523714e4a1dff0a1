"""What all tests share, and the list of requirements that a run ends with."""

from collections import defaultdict
from itertools import chain
from pathlib import Path

import pytest

from firnline import Memory, recaller

BACKENDS = ("sqlite", "memory")


@pytest.fixture(autouse=True)
def _no_embedder(monkeypatch, request):
    """Tests name their embedder: the one that is installed would load a model for each of them."""
    if "default_embedder" not in request.keywords:
        monkeypatch.setattr(recaller, "default_embedder", lambda: None)


@pytest.fixture(params=BACKENDS)
def url(request, tmp_path: Path) -> str:
    """A new store's URL, once for each backend."""
    return f"sqlite:///{tmp_path}/store.db" if request.param == "sqlite" else "memory:"


@pytest.fixture
async def memory(url: str):
    """An open memory, once for each backend."""
    async with Memory.open(url) as memory:
        yield memory


# -- one line per requirement -----------------------------------------------------------------


def _backend(item: pytest.Item) -> str:
    """Where a test ran: the backend its parameter or its class names, if any."""
    callspec = getattr(item, "callspec", None)
    given = callspec.params.get("url") if callspec else None
    return given or getattr(getattr(item, "cls", None), "backend", "")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    # On the report, which is all that comes back from the process in which a test ran.
    for mark in item.iter_markers("requirement"):
        report.user_properties.append(("requirement", (mark.args[0], _backend(item))))
    return report


def pytest_terminal_summary(terminalreporter):
    results = defaultdict(set)
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport) and (report.when == "call" or not report.passed):
            for kind, value in report.user_properties:
                if kind == "requirement":
                    name, backend = value
                    results[name].add((backend, report.passed))
    if results:
        terminalreporter.section("requirements")
    for name, runs in sorted(results.items()):
        where = " ".join(name for name in BACKENDS if name in {backend for backend, _ in runs})
        word = "passed" if all(passed for _, passed in runs) else "failed"
        terminalreporter.write_line(f"{name} {word} {where}".rstrip())
