"""Which tests a plain run includes, and in which order its processes run them.

Every store passes the conformance suites in full. So everything
built on stores is tested with SQLite; and each requirement and promise is tested with
every other store, too, by at least one test. A test that only adds depth to
others is marked `thorough`, and left out. `make torture`, or naming files or folders, runs
everything with all stores.
"""

from collections.abc import Iterable, Iterator, Sequence

import pytest

BACKENDS = ("sqlite", "memory", "postgres", "mongo")
FIRST = "sqlite"
BUILT_ON_STORES = {"acceptance", "server", "torture"}

Group = dict[str, pytest.Item]
"""One test, by backend."""


def backend(item: pytest.Item) -> str:
    """The backend of a test, by its parameter or its class, if any."""
    given = next((value for name, value in _params(item) if name in {"url", "shared"}), None)
    return given or getattr(getattr(item, "cls", None), "backend", "")


def spared(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """The tests that a plain run leaves to `make torture`."""
    groups = [group for group in _groups(items) if FIRST in group]
    taken = set(_taken(groups))
    elsewhere = {item for group in groups for item in group.values() if item not in taken}
    return elsewhere | {item for item in items if next(item.iter_markers("thorough"), None)}


def _groups(items: Iterable[pytest.Item]) -> list[Group]:
    """The tests that run on several stores, always in the same order."""
    found: dict[tuple[object, ...], Group] = {}
    for item in sorted(items, key=lambda item: item.nodeid):
        if backend(item) in BACKENDS and not BUILT_ON_STORES.isdisjoint(item.path.parts):
            found.setdefault(_test(item), {})[backend(item)] = item
    return list(found.values())


def _taken(groups: list[Group]) -> Iterator[pytest.Item]:
    """Each test with SQLite, and with other stores enough to prove everything on them."""
    proved: set[tuple[str, str]] = set()
    for group in groups:
        for name, item in group.items():
            proofs = {(proof, name) for proof in _proofs(group)}
            if name == FIRST or proofs - proved:
                proved |= proofs
                yield item


def _proofs(group: Group) -> set[str]:
    """The requirements and promises that a test is marked with."""
    item = group[FIRST]
    return {
        str(mark.args[0]) for name in ("requirement", "promise") for mark in item.iter_markers(name)
    }


def _test(item: pytest.Item) -> tuple[object, ...]:
    """The same for all stores: the test's path, its name and its other parameters."""
    others = [(name, repr(value)) for name, value in _params(item) if name not in {"url", "shared"}]
    return item.path, getattr(item, "originalname", item.name), tuple(others)


def _params(item: pytest.Item) -> list[tuple[str, object]]:
    callspec = getattr(item, "callspec", None)
    return list(callspec.params.items()) if callspec else []


# -- the order --------------------------------------------------------------------------------


def shared_out(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Ordered in equal parts, one per process, each with its share of the long tests.

    Long tests come first, so that no process runs one alone at the end.
    """
    long, short = [], []
    for item in items:
        (long if _is_long(item) else short).append(item)
    cuts = [len(short) * part // workers for part in range(workers + 1)]
    return [
        item
        for part in range(workers)
        for item in (*long[part::workers], *short[cuts[part] : cuts[part + 1]])
    ]


def _is_long(item: pytest.Item) -> bool:
    marked = next(item.iter_markers("long"), None) is not None
    return marked or not {"torture", "conformance"}.isdisjoint(item.path.parts)
