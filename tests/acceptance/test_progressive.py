"""Seed A, progressive compression: one growing summary, important data, the newest messages."""

import asyncio
import json
import os
from random import Random

import pytest

from firnline import Budget, Memory, Message, count_tokens, strategies
from firnline.digest import items, offline_summarizer
from firnline.errors import BudgetError, ModelError, StoreCorrupt
from firnline.language.prose import count_words
from firnline.log.tokens import counter
from firnline.strategies.progressive import WORDS
from support.damage import damage_rows
from support.seed_chats import play, rounds

TORTURE = "FIRNLINE_TORTURE" in os.environ
SYSTEM = "You are a helpful assistant."
BUDGET = Budget(8_000, 1_000)
FIELDS = [
    "user_preferences",
    "key_decisions",
    "important_facts",
    "source_urls",
    "document_structure",
    "entities",
    "custom_fields",
]


@pytest.fixture
async def memory(url):
    async with Memory.open(url, strategy=strategies.progressive()) as memory:
        yield memory


async def context_of(memory, conversation="c"):
    return await memory.context(conversation, BUDGET, system=SYSTEM)


# -- A2: the memory of a conversation ---------------------------------------------------------


@pytest.mark.requirement("A2")
async def test_the_memory_of_a_conversation_is_a_record_that_can_be_read_changed_and_cleared(url):
    async with Memory.open(url, strategy=strategies.progressive()) as memory:
        await memory.append("c", Message.user("hello"))
        empty = await memory.state("c")
        assert list(empty.important_data) == FIELDS
        assert not any(empty.important_data.values())
        assert (empty.summary_version, empty.conversation_summary) == (0, "")
        await memory.remember("c", {"user_preferences": {"theme": "dark"}}, summary="Test summary")
        state = await memory.state("c")
        assert state.important_data["user_preferences"] == {"theme": "dark"}
        assert (state.conversation_summary, state.summary_version) == ("Test summary", 1)
        await memory.remember("c", {"user_preferences": {"theme": "light"}})
        assert (await memory.state("c")).important_data["user_preferences"] == {"theme": "light"}
        await memory.undo("c")
        assert (await memory.state("c")).important_data["user_preferences"] == {"theme": "dark"}
        assert await memory.clear("c") == 1
        assert await memory.state("c") == empty
        assert [entry.message.text for entry in await memory.read("c")] == ["hello"]


@pytest.mark.requirement("A2")
async def test_the_record_says_how_far_the_summary_reaches(memory):
    await play(memory, "c", 30)
    context = await context_of(memory)
    state = await memory.state("c")
    assert state.summary_version == 1
    assert state.last_summarized_at is not None
    assert state.last_keep_window_index == context["recent"].entries[0].seq
    assert state.messages_summarized_count == state.last_keep_window_index


@pytest.mark.requirement("A2")
async def test_the_record_outlives_the_process(tmp_path):
    url = f"sqlite:///{tmp_path}/store.db"
    async with Memory.open(url, strategy=strategies.progressive()) as memory:
        await play(memory, "c", 30)
        await context_of(memory)
        before = await memory.state("c")
    async with Memory.open(url) as again:
        assert await again.state("c") == before


# -- A3, A6, A7: when it folds, and what the prompt holds ---------------------------------------


@pytest.mark.requirement("A3")
@pytest.mark.requirement("A6")
async def test_it_folds_above_the_threshold_and_is_below_it_afterwards(memory):
    made, totals, said = 0, [], []
    for message in rounds(60 if TORTURE else 36):
        said.append(message)
        if message.role != "user":
            continue
        await memory.append("c", said)
        said = []
        context = await context_of(memory)
        totals.append(context.tokens)
        digests = await memory.digests("c")
        if len(digests) > made:
            made = len(digests)
            kept = sum(e.tokens for e in context["recent"].entries)
            assert kept <= 2_500
            assert digests[-1].last_seq + 1 == context["recent"].entries[0].seq
    assert made > 3
    assert max(totals) <= 3_000, "after a cycle the prompt is below the threshold"
    assert max(totals) > 2_700, "and nothing was folded long before it"
    versions = [digest.layer + 1 for digest in await memory.digests("c")]
    assert versions == list(range(1, made + 1))


@pytest.mark.requirement("A3")
async def test_the_keep_window_is_as_large_as_it_can_be(memory):
    await play(memory, "c", 30, words=40)
    context = await context_of(memory)
    kept = context["recent"].entries
    before = (await memory.read("c"))[kept[0].seq - 1]
    assert sum(entry.tokens for entry in kept) + before.tokens > 2_000
    assert not context.degraded


@pytest.mark.requirement("A3")
@pytest.mark.requirement("A6")
@pytest.mark.parametrize("seed", range(100 if TORTURE else 8))
async def test_every_threshold_is_kept_and_digested_at_only_when_it_is_passed(seed):
    """After a digest the prompt is below it, with room for more than two rounds."""
    random = Random(seed)
    threshold = int(200 * 500 ** (seed / 7 if seed < 8 else random.random()))
    chat = strategies.progressive(threshold_tokens=threshold)
    most = max(threshold // 40, 8)  # tokens of a message
    made, since, before, first = 0, 0, 0, 0
    async with Memory.open("memory:", strategy=chat, background=False) as memory:
        for number in range(100):
            words = [f"word{number} " * random.randint(0, (most - 5) // 3) for _ in range(2)]
            asked = Message.user(f"Why {words[0]}?")
            stored = await memory.append("c", [asked, Message.assistant(f"So {words[1]}")])
            total = before + sum(entry.tokens for entry in stored)
            context = await memory.context("c", 200_000, system="Be brief.")
            before = context.tokens
            assert before <= threshold
            since += 1
            digests = await memory.digests("c")
            if len(digests) > made:
                assert len(digests) == made + 1
                assert total > threshold
                assert since > 2
                made, since, first = made + 1, 0, digests[-1].last_seq + 1
            opened = list(range(first, stored.seq + 1))
            shown = [entry.seq for entry in context["recent"].entries]
            assert shown[-len(opened) :] == opened
            assert not context.degraded
            if made == (6 if TORTURE else 3):
                break
        assert made > 1


@pytest.mark.requirement("A7")
async def test_the_prompt_is_system_then_data_then_summary_then_recent(memory):
    await play(memory, "c", 30)
    context = await context_of(memory)
    assert [s.name for s in context.sections] == ["system", "important", "digests", "recent"]
    sent = context.to_openai()
    assert sent[0] == {"role": "system", "content": SYSTEM}
    assert "Important data" in sent[1]["content"]
    assert "Summary" in sent[2]["content"]
    assert [m["content"] for m in sent[3:]] == [e.message.text for e in context["recent"].entries]
    folded = {e.seq for e in await memory.expand("c", 1)}
    assert not folded & set(context.seqs)


@pytest.mark.requirement("A7")
async def test_without_a_summary_the_prompt_is_plain(memory):
    await play(memory, "c", 2)
    sent = (await context_of(memory)).to_openai()
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "user", "assistant"]


# -- A4, A5: what is in them --------------------------------------------------------------------


@pytest.mark.requirement("A4")
async def test_important_data_is_extracted_with_exactly_these_fields(memory):
    await play(memory, "c", 30)
    await context_of(memory)
    data = (await memory.state("c")).important_data
    assert list(data) == FIELDS
    assert "dark" in json.dumps(data["user_preferences"])
    assert data["source_urls"] == ["https://example.com/paper1", "https://example.com/paper2"]
    assert any("PostgreSQL" in decision for decision in data["key_decisions"])
    assert "Methods" in json.dumps(data["document_structure"])


@pytest.mark.requirement("A4")
async def test_every_item_is_proved_by_its_quote(memory):
    await play(memory, "c", 30)
    await context_of(memory)
    entries = await memory.read("c")
    (digest,) = await memory.in_force("c")
    found = items.from_json(digest.data)
    assert found
    for item in found:
        assert any(item.quote in entries[seq].message.text for seq in item.seqs)


@pytest.mark.requirement("A5")
async def test_the_summary_grows_with_its_version(memory):
    for start in range(0, 120 if TORTURE else 48, 4):
        await play(memory, "c", 4, start=start)
        await context_of(memory)
    digests = await memory.digests("c")
    assert len(digests) > 5
    for digest in digests:
        low, high = WORDS[min(digest.layer, 4)]
        assert low <= count_words(digest.text) <= high
        assert digest.base == (digest.version - 1 or None)


@pytest.mark.requirement("A5")
async def test_later_versions_read_the_old_summary_and_only_the_new_messages(url):
    briefs = []

    async def summarizer(brief):
        briefs.append(brief)
        return await offline(brief)

    offline = offline_summarizer(counter().text)
    async with Memory.open(url, strategy=strategies.progressive(), summarizer=summarizer) as memory:
        for start in range(0, 40, 4):
            await play(memory, "c", 4, start=start)
            await context_of(memory)
        digests = await memory.digests("c")
    assert len(briefs) == len(digests) > 1
    for brief, digest, before in zip(briefs[1:], digests[1:], digests, strict=False):
        assert brief.earlier == (before.text,)
        assert brief.entries[0].seq == before.last_seq + 1
        assert brief.entries[-1].seq == digest.last_seq


# -- A8: faults ---------------------------------------------------------------------------------


async def failing(_):
    raise ModelError("the model is down")


@pytest.mark.requirement("A8")
async def test_a_model_that_fails_leaves_the_chat_working_and_flagged(url):
    async with Memory.open(url, strategy=strategies.progressive(), summarizer=failing) as memory:
        await play(memory, "c", 40)
        context = await context_of(memory)
        assert context.degraded
        assert context.tokens <= BUDGET.limit
        assert "down" in context.explain()
        (digest,) = await memory.digests("c")
        assert (digest.status, "down" in digest.error) == ("failed", True)
        assert len(await memory.read("c")) == 80


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("error", [ModelError("slow"), RuntimeError("a mistake")])
async def test_a_summary_that_fails_is_tried_once_more(url, error):
    tries = []

    async def flaky(brief):
        tries.append(brief)
        if len(tries) == 1:
            raise error
        return await offline_summarizer(counter().text)(brief)

    async with Memory.open(url, strategy=strategies.progressive(), summarizer=flaky) as memory:
        await play(memory, "c", 40)
        assert not (await context_of(memory)).degraded
        assert len(tries) == 2
        assert [d.status for d in await memory.digests("c")] == ["completed"]


@pytest.mark.requirement("A8")
async def test_an_extraction_that_fails_keeps_the_old_data(url):
    async with Memory.open(url, strategy=strategies.progressive(), extractor=failing) as memory:
        await memory.append("c", Message.user("hello"))
        await memory.remember("c", {"user_preferences": {"theme": "dark"}}, summary="Said hello.")
        await play(memory, "c", 40)
        context = await context_of(memory)
        assert not context.degraded
        assert "dark" in context["important"].messages[0].text


@pytest.mark.requirement("A8")
async def test_a_bad_summary_is_asked_for_once_more_and_then_made_offline(url):
    asked = []

    async def model(messages):
        asked.append(messages)
        return "I'm sorry, but I can't help with that."

    async with Memory.open(url, strategy=strategies.progressive(), model=model) as memory:
        await play(memory, "c", 30)
        context = await context_of(memory)
        (digest,) = await memory.in_force("c")
    assert digest.made_by == "offline"
    assert "sorry" not in digest.text
    assert not context.degraded
    assert len(asked) <= 4


@pytest.mark.requirement("A8")
async def test_nothing_to_summarize_is_no_error(memory):
    context = await context_of(memory, "nobody")
    assert context.to_openai() == [{"role": "system", "content": SYSTEM}]
    assert await memory.digests("nobody") == []


@pytest.mark.requirement("A8")
async def test_one_message_larger_than_the_budget_is_shown_by_its_ends(memory):
    await memory.append("c", Message.user("Please read this."))
    await memory.append("c", Message.assistant("START " + "word " * 20_000 + "END"))
    context = await memory.context("c", 4_000, system=SYSTEM)
    text = context.to_openai()[-1]["content"]
    assert text.startswith("START word")
    assert text.endswith("END")
    assert "tokens of message 1 are left out" in text
    assert context.seqs == (0,)
    assert context.tokens <= 4_000


@pytest.mark.requirement("A8")
async def test_a_question_larger_than_the_budget_is_rejected_with_the_reason(memory):
    await memory.append("c", Message.user("word " * 5_000))
    with pytest.raises(BudgetError) as caught:
        await memory.context("c", 4_000, system=SYSTEM)
    assert caught.value.context["floor"] > 5_000
    assert set(caught.value.context["blockers"]) >= {"question", "system"}
    assert len(await memory.read("c")) == 1


@pytest.mark.requirement("A8")
async def test_a_damaged_record_is_set_aside_and_made_again_from_the_log(tmp_path):
    path = tmp_path / "store.db"
    async with Memory.open(f"sqlite:///{path}", strategy=strategies.progressive()) as memory:
        await play(memory, "c", 30)
        await context_of(memory)
        before = [digest.text for digest in await memory.in_force("c")]
    damage_rows(path, "UPDATE digest SET body = CAST('{broken' AS BLOB)")
    async with Memory.open(f"sqlite:///{path}", strategy=strategies.progressive()) as memory:
        with pytest.raises(StoreCorrupt):
            await memory.digests("c")
        context = await context_of(memory)
        assert context["digests"].pieces
        assert context.degraded
        assert [digest.text for digest in await memory.in_force("c")] == before
        assert (await memory.verify("c")).ok
        statuses = [digest.status for digest in await memory.digests("c")]
        assert statuses == ["failed", "completed"]


@pytest.mark.requirement("A8")
async def test_of_concurrent_cycles_exactly_one_wins(memory):
    await play(memory, "c", 30)
    contexts = await asyncio.gather(*(context_of(memory) for _ in range(8)))
    assert len(await memory.digests("c")) == 1
    assert all(context.tokens <= BUDGET.limit for context in contexts)


# -- A9: the seed's scenarios -------------------------------------------------------------------


@pytest.mark.requirement("A9")
async def test_scenario_1_a_short_chat_is_left_alone(memory):
    await memory.append("c", list(rounds(3))[:5])
    context = await context_of(memory)
    assert context.seqs == (0, 1, 2, 3, 4)
    assert await memory.digests("c") == []


@pytest.mark.requirement("A9")
async def test_scenarios_2_and_3_first_cycle_then_an_incremental_one(memory):
    await play(memory, "c", 20)
    first = await context_of(memory)
    state = await memory.state("c")
    assert state.summary_version == 1
    assert 100 <= count_words(state.conversation_summary) <= 150
    assert first.tokens < 3_000
    assert set(first.seqs) < set(range(40))
    while (await memory.state("c")).summary_version == 1:
        await play(memory, "c", 2, start=40)
        context = await context_of(memory)
    state = await memory.state("c")
    assert state.summary_version == 2
    assert 200 <= count_words(state.conversation_summary) <= 250
    assert context.tokens < 3_000


@pytest.mark.requirement("A9")
async def test_scenario_4_what_mattered_survives_two_cycles(memory):
    for start in range(0, 60 if TORTURE else 32, 4):
        await play(memory, "c", 4, start=start)
        await context_of(memory)
    assert (await memory.state("c")).summary_version > 2
    data = json.dumps((await memory.state("c")).important_data)
    for word in ("dark", "Methods", "https://example.com/paper1", "PostgreSQL", "14 March"):
        assert word in data


@pytest.mark.requirement("A9")
@pytest.mark.requirement("A1")
async def test_scenario_5_the_tokens_are_those_of_the_reference(memory):
    await play(memory, "c", 30)
    context = await context_of(memory)
    assert context.tokens == count_tokens(context.to_openai())


@pytest.mark.requirement("A9")
async def test_scenario_6_a_request_without_a_cycle_calls_no_model(url):
    calls = []

    async def model(messages):
        calls.append(messages)
        return "A short summary of what was said."

    async with Memory.open(url, strategy=strategies.progressive(), model=model) as memory:
        await play(memory, "c", 30)
        await context_of(memory)
        spent = len(calls)
        assert 0 < spent <= 4
        for _ in range(5):
            await context_of(memory)
        assert len(calls) == spent


@pytest.mark.requirement("A9")
@pytest.mark.requirement("X1")
async def test_scenario_7_the_full_history_is_still_there(memory):
    await play(memory, "c", 30)
    await context_of(memory)
    shown = [entry.message.text for entry in await memory.read("c")]
    assert shown == [message.text for message in rounds(30)]
    hits = await memory.recall("c", "PostgreSQL registry", limit=1)
    assert "PostgreSQL" in hits[0].message.text


@pytest.mark.requirement("A9")
async def test_scenario_8_many_conversations_do_not_mix(memory):
    for number in range(4):
        await memory.append(f"c{number}", Message.user(f"I prefer theme{number} and nothing else."))
        await play(memory, f"c{number}", 25, start=10)
    contexts = [await context_of(memory, f"c{number}") for number in range(4)]
    for number, context in enumerate(contexts):
        everything = json.dumps(context.to_openai())
        assert f"theme{number}" in everything
        assert not any(f"theme{other}" in everything for other in range(4) if other != number)


@pytest.mark.parametrize(("threshold", "keep"), [(3_000, 2_500), (1_111, 925), (1, 1)])
def test_a_smaller_threshold_keeps_less(threshold, keep):
    chosen = strategies.progressive(threshold_tokens=threshold)
    assert chosen.parameters["keep_tokens"] == keep
