"""Seed C: what a topic keeps active, what is digested and archived, and how it is restored."""

import asyncio
import base64
import gzip
import json
import os
import random
from datetime import timedelta
from importlib import resources

import pytest
import yaml

from firnline import Memory, Message, strategies
from firnline.digest import offline_summarizer
from firnline.errors import InputError, ModelError, ModelTimeout
from firnline.log import limits
from firnline.log.message import ToolCall, format_time
from firnline.log.tokens import counter
from firnline.topics import Rules
from support.topic_chats import (
    BUDGET,
    RULES,
    START,
    Clock,
    Subjects,
    about,
    answer,
    ask,
    check_books,
    open_memory,
    talk,
    topic,
)

TORTURE = "FIRNLINE_TORTURE" in os.environ
IN_TURNS = 60 if TORTURE else 46
MANY = 3_000 if TORTURE else 600


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def memory(url, clock):
    async with open_memory(url, clock) as memory:
        yield memory


def texts(context):
    return [message.text for message in context["recent"].messages]


async def archived(memory, conversation="c"):
    return [entry.seq for entry in await memory.read(conversation) if entry.archived]


# -- C2: folding ------------------------------------------------------------------------------


@pytest.mark.requirement("C2")
async def test_twelve_messages_stay_and_of_thirteen_all_but_four_are_archived(memory):
    long = about(1) + " The quay is long." * 20  # more than the digest
    await memory.append("c", [Message.user(long), Message.assistant(answer(1))])
    for number in range(1, 6):
        await ask(memory, 1, number)
    await memory.context("c", BUDGET)
    assert await memory.digests("c") == []
    assert (await memory.head("c")).archived == 0
    await memory.append("c", Message.user(about(1, 6)))
    context = await memory.context("c", BUDGET)
    (digest,) = await memory.digests("c")
    assert (digest.first_seq, digest.last_seq, digest.topic) == (0, 8, 0)
    assert (digest.status, digest.strategy, digest.parts) == ("completed", "topics", ())
    assert digest.receipt
    assert digest.text
    assert await archived(memory) == list(range(9))
    assert (await memory.head("c")).archived == 9
    found = await memory.topic_stats("c")
    assert (found.active_messages, found.archived_messages, found.has_summary) == (4, 9, True)
    assert texts(context) == [answer(1, 4), about(1, 5), answer(1, 5), about(1, 6)]
    assert [e.message.text for e in await memory.expand("c", 1)][:2] == [long, answer(1)]
    await check_books(memory)


@pytest.mark.requirement("C2")
async def test_the_next_digest_takes_the_one_before_and_only_what_is_new(memory):
    await talk(memory, *[1] * 7)
    await memory.context("c", BUDGET)
    for number in range(7, 12):
        await ask(memory, 1, number)
    await memory.context("c", BUDGET)
    first, second = await memory.digests("c")
    assert (second.base, second.parts) == (first.version, (first.version,))
    assert (first.last_seq, second.first_seq, second.last_seq) == (9, 0, 19)
    assert second.layer == 1
    assert await archived(memory) == list(range(20))
    assert (await memory.topic_stats("c")).archived_messages == 20
    await check_books(memory)


@pytest.mark.requirement("C9")
async def test_a_summary_is_made_of_the_one_before_and_of_what_is_new_in_the_topic(url):
    briefs = []

    async def summarizer(brief):
        briefs.append(brief)
        return await offline(brief)

    offline = offline_summarizer(counter().text)
    async with open_memory(url, summarizer=summarizer) as memory:
        for number in range(0, 28, 2):
            await ask(memory, 1 + number // 2 % 2, number)
            await ask(memory, 1 + number // 2 % 2, number + 1)
            await memory.context("c", BUDGET)
        for id_ in (0, 4):
            made = [d for d in await memory.digests("c") if d.topic == id_]
            mine = [b for b in briefs if b.entries[-1].seq in {d.last_seq for d in made}]
            history = {e.seq for e in await memory.topic_history("c", id_)}
            assert len(mine) == len(made) > 1
            for brief, before in zip(mine[1:], made, strict=False):
                assert brief.earlier == (before.text,)
                assert brief.entries[0].seq > before.last_seq
                assert {entry.seq for entry in brief.entries} <= history


@pytest.mark.requirement("C2")
async def test_five_topics_in_turns_have_a_chain_of_digests_each(memory, clock):
    rng = random.Random(30)
    for number in range(IN_TURNS):
        await ask(memory, rng.randrange(5), number)
        clock.pass_(seconds=30)
        if number % 2:
            context = await memory.context("c", BUDGET)
            assert context.tokens <= BUDGET
    found = await memory.topics("c")
    digests = await memory.digests("c")
    for one in found:
        chain = [d for d in digests if d.topic == one.topic_id]
        assert chain
        assert [d.base for d in chain] == [None, *(d.version for d in chain[:-1])]
        history = await memory.topic_history("c", one.topic_id)
        assert chain[-1].last_seq in {entry.seq for entry in history}
        covered = await memory.expand("c", chain[-1].version)
        assert covered == [e for e in history if e.seq <= chain[-1].last_seq]
    assert sum(one.total_messages for one in found) == 2 * IN_TURNS
    await check_books(memory)


@pytest.mark.requirement("C2")
async def test_a_tool_call_and_its_results_stay_together(memory):
    await talk(memory, *[1] * 4)
    call = Message.assistant(tool_calls=[ToolCall.of(f"t{n}", "weigh", {}) for n in range(4)])
    results = [Message.tool(f"{n} t", tool_call_id=f"t{n}") for n in range(4)]
    await memory.append("c", [Message.user(about(1, 4)), call, *results])
    context = await memory.context("c", BUDGET)
    (digest,) = await memory.digests("c")
    assert digest.last_seq == 8, "the call at 9 has its results behind it"
    roles = [message.role for message in context["recent"].messages]
    shown = ["user", "assistant", *["tool"] * 4]
    assert roles[-6:] == shown, "the question is shown in any case"


@pytest.mark.requirement("C2")
async def test_a_call_whose_results_have_no_topic_yet_is_not_digested_away_from_them(url):
    embedder = Subjects()
    async with open_memory(url, embedder=embedder) as memory:
        await talk(memory, *[1] * 5)
        call = Message.assistant(tool_calls=[ToolCall.of("t", "weigh", {})])
        unanswered = Message.assistant(tool_calls=[ToolCall.of("u", "weigh", {})])
        others = [unanswered, *(Message.user(about(1, n)) for n in range(4))]
        await memory.append("c", [Message.user(about(1, 5)), call, *others])
        await memory.topics("c")
        embedder.down = True
        late = [Message.user(about(1, 9)), Message.tool("1", tool_call_id="t")]
        await memory.append("c", [*late, Message.assistant("One.")])
        context = await memory.context("c", BUDGET)
        assert "tool" in [message.role for message in context["recent"].messages]
        assert all(digest.last_seq < 11 for digest in await memory.digests("c"))


@pytest.mark.requirement("C2")
async def test_its_parameters_can_be_chosen(url):
    async with open_memory(url, strategy=strategies.topics(max_messages=6, keep=2)) as memory:
        await talk(memory, *[1] * 3)
        await memory.context("c", BUDGET)
        assert await memory.digests("c") == []
        await ask(memory, 1, 3)
        await memory.context("c", BUDGET)
        assert (await memory.topic_stats("c")).active_messages == 2


@pytest.mark.requirement("C2")
@pytest.mark.parametrize("most", [12, 80])
async def test_messages_that_do_not_fit_are_digested_however_many_may_stay(url, most):
    long = "harbour crane tonnes " * 60
    async with open_memory(url, strategy=strategies.topics(max_messages=most)) as memory:
        for number in range(13):
            await memory.append("c", Message.user(f"{about(1, number)} {long}"))
            context = await memory.context("c", 2_000)
            assert context.tokens <= 2_000
            seen = {
                seq for digest in await memory.digests("c") for seq in range(digest.last_seq + 1)
            }
            assert seen | set(context.seqs) == set(range(number + 1)), "nothing lies between"
        assert len(context.seqs) >= 4
        await check_books(memory)


@pytest.mark.requirement("C2")
async def test_in_the_background_no_call_waits_for_the_digest(url):
    async with open_memory(url, background=True) as memory:
        await talk(memory, *[1] * 7)
        await memory.context("c", BUDGET)
        assert await memory.digests("c") == []
        assert await memory.work(once=True) == 1
        found = await memory.topic_stats("c")
        assert (found.active_messages, found.archived_messages) == (4, 10)
        await check_books(memory)


@pytest.mark.requirement("C2")
async def test_a_dead_model_leaves_the_messages_active_and_the_digest_pending(url, model, server):
    async with open_memory(url, model=model) as memory:
        await talk(memory, *[1] * 7)
        server.fail("500", repeat=True)
        context = await memory.context("c", BUDGET)
        assert context.degraded
        assert len(texts(context)) == 14
        assert (await memory.topic_stats("c")).archived_messages == 0
        await check_books(memory)


def people():
    """The English conversations of chatterbot-corpus, which people wrote."""
    folder = resources.files("chatterbot_corpus").joinpath("data/english")
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yml"):
            for lines in yaml.safe_load(file.read_text(encoding="utf-8"))["conversations"]:
                for number, line in enumerate(lines):
                    yield Message(("user", "assistant")[number % 2], str(line))


def chat(count, bytes_min=0):
    """Real messages said at uneven times; lines are joined until each has so many bytes."""
    uneven, now, text = random.Random(1), START, ""
    said = []
    for message in people():
        text = f"{text} {message.text}".strip()
        if len(text) < bytes_min:
            continue
        now += timedelta(seconds=uneven.uniform(2, 120))
        role = message.role if not bytes_min else ("user", "assistant")[len(said) % 2]
        said.append(Message(role, text, created_at=now))
        text = ""
        if len(said) == count:
            return said
    raise AssertionError("there are not so many")


async def sizes(memory, name, run):
    """A topic's bytes as JSON, as the seed compresses that, and as they are archived."""
    await memory.append(name, run)
    rows = [
        {
            "role": entry.message.role,
            "content": entry.message.text,
            "created_at": format_time(entry.message.created_at),
            "tokens": entry.tokens,
        }
        for entry in await memory.read(name)
    ]
    plain = json.dumps(rows).encode()
    done = await memory.archive(name, keep=0)
    assert done.entries == len(run)
    return len(plain), len(base64.b64encode(gzip.compress(plain))), done.stored_bytes


@pytest.mark.requirement("C2")
@pytest.mark.parametrize("count", [10, 20, 50])
@pytest.mark.parametrize(("bytes_min", "times"), [(0, 2.0), (700, 1.7)])
async def test_an_archived_topic_is_a_fifth_of_its_json(tmp_path, count, bytes_min, times):
    """Chat messages as people write them, and such of about 800 bytes as in the seed's table.

    These are half of what gzip and base64 make of them; the long ones not quite.
    """
    said = chat(600 if not bytes_min else 200, bytes_min)
    runs = [said[start : start + count] for start in range(0, len(said), count)]
    async with Memory.open(f"sqlite:///{tmp_path}/a.db") as memory:
        found = [await sizes(memory, f"c{n}", run) for n, run in enumerate(runs)]
    plain, theirs, ours = map(sum, zip(*found, strict=True))
    assert 1 - ours / plain >= 0.8, f"{1 - ours / plain:.1%} saved"
    assert theirs / ours >= times, f"{theirs / ours:.2f} times"


# -- C5: coming back --------------------------------------------------------------------------


async def left(memory, rounds=7):
    """A topic that was digested, and then another one that is spoken of."""
    await talk(memory, *[1] * rounds)
    await memory.context("c", BUDGET)
    await ask(memory, 2)
    await memory.context("c", BUDGET)
    found = await topic(memory, 0)
    assert (found.active_messages, found.archived_messages) == (4, 2 * rounds - 4)


@pytest.mark.requirement("C5")
async def test_coming_back_shows_everything_word_for_word_and_in_order(memory):
    await left(memory)
    await memory.append("c", Message.user(about(1, 9)))
    context = await memory.context("c", BUDGET)
    said = [text for n in range(7) for text in (about(1, n), answer(1, n))]
    assert texts(context) == [*said, about(1, 9)]
    assert await archived(memory) == []
    assert (await memory.head("c")).archived == 0
    found = await topic(memory, 0)
    assert (found.active_messages, found.archived_messages) == (15, 0)
    assert len(await memory.digests("c")) == 1, "nothing is digested before the answer"
    await check_books(memory)


@pytest.mark.requirement("C5")
async def test_after_the_answer_they_rest_again_without_a_new_digest(memory):
    await left(memory)
    await ask(memory, 1, 9)
    await memory.append("c", Message.user(about(1, 10)))
    context = await memory.context("c", BUDGET)
    assert len(await memory.digests("c")) == 1, "the one that covers them is still right"
    assert await archived(memory) == list(range(10))
    found = await topic(memory, 0)
    assert (found.active_messages, found.archived_messages) == (7, 10)
    assert texts(context)[-1] == about(1, 10)
    assert "Topic summary" in context["digests"].messages[0].text
    await check_books(memory)


@pytest.mark.requirement("C5")
async def test_they_rest_again_when_the_user_continues_to_another_topic(memory):
    await left(memory)
    await memory.append("c", Message.user(about(1, 9)))
    await memory.context("c", BUDGET)
    assert await archived(memory) == []
    await memory.append("c", Message.assistant(answer(1, 9)))
    await ask(memory, 2, 1)
    await memory.context("c", BUDGET)
    assert await archived(memory) == list(range(10))
    found = await topic(memory, 0)
    assert (found.active_messages, found.archived_messages) == (6, 10)
    assert len(await memory.digests("c")) == 1
    await check_books(memory)


@pytest.mark.requirement("C5")
async def test_tools_are_called_before_the_round_ends(memory):
    await left(memory)
    call = Message.assistant(tool_calls=[ToolCall.of("t", "weigh", {})])
    await memory.append("c", [Message.user(about(1, 9)), call, Message.tool("1", tool_call_id="t")])
    context = await memory.context("c", BUDGET)
    assert len(texts(context)) == 17
    assert await archived(memory) == []


@pytest.mark.requirement("C5")
async def test_a_long_topic_that_came_back_counts_right_when_it_rests(memory):
    """More comes back than a small context shows."""
    await talk(memory, *[1] * 60)
    await memory.context("c", BUDGET)
    await ask(memory, 2)
    await ask(memory, 1, 61)
    small = 1_000
    await memory.context("c", small)
    await memory.append("c", Message.user(about(1, 62)))
    await memory.context("c", small)
    found = await topic(memory, 0)
    assert found.archived_messages == len(await archived(memory)) == 116
    await check_books(memory)


@pytest.mark.requirement("C5")
async def test_again_and_again(memory, clock):
    for number in range(24):
        await ask(memory, 1 + number // 4 % 2, number)
        context = await memory.context("c", BUDGET)
        assert texts(context)[-1] == answer(1 + number // 4 % 2, number)
        clock.pass_(hours=7)
    for found in await memory.topics("c"):
        assert found.total_messages == 24
        assert found.active_messages <= 21
    await check_books(memory)


@pytest.mark.requirement("C5")
async def test_a_budget_that_is_too_small_for_all_shows_the_newest_and_the_summary(memory):
    await left(memory, rounds=40)
    await memory.append("c", Message.user(about(1, 50)))
    context = await memory.context("c", 800)
    assert context.tokens <= 800
    assert texts(context)[-1] == about(1, 50)
    assert "Topic summary" in context["digests"].messages[0].text


# -- when something fails ---------------------------------------------------------------------


@pytest.mark.requirement("C1")
async def test_while_the_embedder_fails_contexts_continue_and_topics_are_made_good_later(url):
    embedder = Subjects()
    async with open_memory(url, embedder=embedder) as memory:
        await talk(memory, *[1] * 3)
        await memory.context("c", BUDGET)
        embedder.down = True
        for number in range(12):
            await ask(memory, 2 + number % 2, number)
        context = await memory.context("c", BUDGET)
        assert texts(context)[-1] == answer(3, 11)
        assert answer(1, 0) in texts(context)
        assert await memory.digests("c") == [], "no summary claims what has no topic yet"
        with pytest.raises(ModelError, match="down"):
            await memory.topics("c")
        embedder.down = False
        await memory.append("c", Message.user(about(2, 20)))
        context = await memory.context("c", BUDGET)
        assert answer(1, 0) not in texts(context)
        history = await memory.topic_history("c")
        assert {e.message.text for e in history[::2]} == {
            about(2, n) for n in (*range(0, 12, 2), 20)
        }
        assert [d.topic for d in await memory.digests("c")] == [history[0].seq]
        assert (await memory.digests("c"))[0].last_seq in {e.seq for e in history}
        await check_books(memory)


@pytest.mark.requirement("C1")
async def test_an_embedder_that_never_worked_leaves_one_conversation_to_be_shown(url):
    embedder = Subjects()
    embedder.down = True
    async with open_memory(url, embedder=embedder) as memory:
        await talk(memory, *(number % 3 for number in range(150)))
        for _ in range(3):
            context = await memory.context("c", 3_000)
            assert texts(context)[-1] == answer(2, 149)
            force = await memory.in_force("c")
            assert force[0].first_seq == 0
            assert force[-1].text in "".join(m.text for m in context["digests"].messages)
            assert {*range(force[-1].last_seq + 1), *context.seqs} == set(range(300))
        assert {d.topic for d in await memory.digests("c")} == {None}
        embedder.down = False
        assert len(await memory.topics("c")) == 3
        assert texts(await memory.context("c", 3_000))[-1] == answer(2, 149)
        await check_books(memory)


@pytest.mark.requirement("C1")
async def test_of_many_that_have_no_topic_the_newest_are_shown(url):
    embedder = Subjects()
    async with open_memory(url, embedder=embedder) as memory:
        await talk(memory, 1)
        await memory.context("c", BUDGET)
        embedder.down = True
        said = [Message.user(about(2, number)) for number in range(450)]
        await memory.append("c", said)
        assert texts(await memory.context("c", BUDGET))[-1] == about(2, 449)


# -- undoing ----------------------------------------------------------------------------------


@pytest.mark.requirement("C9")
async def test_undoing_a_digest_of_a_topic_makes_its_entries_active_again(memory):
    await talk(memory, *[1] * 7)
    await memory.context("c", BUDGET)
    for number in range(7, 12):
        await ask(memory, 1, number)
    await memory.context("c", BUDGET)
    undone = await memory.undo("c", topic=0)
    assert undone.version == 2
    assert await archived(memory) == list(range(10))
    found = await topic(memory, 0)
    assert (found.active_messages, found.archived_messages, found.has_summary) == (14, 10, True)
    await memory.undo("c", topic=0)
    found = await topic(memory, 0)
    assert (found.active_messages, found.archived_messages, found.has_summary) == (24, 0, False)
    assert await archived(memory) == []
    with pytest.raises(InputError, match="no digest"):
        await memory.undo("c", topic=0)
    await memory.context("c", BUDGET)
    assert (await topic(memory, 0)).archived_messages == 20, "it is made again"
    await check_books(memory)


@pytest.mark.requirement("C9")
async def test_clearing_undoes_the_digests_of_all_topics(memory):
    for subject in (1, 2):
        await talk(memory, *[subject] * 7)
        await memory.context("c", BUDGET)
    assert await memory.clear("c") == 2
    assert await archived(memory) == []
    assert [t.archived_messages for t in await memory.topics("c")] == [0, 0]
    await check_books(memory)


@pytest.mark.requirement("C9")
async def test_undoing_while_a_topic_is_back_archives_nothing(memory):
    await talk(memory, *[1] * 7)
    await memory.context("c", BUDGET)
    for number in range(7, 12):
        await ask(memory, 1, number)
    await memory.context("c", BUDGET)
    await ask(memory, 2)
    await memory.append("c", Message.user(about(1, 20)))
    await memory.context("c", BUDGET)
    await memory.undo("c", topic=0)
    found = await topic(memory, 0)
    assert (found.active_messages, found.archived_messages) == (25, 0)
    await check_books(memory)


# -- switching --------------------------------------------------------------------------------


@pytest.mark.requirement("C9")
async def test_switching_to_topics_and_back_loses_nothing(url):
    async with open_memory(url, strategy=strategies.layered(), background=False) as memory:
        for number in range(0, 40, 2):
            await ask(memory, 0, number)
            await ask(memory, 1, number + 1)
            await memory.context("c", 1_500)
        general = [d.version for d in await memory.in_force("c")]
        assert general
        await memory.set_strategy("c", strategies.topics())
        context = await memory.context("c", 1_500)
        assert context.strategy == "topics"
        assert all("on subject #1" in text or "on 1:" in text for text in texts(context))
        await memory.set_strategy("c", "layered")
        context = await memory.context("c", 1_500)
        assert context.strategy == "layered"
        assert [d.version for d in await memory.in_force("c")] == general
        assert len(await memory.read("c")) == 80
        assert {d.topic for d in await memory.digests("c")} == {None, 2}
        await check_books(memory)


@pytest.mark.requirement("C9")
async def test_many_messages_are_caught_up_in_pages(url, monkeypatch):
    monkeypatch.setattr(limits, "ASSIGN_PAGE", MANY // 15)
    embedder = Subjects()
    rules = Rules(likeness=RULES.likeness, max_topics=5)
    async with open_memory(url, embedder=embedder, topic_rules=rules) as memory:
        said = []
        for number in range(MANY // 2):
            at = START + timedelta(hours=number)
            said.append(Message.user(about(number // 3 % 7, number), created_at=at))
            said.append(Message.assistant(answer(number // 3 % 7, number), created_at=at))
        await memory.append("c", said)
        context = await memory.context("c", BUDGET)
        assert context.tokens <= BUDGET
        found = await memory.topics("c")
        assert len(found) == 7
        assert sum(one.total_messages for one in found) == MANY
        assert len(embedder.asked) == MANY // 2, "each question once"
        await check_books(memory)


class Hanging(Subjects):
    """Never answers."""

    async def embed(self, texts):
        await asyncio.Event().wait()


async def test_an_embedder_that_hangs_delays_no_call_for_long(url, monkeypatch):
    monkeypatch.setattr(limits, "ASSIGN_SECONDS", 0.05)
    async with open_memory(url, embedder=Hanging(), worker=False) as memory:
        await talk(memory, 1, 2)
        context = await memory.context("c", BUDGET)
        assert texts(context)[-1] == answer(2, 1)
        assert await memory.in_force("c") == ()
        with pytest.raises(ModelTimeout, match=r"has not answered in 0\.05 s"):
            await memory.topics("c")


async def test_the_state_of_a_conversation_by_topic_is_that_of_the_active_one(memory):
    await talk(memory, *[1] * 7, *[2] * 7)
    await memory.context("c", BUDGET)
    (digest,) = await memory.in_force("c")
    assert digest.topic == 14, "the question that opened it"
    state = await memory.state("c")
    assert state.conversation_summary == digest.text
    assert state.summary_version == digest.version


async def test_the_digests_of_topics_can_be_rebuilt(memory):
    await talk(memory, *[1] * 7, *[2] * 7)
    await memory.context("c", BUDGET)
    await memory.append("c", Message.user(about(1, 9)))
    await ask(memory, 2, 10)
    before = await memory.digests("c")
    made = await memory.rebuild("c")
    assert {digest.topic for digest in made} == {d.topic for d in before if d.status == "completed"}
    for digest in made:
        (old,) = [d for d in before if d.version == digest.base]
        assert (digest.first_seq, digest.last_seq) == (old.first_seq, old.last_seq)
        assert digest.receipt["covers"] == old.receipt["covers"]
        covered = await memory.expand("c", digest.version)
        assert covered == await memory.expand("c", old.version)
    await check_books(memory)
