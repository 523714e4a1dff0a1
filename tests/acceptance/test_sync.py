"""The synchronous API is the asynchronous one without await."""

import inspect
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import firnline
from firnline import Message, sync
from firnline.errors import StoreError, StoreNotOpen


def _methods(kind: type) -> dict[str, str]:
    return {
        name: str(inspect.signature(member)).replace("AsyncIterator", "Iterator")
        for name, member in inspect.getmembers(kind, callable)
        if not name.startswith("_") or name == "__init__"
    }


def test_every_method_is_there_with_an_equal_signature():
    plain = _methods(sync.Memory)
    assert plain.keys() - _methods(firnline.Memory).keys() == {"run", "walk"}  # of the facade
    del plain["run"], plain["walk"]
    assert plain == _methods(firnline.Memory)


def test_every_name_is_there_and_all_but_the_memory_are_the_same():
    assert sync.__all__ == firnline.__all__
    others = set(firnline.__all__) - {"Memory"}
    assert all(getattr(sync, name) is getattr(firnline, name) for name in others)


def test_every_method_of_the_asynchronous_face_that_waits_is_plain_here():
    for name in _methods(firnline.Memory):
        assert not inspect.iscoroutinefunction(getattr(sync.Memory, name))


@pytest.mark.promise("durable")
def test_the_flow_without_await(url, tmp_path):
    with sync.Memory.open(url) as memory:
        assert memory.append("c", Message.user("hello")).seq == 0
        assert memory.append("c", [Message.assistant("hi")], expected_seq=1).seq == 1
        assert [entry.message.text for entry in memory.read("c")] == ["hello", "hi"]
        assert [hit.seq for hit in memory.recall("c", "hello")] == [0]
        assert memory.verify("c")
        assert memory.export(tmp_path / "x.jsonl").entries == 2
        assert memory.import_(tmp_path / "x.jsonl").added == 0
        assert memory.archive("c", keep=0).entries == 2
        assert memory.restore("c") == 2
        assert memory.describe("c", project="p").project == "p"
        assert memory.branch("c", 0, "d").metadata == {"branch": {"of": "c", "at": 0}}
        assert memory.erase("d").entries == 1
        assert memory.tokens_between("c", 0, 1) == memory.head("c").tokens
        assert len(memory.newest("c", tokens=1000)) == 2
        assert memory.check()
        assert memory.erase("c").entries == 2
        assert memory.conversations() == []
        assert (memory.projects(), memory.digests("c")) == ([], [])


@pytest.mark.promise("dense")
def test_many_threads_share_one_memory(url):
    with sync.Memory.open(url) as memory, ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda i: memory.append("c", Message.user(str(i))), range(200)))
        assert {entry.message.text for entry in memory.read("c")} == set(map(str, range(200)))


def test_it_must_be_started_and_can_be_used_again(url):
    memory = sync.Memory.open(url)
    with pytest.raises(StoreNotOpen, match="with Memory"):
        memory.read("c")
    for _ in range(2):
        with memory:
            memory.append("c", Message.user("x"))
    memory.close()


def test_a_store_that_cannot_be_opened_leaves_no_thread(tmp_path):
    before = threading.active_count()
    with pytest.raises(StoreError), sync.Memory.open(f"sqlite:///{tmp_path}/no/such/folder.db"):
        pass
    assert threading.active_count() == before


async def test_it_works_next_to_a_running_event_loop(url):
    with sync.Memory.open(url) as memory:
        assert memory.append("c", Message.user("x")).seq == 0
