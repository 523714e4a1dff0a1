"""A plain run leaves out tests that other tests cover."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

from support import selection

STORES = selection.BACKENDS


class Item:
    """As much of a test as is looked at."""

    def __init__(self, name, store, *proofs, folder="acceptance", **params):
        self.nodeid = f"tests/{folder}/test_it.py::{name}[{store}-{params}]"
        self.path = Path(f"/tests/{folder}/test_it.py")
        self.originalname = self.name = name
        self.callspec = SimpleNamespace(params={"url": store, **params})
        self._marks = [SimpleNamespace(args=(proof,)) for proof in proofs]

    def iter_markers(self, name):
        if name == "thorough":
            return iter(["thorough"] if self.name.startswith("test_closer") else ())
        return iter(self._marks if name == "requirement" else ())


def on_all(name, *proofs, **more):
    return [Item(name, store, *proofs, **more) for store in STORES]


def taken(items):
    left_out = selection.spared(items)
    return [item for item in items if item not in left_out]


def test_each_test_meets_sqlite_and_what_proves_something_new_the_others():
    items = [item for n in range(30) for item in on_all(f"test_{n:02}", *["A1"][: n % 2])]
    met = Counter(selection.backend(item) for item in taken(items))
    assert met == {"sqlite": 30, "memory": 1, "postgres": 1, "mongo": 1}


def test_all_that_is_proved_is_proved_with_every_store():
    items = [*on_all("test_once", "A1"), *on_all("test_twice", "B1"), *on_all("test_more", "B1")]
    items += [item for n in range(9) for item in on_all(f"test_{n}", "C1", f"D{n}", size=n)]
    proved = {
        (mark.args[0], selection.backend(item))
        for item in taken(items)
        for mark in item.iter_markers("requirement")
    }
    proofs = {"A1", "B1", "C1", *(f"D{n}" for n in range(9))}
    assert proved == {(proof, store) for proof in proofs for store in STORES}
    assert len(taken(on_all("test_one", "B1") + on_all("test_two", "B1"))) == 5
    assert len(taken(on_all("test_one", "B1") + on_all("test_two", "B1", "B2"))) == 8


def test_parameters_make_separate_tests():
    items = [item for size in (1, 2, 3) for item in on_all("test_it", size=size)]
    chosen = [(item.callspec.params["size"], selection.backend(item)) for item in taken(items)]
    assert chosen == [(1, "sqlite"), (2, "sqlite"), (3, "sqlite")]


def test_what_does_not_meet_sqlite_or_is_elsewhere_is_left_alone():
    items = [*on_all("test_it")[2:], *on_all("test_store", folder="conformance")]
    assert selection.spared(items) == set()


def test_what_looks_closer_is_left_out():
    items = [*on_all("test_it", "A1", folder="page"), *on_all("test_closer", folder="page")]
    assert selection.spared(items) == set(items[4:])


def test_the_long_ones_come_first_in_each_process():
    long = on_all("test_long", folder="torture")
    short = [item for n in range(8) for item in on_all(f"test_{n}")]
    order = selection.shared_out(short + long, 4)
    assert [item.name for item in order[::9]] == ["test_long"] * 4
    assert set(order) == {*short, *long}
