"""The benchmark itself: packing, counting and output."""

import json
from contextlib import contextmanager
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline import Budget, Message
from firnline.cli.bench import baselines, plot, report
from firnline.cli.bench.baselines import Baselines, PackedTurn, fuse, keywords, pack, turn_of
from firnline.cli.bench.datasets import parse
from firnline.cli.bench.figures import figures, groups, percentile
from firnline.cli.bench.location import JsonSpot
from firnline.cli.bench.measure import entries_in, measure
from firnline.context.context import Context, Piece, Section
from firnline.errors import BudgetError, InputError
from firnline.log.entry import Entry
from firnline.log.hit import Hit, TextSpan
from firnline.log.tokens import count_tokens
from support import question_sets

BUDGETS = (20, 40)


class Fake:
    """A memory that returns the newest entries first, and records its calls."""

    def __init__(self, *, lies: bool = False) -> None:
        self.kept: dict[str, list[Entry]] = {}
        self.embedded: list[str] = []
        self.lies = lies

    async def head(self, conversation):
        return self.kept.get(conversation)

    async def append(self, conversation, messages):
        entries = self.kept.setdefault(conversation, [])
        for message in messages:
            seq = len(entries)
            entries.append(Entry(seq, message, 1, seq, "", "o200k_base"))

    async def embed(self, conversation, *, progress=None):
        progress(1, 1)
        self.embedded.append(conversation)
        return 1

    async def recall(self, conversation, query, *, tokens):
        entries = self.kept[conversation]
        turns = [turn_of(entry.message) for entry in entries]
        newest = range(len(turns) - 1, -1, -1)
        seqs = newest if self.lies else pack(newest, turns, tokens)
        return [Hit(conversation, entries[seq], 1.0) for seq in seqs]

    async def context(self, conversation, budget, question):
        if budget == BUDGETS[0]:
            raise BudgetError(floor=30, available=20, blockers={})
        last = self.kept[conversation][-1]
        return Context(
            conversation=conversation,
            strategy="fake",
            budget=Budget(budget),
            sections=(Section("recent", (Piece(last.message, 10, last),)),),
        )


class Letters:
    """An embedder that counts letters."""

    name = "letters-1"

    async def embed(self, texts):
        return [
            [float(text.lower().count(c)) for c in "abcdefghijklmnopqrstuvwxyz"] for text in texts
        ]

    async def close(self):
        pass


@contextmanager
def unwatched(what):
    yield lambda done, total: None


def cases(form="locomo"):
    return list(parse(form, JsonSpot(question_sets.SETS[form](), "file.json"), "file"))


async def run(memory=None, form="locomo", **options):
    chosen = {"ways": ("recall", "context"), "baselines": True, "watch": unwatched, **options}
    return await measure(memory or Fake(), cases(form), BUDGETS, **chosen)


# -- packing and baselines --------------------------------------------------------------------


def test_a_turn_is_counted_with_its_speaker():
    turn = turn_of(Message.user("I adopted a parrot.", name="Ana"))
    assert turn == PackedTurn(
        "Ana", "I adopted a parrot.", count_tokens("Ana: I adopted a parrot.")
    )
    assert turn_of(Message.user("Hi")) == PackedTurn("user", "Hi", count_tokens("user: Hi"))


@given(
    sizes=st.lists(st.integers(0, 50), max_size=20), tokens=st.integers(0, 200), data=st.randoms()
)
def test_packing_never_exceeds_the_budget_and_never_leaves_room_for_a_turn(sizes, tokens, data):
    turns = [PackedTurn("", "", size) for size in sizes]
    ranked = list(range(len(turns)))
    data.shuffle(ranked)
    taken = pack(ranked, turns, tokens)
    left = tokens - sum(sizes[seq] for seq in taken)
    assert left >= 0
    assert [seq for seq in ranked if seq in taken] == taken
    assert all(sizes[seq] > left for seq in ranked if seq not in taken)


NEEDLE = 37


def haystack():
    turns = [PackedTurn("Ana", f"Nothing new on day {n}, 100 % rain_y.", 9) for n in range(60)]
    turns[NEEDLE] = PackedTurn("Ben", "My heron is called Ottokar.", 9)
    return turns


@pytest.mark.parametrize("name", baselines.names(Letters()))
async def test_baselines_find_an_obvious_needle(name):
    plain = Baselines(haystack(), Letters())
    await plain.prepare()
    asked = (
        "heron is called Ottokar" if name == baselines.LIKE_WHOLE else "How is Ben's heron called?"
    )
    ranked = await plain.rank(name, asked)
    if name == baselines.LAST:
        assert ranked == list(range(59, -1, -1))
    else:
        assert ranked[0] == NEEDLE


@pytest.mark.parametrize("name", baselines.names(None))
@pytest.mark.parametrize(
    "question", ["", "?", "'", '"', "%", "_", "\\", "NEAR(", "a OR", "東京", "\0"]
)
async def test_no_character_of_a_question_is_query_syntax(name, question):
    ranked = await Baselines(haystack()).rank(name, question)
    assert sorted(set(ranked)) == sorted(ranked)
    if name == baselines.LIKE_WHOLE and question == "_":
        assert ranked == [seq for seq in range(60) if seq != NEEDLE]


def test_keywords():
    assert keywords("What did Ana's parrot do?") == ["ana", "parrot"]
    assert keywords("What was it?") == ["what", "was", "it"]


def test_fusion_prefers_what_both_rank_high():
    assert fuse([1, 2, 3], [4, 2, 5])[0] == 2


# -- asking -----------------------------------------------------------------------------------


async def test_every_method_answers_every_question():
    memory = Fake()
    measured = await run(memory, embedder=Letters())
    assert list(measured.answers) == [
        *baselines.names(Letters()),
        "Firnline recall",
        "Firnline context",
    ]
    assert {len(answers) for answers in measured.answers.values()} == {3}
    assert memory.embedded == ["talk-1"]
    assert all(set(a.found) == set(BUDGETS) for some in measured.answers.values() for a in some)


async def test_the_newest_first_is_what_the_baseline_is():
    measured = await run()
    ours = [a.found[40].evidence for a in measured.answers["Firnline recall"]]
    assert ours == [a.found[40].evidence for a in measured.answers[baselines.LAST]]
    assert any(any(found) for found in ours)


async def test_what_is_over_the_budget_does_not_count():
    measured = await run(Fake(lies=True))
    for answer in measured.answers["Firnline recall"]:
        assert answer.found[20].over
        assert answer.found[20].tokens <= 20
    assert "larger than asked for" in report.text(measured)


class Passages(Fake):
    """A memory that returns the passage of one message."""

    def __init__(self, said: str) -> None:
        super().__init__()
        self.said = said

    async def recall(self, conversation, query, *, tokens):
        for entry in self.kept[conversation]:
            if (at := entry.message.text.find(self.said)) >= 0:
                return [Hit(conversation, entry, 1.0, passage=(TextSpan(at, at + len(self.said)),))]
        return []


@pytest.mark.parametrize(("said", "share"), [("I adopted a parrot, Quixote!", 1.0), ("parrot", 0)])
async def test_a_passage_counts_if_it_has_the_sentence_of_the_evidence(said, share):
    measured = await run(Passages(said), ways=("recall",), baselines=False)
    (answer,) = (a for a in measured.answers["Firnline recall"] if "parrot" in a.question.text)
    found = answer.found[40]
    assert sum(found.evidence) == share
    assert not any(found.whole)
    shown = said if share else f"[...] {said} [...]"
    assert found.tokens == count_tokens(f"Ana: {shown}")
    assert ("Firnline recall, whole messages" in report.text(measured)) == bool(share)


async def test_a_context_that_has_no_room_finds_nothing():
    measured = await run()
    found = figures(measured.answers["Firnline context"], 20)
    assert (found.refused, found.mean) == (3, 0.0)
    assert "no room for a context" in report.text(measured)


async def test_a_store_that_is_not_empty_is_rejected():
    memory = Fake()
    await run(memory)
    with pytest.raises(InputError, match="has a conversation 'talk-1' already"):
        await run(memory)


def test_what_a_context_shows():
    turns = [PackedTurn("Ana", text, 1) for text in ("one", "Yes!", "a long story", "four")]
    entries = [Entry(n, Message.user(turn.text), 1, n, "", "") for n, turn in enumerate(turns)]
    cut = Piece(Message.user("a … story"), 1, entries[2], whole=False)
    quotes = "[old]\n(0) Ana: one\n(3) Ana: fo…\nYes!\n[end]"
    quoted = tuple(entries[seq] for seq in (0, 1, 3))
    context = Context(
        conversation="c",
        strategy="fake",
        budget=Budget(100),
        sections=(
            Section("recent", (cut,)),
            Section("recalled", (Piece(Message.user(quotes), 1, quoted=quoted),)),
        ),
    )
    assert entries_in(context, turns) == {0}  # not 1: it is there, but not as what entry 1 says


# -- figures, report, picture -----------------------------------------------------------------


def test_percentiles():
    assert percentile([1.0, 2.0, 3.0, 4.0], 50) == 2.0
    assert percentile([1.0, 2.0, 3.0, 4.0], 99) == 4.0
    assert percentile([7.0], 50) == 7.0


async def test_evidence_by_session_is_counted_apart():
    measured = await run(form="longmemeval")
    parts = groups(measured.answers["Firnline recall"])
    assert list(parts) == [
        "all",
        "all (by session)",
        "multi-session (by session)",
        "single-session-user",
    ]
    assert "evidence found, mean % (all (by session))" in report.text(measured)


REPORT = """\
1 conversation, 6 messages; 3 questions counted
left out: 1 (no evidence ids)
left out: 1 (adversarial: made to have no answer)
skipped: 1 evidence id without exactly one turn

evidence found, mean % (all)  20 t  40 t  all @40  p50 ms  p99 ms
────────────────────────────  ────  ────  ───────  ──────  ──────
Firnline recall               16.7  50.0     33.3     0.0     0.0

Firnline recall    questions  % with   20 t   40 t
─────────────────  ─────────  ──────  ─────  ─────
all                        3  mean     16.7   50.0
                              any      33.3   66.7
                              all       0.0   33.3
multi-hop                  1  mean     50.0   50.0
                              any     100.0  100.0
                              all       0.0    0.0
single-hop                 1  mean      0.0    0.0
                              any       0.0    0.0
                              all       0.0    0.0
temporal                   1  mean      0.0  100.0
                              any       0.0  100.0
                              all       0.0  100.0
tokens used, mean                        16     36
ms, p50                                 0.0    0.0
ms, p99                                 0.0    0.0"""


async def test_the_report(monkeypatch):
    monkeypatch.setattr("time.perf_counter", lambda: 0.0)
    measured = await run(ways=("recall",), baselines=False)
    assert report.text(measured) == REPORT


async def test_the_report_for_machines():
    measured = await run()
    made = json.loads(json.dumps(report.as_json(measured, {"format": "locomo"})))
    assert (made["counted"], made["conversations"], made["messages"]) == (3, 1, 6)
    assert made["methods"]["Firnline recall"]["all"]["40"]["mean"] == pytest.approx(0.5)
    assert set(made["environment"]) >= {"firnline", "python", "sqlite"}
    second = made["questions"][1]
    assert (second["id"], second["evidence"]) == ("talk-1/2", ["D2:2", "D1:2"])
    assert second["found"]["Firnline recall"]["40"]["evidence"] == ["D2:2"]
    assert "parrot" not in json.dumps(made)  # the set's words are not ours to spread


async def test_the_picture_is_valid_and_says_what_it_shows():
    measured = await run(embedder=Letters())
    title = 'a & b < "c"'
    picture = plot.draw(measured.tokens, plot.curves(measured), title)
    root = ET.fromstring(picture)
    space = {"s": "http://www.w3.org/2000/svg"}
    assert root.findtext("s:title", namespaces=space) == title
    texts = [node.text for node in root.iterfind("s:text", space)]
    assert {"20", "40", "Firnline recall", baselines.FUSED} <= set(texts)
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    for dot in root.iterfind("s:circle", space):
        assert 0 < float(dot.attrib["cx"]) < width
        assert 0 < float(dot.attrib["cy"]) < height


@pytest.mark.parametrize("tokens", [(500,), (500, 501, 502), (1, 1_000_000)])
def test_a_picture_of_any_budgets(tokens):
    curve = plot.Curve("Firnline recall", tuple(0.5 for _ in tokens))
    assert ET.fromstring(plot.draw(tokens, [curve], "t")) is not None
