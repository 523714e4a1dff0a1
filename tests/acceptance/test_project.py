"""Seed B in the library: project recall, the full history or a lean tail, the current task."""

import pytest

from firnline import Budget, Memory, Message, Project, count_tokens, strategies
from firnline.errors import InputError
from support.seed_chats import play

BUDGET = Budget(128_000, 4_000)


def small(**parameters):
    """The strategy with the seed's numbers divided by ten, so that a test is quick."""
    return strategies.project(
        **{"threshold_tokens": 5_500, "keep_tokens": 4_400, "last_tokens": 2_000, **parameters}
    )


@pytest.mark.requirement("B1")
def test_the_seeds_numbers_are_the_defaults():
    parameters = strategies.project().parameters
    assert parameters["threshold_tokens"] == 55_000
    assert (parameters["last"], parameters["last_tokens"]) == (12, 20_000)


@pytest.mark.requirement("B1")
async def test_each_project_has_its_own_history(memory):
    await memory.append("alpha-log", Message.user("alpha begins"))
    await memory.append("beta-log", Message.user("beta begins"))
    for name in ("alpha", "beta"):
        await memory.save_project(Project(name, status="active", schedule="daily"))
        await memory.describe(f"{name}-log", project=name)
    heads = await memory.conversations(project="alpha")
    assert [head.conversation for head in heads] == ["alpha-log"]
    context = await memory.context("alpha-log", BUDGET)
    assert "beta" not in str(context.to_openai())


@pytest.mark.requirement("B1")
async def test_all_messages_are_loaded_up_to_the_threshold_and_nothing_is_summarized(url):
    async with Memory.open(url, strategy=small()) as memory:
        await play(memory, "p", 30)
        head = await memory.head("p")
        assert head.tokens <= 5_400
        context = await memory.context("p", BUDGET)
        assert context.seqs == tuple(range(60))
        assert await memory.digests("p") == []


@pytest.mark.requirement("B1")
async def test_above_the_threshold_the_oldest_are_summarized(url):
    async with Memory.open(url, strategy=small()) as memory:
        await play(memory, "p", 80)
        context = await memory.context("p", BUDGET)
        (digest,) = await memory.in_force("p")
        assert digest.first_seq == 0
        assert set(context.seqs) >= set(range(digest.last_seq + 1, 160))
        assert 5_500 * 0.9 <= context.tokens <= 5_500
        assert len(await memory.read("p")) == 160
        await play(memory, "p", 2, start=80)
        await memory.context("p", BUDGET)
        assert len(await memory.digests("p")) == 1, "only when it is above the threshold again"


@pytest.mark.requirement("B1")
async def test_the_full_threshold_holds_for_a_long_project(url):
    """The seed's own 55,000 tokens."""
    async with Memory.open(url, strategy=strategies.project()) as memory:
        await memory.append("p", [Message.user("word " * 1_000) for _ in range(54)])
        assert len((await memory.context("p", BUDGET)).seqs) == 54
        await memory.append("p", [Message.user("word " * 1_000) for _ in range(4)])
        context = await memory.context("p", BUDGET)
        assert context.tokens <= 55_000
        assert len(await memory.digests("p")) == 1


@pytest.mark.requirement("B2")
async def test_the_lean_context_is_the_last_twelve_messages(url):
    async with Memory.open(url, strategy=strategies.project(lean=True)) as memory:
        await play(memory, "p", 30)
        context = await memory.context("p", BUDGET)
        assert context.seqs == tuple(range(48, 60))
        assert not context.degraded
        assert await memory.digests("p") == []


@pytest.mark.requirement("B2")
async def test_the_lean_context_is_capped_by_tokens(url):
    async with Memory.open(url, strategy=strategies.project(lean=True)) as memory:
        await memory.append("p", [Message.user("word " * 3_000) for _ in range(12)])
        context = await memory.context("p", BUDGET)
        assert len(context.seqs) == 6
        assert count_tokens(context.to_openai()) <= 20_100


@pytest.mark.requirement("B2")
async def test_a_lean_context_is_lean_whatever_was_digested_before(url):
    async with Memory.open(url, strategy=small(), background=False) as memory:
        await play(memory, "p", 40)
        await memory.context("p", 1_500)
        (digest,) = await memory.in_force("p")
        assert digest.last_seq > 68
        await memory.set_strategy("p", strategies.project(lean=True))
        context = await memory.context("p", BUDGET)
        assert context.seqs == tuple(range(68, 80))
        assert context["digests"].pieces


@pytest.mark.requirement("B1")
@pytest.mark.parametrize("threshold", [10_000, 55_000, 1_000])
def test_what_is_kept_fits_the_threshold_unless_it_is_stated(threshold):
    parameters = strategies.project(threshold_tokens=threshold).parameters
    assert parameters["keep_tokens"] == threshold * 4 // 5
    with pytest.raises(InputError, match=r"keep_tokens: 60000; must be between 1 and"):
        strategies.project(threshold_tokens=threshold, keep_tokens=60_000)


@pytest.mark.requirement("B9")
async def test_the_task_at_hand_is_in_the_prompt(memory):
    task = "Ship the registry. Blocker: no access to the cluster."
    await memory.save_project(Project("registry", task=task))
    await memory.append("p", Message.user("What next?"))
    await memory.describe("p", project="registry")
    context = await memory.context("p", BUDGET)
    assert task in context["task"].messages[0].text
    assert [s.name for s in context.sections] == ["task", "recent"]
    own = await memory.context("p", BUDGET, task="Something else")
    assert "Something else" in own["task"].messages[0].text


@pytest.mark.requirement("B9")
async def test_a_long_task_gives_way(memory):
    await memory.append("p", Message.user("What next?"))
    context = await memory.context("p", 1_000, task="do this " * 2_000)
    assert context.tokens <= 1_000
    assert context["task"].tokens <= 250
    assert "do this" in context["task"].messages[0].text


@pytest.mark.requirement("B9")
async def test_a_task_takes_at_most_two_thousand_tokens(memory):
    task = "Beginning. " + "do this and that " * 2_000 + "Blocker: the end."
    await memory.save_project(Project("registry", task=task))
    await memory.append("p", Message.user("What next?"))
    await memory.describe("p", project="registry")
    for given in (None, task):
        context = await memory.context("p", BUDGET, task=given)
        text = context["task"].messages[0].text
        assert 1_500 < context["task"].tokens <= 2_000
        assert "Beginning." in text
        assert "Blocker: the end." in text
        (left,) = context.left_out
        assert left.what == "the middle of the task"
        assert "at most 2,000 tokens" in left.why
    assert (await memory.context("p", BUDGET, task="short")).left_out == ()


@pytest.mark.requirement("B9")
async def test_every_project_is_listed_with_its_status_and_schedule(memory):
    await memory.save_project(Project("a", status="active", schedule="Mondays", task="x"))
    await memory.save_project(Project("b", status="paused", schedule="never"))
    listed = [(p.name, p.status, p.schedule) for p in await memory.projects()]
    assert listed == [("a", "active", "Mondays"), ("b", "paused", "never")]
