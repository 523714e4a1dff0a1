"""A history that is passed in repeatedly is in the log once, for every adapter."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline import Memory, Message, Part, ToolCall
from firnline.adapters import history_sync
from firnline.adapters.history_sync import HistorySync
from firnline.store import RamStore

WORDS = st.sampled_from(["ok", "ok", "and then?", "no"])
STEPS = st.lists(
    st.tuples(
        st.lists(WORDS, max_size=3),  # what is said
        st.sampled_from(["same ids", "new ids", "no ids"]),  # how the history is handed over
        st.booleans(),  # whether by another process
        st.booleans(),  # whether another user writes in between
    ),
    max_size=8,
)


@settings(max_examples=60)
@given(STEPS)
def test_every_message_is_stored_once_and_in_order(steps):
    asyncio.run(_stored_once(steps))


async def _stored_once(steps):
    async with Memory(RamStore(), embedder=None) as memory:
        keepers = [HistorySync(memory), HistorySync(memory)]
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
            places = await keepers[other].store_new("c", shown, said.__getitem__)
            log = await memory.read("c")
            ours = [e for e in log if not e.message.text.startswith("beside")]
            assert [e.message.text for e in ours] == [message.text for message in said]
            assert len(log) == len(said) + others
            assert {e.seq: at for at, e in enumerate(ours)} == dict(places)


TURNS = st.lists(
    st.tuples(
        WORDS,  # what the user says
        WORDS,  # what the model answers
        st.booleans(),  # whether it calls a tool before
        st.integers(1, 3),  # how often it is tried
        st.booleans(),  # whether by another process
    ),
    max_size=6,
)


@pytest.mark.parametrize("ids", ["fresh ids", "no ids"])
@pytest.mark.parametrize("whole", [True, False], ids=["whole histories", "only what is new"])
@settings(max_examples=60)
@given(turns=TURNS)
def test_a_repeated_message_is_stored_again_and_a_retry_is_not(whole, ids, turns):
    """The log holds what was said, turn by turn, whatever the words and however often tried."""
    asyncio.run(_said_again(turns, whole=whole, ids=ids))


async def _said_again(turns, *, whole, ids):
    async with Memory(RamStore(), embedder=None) as memory:
        keepers = [HistorySync(memory), HistorySync(memory)]
        said, runs = [Message.system("Be brief.")], 0
        for question, answer, calls, tries, other in turns:
            before = list(said) if whole else said[:1]
            steps = [Message.user(question)]
            if calls:  # some models number their calls from 0 in each run
                call = ToolCall.of("call-1", "f", {})
                steps.append(Message.assistant(None, tool_calls=[call]))
                steps.append(Message.tool("42", tool_call_id="call-1"))
            steps.append(Message.assistant(answer))
            for attempt in range(tries):
                runs += 1
                # All but the last fail before the model says anything.
                for end in [1, 1] if attempt < tries - 1 else [1, *range(1, len(steps) + 1)]:
                    given = [*before, *steps[:end]]
                    names = [
                        f"{runs}-{at}" if ids == "fresh ids" else "" for at in range(len(given))
                    ]
                    places = await keepers[other].store_new("c", names, given.__getitem__)
                    assert sorted(places.values()) == list(range(len(given)))
            said += steps
            log = await memory.read("c")
            assert [_spoken(e.message) for e in log] == [_spoken(m) for m in said]


def _spoken(message):
    return message.role, message.text, message.tool_calls


async def test_messages_one_by_one_under_their_own_ids_are_all_stored(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        said = [Message.user("yes"), Message.assistant("Which one?"), Message.user("yes")]
        for keeper in (HistorySync(memory), HistorySync(memory, stable=True)):
            for at, message in enumerate(said):
                await keeper.store_new("c", [f"{id(keeper)}-{at}"], lambda _, given=message: given)
        texts = [entry.message.text for entry in await memory.read("c")]
        assert texts == ["yes", "Which one?", "yes", "yes", "Which one?", "yes"]


async def test_where_ids_are_stable_the_same_words_under_another_id_are_new(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        for name in ("a", "b", "a"):
            keeper = HistorySync(memory, stable=True)
            await keeper.store_new("c", [name], lambda _: Message.user("yes"))
        assert len(await memory.read("c")) == 2


async def test_an_old_history_continues_after_its_start_was_repeated(tmp_path):
    """As from two browser windows, one of which was reopened."""
    async with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        old = [Message.user("hi"), Message.assistant("Hello."), Message.user("What is new?")]
        anew = [Message.user("hi"), Message.assistant("Hello again.")]
        for given in (old[:1], old[:2], anew[:1], anew, old):
            await HistorySync(memory).store_new("c", [""] * len(given), given.__getitem__)
        log = [entry.message for entry in await memory.read("c")]
        assert [message.text for message in log] == [m.text for m in (*old[:2], *anew, old[2])]


async def test_what_an_agent_takes_out_of_its_state_stays_in_the_log(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        said = [Message.user(f"m{number}") for number in range(6)]
        await HistorySync(memory).store_new("c", [f"id-{at}" for at in range(5)], said.__getitem__)
        left = [0, 3, 4, 5]
        places = await HistorySync(memory).store_new(
            "c", [f"id-{at}" for at in left], lambda place: said[left[place]]
        )
        assert places == {0: 0, 3: 1, 4: 2, 5: 3}
        assert [e.message.text for e in await memory.read("c")] == [m.text for m in said]


async def test_two_that_hand_over_the_same_at_once_store_it_once(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        said = [Message.user(f"m{number}") for number in range(20)]
        ids = [f"id-{at}" for at in range(20)]
        keepers = [HistorySync(memory) for _ in range(4)]
        await asyncio.gather(*(k.store_new("c", ids, said.__getitem__) for k in keepers))
        assert [e.message.text for e in await memory.read("c")] == [m.text for m in said]


async def test_after_erasing_a_conversation_starts_over(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        said = [Message.user(f"m{number}") for number in range(3)]
        keeper = HistorySync(memory)
        await keeper.store_new("c", ["a", "b", "c"], said.__getitem__)
        await memory.erase("c")
        await keeper.store_new("c", ["d"], lambda _: Message.user("new"))
        assert [e.message.text for e in await memory.read("c")] == ["new"]


async def test_pictures_in_the_same_place_are_distinguished_and_thoughts_may_be_left_out(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        for url in ("a.png", "b.png", "a.png"):
            await HistorySync(memory).store_new(
                "c", [""], lambda _, url=url: Message.user([Part.image(url)])
            )
        assert len(await memory.read("c")) == 2
        thought = Message.assistant([Part.reasoning("hm"), Part.of_text("so")])
        for answer in (thought, Message.assistant("so")):
            await HistorySync(memory).store_new("d", [""], lambda _, answer=answer: answer)
        assert len(await memory.read("d")) == 1


async def test_a_long_history_is_stored_in_batches(tmp_path, monkeypatch):
    async with Memory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        monkeypatch.setattr(history_sync, "_BATCH", 7)
        said = [Message.user(f"m{number}") for number in range(30)]
        places = await HistorySync(memory).store_new("c", [""] * 30, said.__getitem__)
        assert dict(places) == {at: at for at in range(30)}
        assert [e.message.text for e in await memory.read("c")] == [m.text for m in said]
