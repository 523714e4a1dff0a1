"""A history that is handed over again and again is in the log once, whoever hands it over."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from firnline import Memory, Message, Part
from firnline.adapters import keeping
from firnline.adapters.keeping import Keeper
from firnline.store import RamStore

WORDS = st.sampled_from(["ok", "ok", "and then?", "no"])
STEPS = st.lists(
    st.tuples(
        st.lists(WORDS, max_size=3),  # what is said
        st.sampled_from(["same ids", "new ids", "no ids"]),  # how the history is handed over
        st.booleans(),  # whether by another process
        st.booleans(),  # whether somebody else says something in between
    ),
    max_size=8,
)


@settings(max_examples=60)
@given(STEPS)
def test_every_message_is_stored_once_and_in_order(steps):
    asyncio.run(_stored_once(steps))


async def _stored_once(steps):
    async with Memory(RamStore(), embedder=None) as memory:
        keepers = [Keeper(memory), Keeper(memory)]
        said, ids, others = [], [], 0
        for number, (texts, way, other, beside) in enumerate(steps):
            said += [
                Message.user(text) if (len(said) + at) % 2 == 0 else Message.assistant(text)
                for at, text in enumerate(texts)
            ]
            ids += [f"id-{at}" for at in range(len(ids), len(said))]
            if beside:
                await memory.append("c", Message.user(f"beside {number}"))
                others += 1
            shown = {
                "same ids": ids,
                "new ids": [f"{number}-{at}" for at in range(len(said))],
                "no ids": [""] * len(said),
            }[way]
            places = await keepers[other].keep("c", shown, said.__getitem__)
            log = await memory.read("c")
            ours = [e for e in log if not e.message.text.startswith("beside")]
            assert [e.message.text for e in ours] == [message.text for message in said]
            assert len(log) == len(said) + others
            assert {e.seq: at for at, e in enumerate(ours)} == dict(places)


async def test_what_an_agent_takes_out_of_its_state_stays_in_the_log(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        said = [Message.user(f"m{number}") for number in range(6)]
        await Keeper(memory).keep("c", [f"id-{at}" for at in range(5)], said.__getitem__)
        left = [0, 3, 4, 5]
        places = await Keeper(memory).keep(
            "c", [f"id-{at}" for at in left], lambda place: said[left[place]]
        )
        assert places == {0: 0, 3: 1, 4: 2, 5: 3}
        assert [e.message.text for e in await memory.read("c")] == [m.text for m in said]


async def test_two_that_hand_over_the_same_at_once_store_it_once(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        said = [Message.user(f"m{number}") for number in range(20)]
        ids = [f"id-{at}" for at in range(20)]
        keepers = [Keeper(memory) for _ in range(4)]
        await asyncio.gather(*(k.keep("c", ids, said.__getitem__) for k in keepers))
        assert [e.message.text for e in await memory.read("c")] == [m.text for m in said]


async def test_after_erasing_a_conversation_begins_anew(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        said = [Message.user(f"m{number}") for number in range(3)]
        keeper = Keeper(memory)
        await keeper.keep("c", ["a", "b", "c"], said.__getitem__)
        await memory.erase("c")
        await keeper.keep("c", ["d"], lambda _: Message.user("new"))
        assert [e.message.text for e in await memory.read("c")] == ["new"]


async def test_pictures_in_the_same_place_are_told_apart_and_thoughts_may_be_left_out(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        for url in ("a.png", "b.png", "a.png"):
            await Keeper(memory).keep("c", [""], lambda _, url=url: Message.user([Part.image(url)]))
        assert len(await memory.read("c")) == 2
        thought = Message.assistant([Part.reasoning("hm"), Part.of_text("so")])
        for answer in (thought, Message.assistant("so")):
            await Keeper(memory).keep("d", [""], lambda _, answer=answer: answer)
        assert len(await memory.read("d")) == 1


async def test_a_long_history_is_taken_over_in_batches(tmp_path, monkeypatch):
    async with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        monkeypatch.setattr(keeping, "_BATCH", 7)
        said = [Message.user(f"m{number}") for number in range(30)]
        places = await Keeper(memory).keep("c", [""] * 30, said.__getitem__)
        assert dict(places) == {at: at for at in range(30)}
        assert [e.message.text for e in await memory.read("c")] == [m.text for m in said]
