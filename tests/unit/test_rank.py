"""Ranking entries for a question: every feature has a test that fails without it."""

# ruff: noqa: RUF001 - other scripts and their marks are meant

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from firnline.language.stems import stem
from firnline.log.message import Message, ToolCall
from firnline.recall import weights
from firnline.recall.features import PASSAGE_WORDS, read_features
from firnline.recall.query import DateRange, in_year, parse_question
from firnline.recall.rank import features, rank
from support.entries import entry

NOW = datetime(2026, 3, 11, 12, tzinfo=UTC)
ROUND = ("Nothing else.", "Fine.", "Quite so.", "Indeed.", "Right.", "Sure.", "Well, well.")
TEXTS = some.text(max_size=60) | some.sampled_from(
    [
        "",
        "?",
        "I?",
        "2023-13-45",
        "May",
        "29 February 1",
        "9999-12-31",
        "大阪城のホテル",
        "\x00\ud7ff",
        ": ",
    ]
)


def _pool(*texts, name=None, at=NOW, first=0):
    """What one person says, one text after the other."""
    said = (Message.user(text, name=name, created_at=at) for text in texts)
    return {seq: entry(seq, message) for seq, message in enumerate(said, first)}


def _seqs(question, pool, matches=None, near=None, now=None):
    return [item.seq for item in rank(parse_question(question, now), pool, matches or {}, near)]


def _talk(*turns, at=NOW):
    """(speaker, text) pairs, or (speaker, text, time)."""
    said = (
        Message.user(text, name=name, created_at=times[0] if times else at)
        for name, text, *times in turns
    )
    return {seq: entry(seq, message) for seq, message in enumerate(said)}


# -- whatever comes -----------------------------------------------------------------------------


@given(
    TEXTS, some.lists(TEXTS, max_size=8), some.dictionaries(some.integers(0, 9), some.floats(0, 1))
)
def test_no_text_is_an_error_and_every_entry_has_a_rank(question, texts, scores):
    pool = _pool(*texts)
    asked = parse_question(question, NOW)
    ranked = rank(asked, pool, scores, scores)
    assert {item.seq for item in ranked} == set(pool)
    assert len(ranked) == len(pool)
    assert all(one.score >= other.score for one, other in pairwise(ranked))
    assert all(item.score == pytest.approx(sum(item.parts.values())) for item in ranked)


@given(some.text(max_size=40), some.lists(some.text(max_size=40), max_size=6), some.randoms())
def test_the_order_of_what_is_given_does_not_matter(question, texts, random):
    pool = _pool(*texts)
    turned = list(pool.items())
    random.shuffle(turned)
    near = {seq: 0.5 + seq / 100 for seq in pool}
    again = rank(parse_question(question), dict(turned), {}, dict(reversed(near.items())))
    assert again == rank(parse_question(question), pool, {}, near)


def test_an_empty_pool_has_no_ranks():
    assert rank(parse_question("who?"), {}, {}) == []


@pytest.mark.parametrize("question", ["", "   ", "what did I do?", "?!"])
def test_a_question_without_content_goes_by_the_index_and_then_by_age(question):
    pool = _pool(*ROUND[:4])
    assert _seqs(question, pool, {1: 3.0}) == [1, 3, 2, 0]


def test_a_very_long_message_is_read_in_bounded_time():
    pool = _pool("[" * 300_000, " " * 300_000, "zebra " * 60_000)
    assert _seqs("a zebra", pool)[0] == 2


# -- one feature after the other ----------------------------------------------------------------


def _only(name, question, pool, **scores):
    """The entries that have the feature, best first."""
    values = features(parse_question(question, NOW), pool, **scores)[name]
    return sorted((seq for seq in values if values[seq]), key=lambda seq: (-values[seq], seq))


def test_words():
    pool = _pool(
        "I have a violin.", "A violin, a violin!", "I have a sister.", " ".join(["so"] * 70)
    )
    assert _only("words", "Where is the violin?", pool)[:2] == [1, 0]
    assert _seqs("Where is the violin?", pool)[-1] == 3


def test_rare_words_count_more_than_common_ones():
    pool = _pool(ROUND[0], "A thing to use.", *ROUND, "A saxophone.", *ROUND, first=0)
    assert _seqs("thing saxophone", pool)[0] == 9


def test_a_frequent_word_has_little_weight():
    pool = _pool(*["The saxophone again."] * 9, "A thing.", "Nothing of it.")
    assert _seqs("the saxophone thing", pool)[0] == 9
    values = features(parse_question("the saxophone"), _pool(*["A saxophone."] * 3))["words"]
    assert set(values) == {0, 1, 2}  # but if there is nothing else, it is what there is


def test_endings_beginnings_and_concepts_match_the_word():
    pool = _pool("A photo.", "My photography.", "No.", "A picture.")
    best = features(parse_question("photos"), pool)["words"]
    assert best[0] > best[1] > best[3] > 0
    assert 2 not in best


def test_around():
    far = _pool(*ROUND[:5], "My violin.", "Yes.", *ROUND)
    assert _only("around", "violin", far) == [5, 4, 6, 3, 7, 2, 8, 1, 9]
    ranked = _seqs("violin", far)
    assert ranked[0] == 5
    assert {4, 6} < set(ranked[:5])


def test_a_long_message_is_not_close_to_its_neighbours():
    page = "lorem " * 200
    near = features(parse_question("violin"), _pool("Yes.", "My violin.", "Yes."))["around"]
    far = features(parse_question("violin"), _pool(page, "My violin.", page))["around"]
    assert far[0] < 0.6 * near[0]


def test_session():
    later = NOW + timedelta(days=3)
    pool = _talk(
        *[("Ana", text, NOW) for text in ("My violin.", *ROUND)],
        *[("Ana", text, later) for text in ROUND],
    )
    assert _only("session", "violin", pool) == list(range(8))
    assert max(map(_seqs("violin", pool).index, range(8))) == 7


def test_sessions_end_at_holes_and_after_many_words():
    pool = {**_pool("My violin.", "Yes."), **_pool(*ROUND, first=60)}
    assert _only("session", "violin", pool) == [0, 1]
    long = _pool("My violin.", *["lorem " * 300] * 8)
    assert 8 not in _only("session", "violin", long)


def test_answer():
    pool = _pool(*ROUND[:5], "What is your violin called?", "Bruno.", *ROUND)
    assert _only("answer", "the violin", pool) == [6]
    ranked = _seqs("the violin", pool)
    assert ranked.index(6) < ranked.index(4)


def test_before():
    pool = _pool("My violin.", "Oh?", "Bruno.", "Nice.")
    assert _only("before", "the violin", pool) == [2]


def test_speaker():
    pool = _talk(("Ana", "Nice."), ("Bob", "Nice."), ("Ana", "Nice."), ("Bob", "Nice."))
    assert _only("speaker", "What does Bob like?", pool) == [1, 3]
    assert _seqs("What does Ana's sister like?", pool)[:2] == [2, 0]
    assert _only("speaker", "What do Ana and Bob like?", pool) == []


def test_a_speakers_name_is_not_a_word_to_look_for():
    pool = _talk(("Ana", "Hi Bob!"), ("Bob", "I like jazz."), ("Ana", "Bye Bob!"))
    assert 0 not in features(parse_question("What does Bob like: jazz?"), pool)["words"]
    assert 0 in features(parse_question("Bob?"), pool)["words"]  # there is nothing else to go by


def test_a_speaker_before_the_text_is_the_same_as_one_in_the_name():
    turns = [
        ("Ana Lee", "Hi Bob!"),
        ("Bob", "Is it jazz?"),
        ("Ana Lee", "Jazz: yes."),
        ("Bob", "Ok"),
    ]
    named = _talk(*turns)
    written = _pool(*[f"{name}: {text}" for name, text in turns])
    for question in ("What does Ana like?", "What does Bob think of jazz?", "jazz"):
        assert rank(parse_question(question), named, {}) == rank(
            parse_question(question), written, {}
        )


def test_a_colon_alone_makes_no_speaker():
    pool = _pool("Note: the key is blue.", *ROUND)
    assert _only("speaker", "the note about the key", pool) == []
    assert 0 in _only("words", "note", pool)


def test_without_names_i_is_the_user_and_you_the_assistant():
    said = (Message.user("Jazz."), Message.assistant("Jazz."), Message.user("Jazz."))
    pool = {seq: entry(seq, message) for seq, message in enumerate(said)}
    assert _only("speaker", "What did I like?", pool) == [0, 2]
    assert _only("speaker", "What did you tell me?", pool) == [1]
    assert _only("speaker", "What is liked?", pool) == []


@pytest.mark.parametrize(
    "question",
    [
        "What happened on 5 May 2025?",
        "What happened on May 5th, 2025?",
        "what happened in may 2025",
        "What happened in May?",
        "2025-05-05 what was it",
        "2025年5月5日",
        "Was war am 5. Mai?",
    ],
)
def test_date(question):
    days = ((2025, 3, 1), (2025, 5, 5), (2025, 5, 9), (2025, 9, 1))
    pool = _talk(*[("Ana", "Nice.", datetime(*day, tzinfo=UTC)) for day in days])
    values = features(parse_question(question), pool)["date"]
    assert values[1] == pytest.approx(1.0)
    assert values[1] >= values[2] > 0.4
    assert max(values[0], values[3]) < 0.1
    assert _seqs(question, pool)[0] in (1, 2)


def test_a_date_counts_from_now_and_a_year_counts_little():
    pool = _talk(("A", "x", NOW - timedelta(days=1)), ("A", "x", NOW - timedelta(days=90)))
    assert features(parse_question("What was yesterday?", NOW), pool)["date"][0] == pytest.approx(
        1.0
    )
    assert not features(parse_question("What was yesterday?"), pool)["date"]
    assert features(parse_question("What was in 2026?"), pool)["date"][0] == pytest.approx(0.3)


NAMED = {
    ("2026-03-10", "2026-03-10"): "Was it last Tuesday? | Wie war es letzten Dienstag? "
    "| ¿Qué fue el martes pasado? | Что было в прошлый вторник? | Was war gestern Abend?",
    ("2026-03-03", "2026-03-03"): "上周二的压力是多少？ | Was war am Dienstag letzter Woche?",
    ("2026-03-02", "2026-03-08"): "Was it last week? | 上周的压力是多少？ | 上周一直下雨吗？",
    ("2026-03-07", "2026-03-08"): "Wie war es letztes Wochenende? | 上周末呢？",
    ("2026-03-08", "2026-03-08"): "Was war vor drei Tagen? | 压力三天前是多少？ | hace 3 días",
    ("2026-02-26", "2026-02-26"): "Was war vor 13 Tagen? | 压力在十三天前是多少？",
    ("2026-03-08", "2026-03-11"): "Was war in den letzten drei Tagen? | Was it the last 3 days?",
    ("2026-03-10", "2026-03-11"): "How was it last night? | 昨晚的压力是多少？",
    ("2026-04-05", "2026-04-05"): "Was war am 5.4.2026? | on 05.04.2026. | Was it 2026/4/5?",
    ("2026-04-13", "2026-04-13"): "Was 04/13/2026 fine? | Was 13/4/2026 fine?",
}


@pytest.mark.parametrize(
    ("question", "ends"),
    [(text.strip(), ends) for ends, line in NAMED.items() for text in line.split("|")],
)
def test_days_are_read_inside_a_sentence_in_any_language(question, ends):
    first, last = map(date.fromisoformat, ends)
    assert parse_question(question, NOW).dates == (DateRange(first, last),)


def test_a_month_in_chinese_is_one_of_any_year():
    assert (
        parse_question("三月的压力是多少？", NOW).dates
        == parse_question("the pressure in March", NOW).dates
    )
    assert parse_question("三月三日的压力").dates == parse_question("pressure on March 3").dates


def test_figures_that_can_be_two_days_are_both():
    asked = parse_question("Was it 04/05/2026?", NOW)
    assert [days.first for days in asked.dates] == [date(2026, 4, 5), date(2026, 5, 4)]
    assert parse_question("Was it 04/05/2026?").dates == asked.dates


@pytest.mark.parametrize(
    "question",
    ["How was it on Tuesday?", "Wie war es am Dienstag?", "周二的压力？", "Что было во вторник?"],
)
def test_a_bare_weekday_is_the_last_one_and_counts_half(question):
    tuesday = date(2026, 3, 10)
    assert parse_question(question, NOW).dates == (DateRange(tuesday, tuesday, weight=0.5),)
    assert parse_question(question, NOW).days is not None
    assert parse_question(question).dates == ()


def test_here_in_german_is_not_yesterday_in_french():
    assert parse_question("Was ist hier los?", NOW).dates == ()
    assert (
        parse_question("Que faisait-on hier ?", NOW).dates == parse_question("yesterday", NOW).dates
    )


def test_a_day_that_is_named_again_and_again_is_one():
    assert len(parse_question("周一" * 2_000, NOW).dates) == 1


def test_a_weekday_of_a_date_or_of_every_week_is_no_separate_day():
    assert parse_question("on Tuesday, 5 May 2026", NOW).dates == parse_question("5 May 2026").dates
    for question in (
        "Where is she on Tuesdays?",
        "Who sings on Tuesday nights?",
        "Was ist jeden Dienstag?",
        "每周二做什么？",
    ):
        assert parse_question(question, NOW).dates == (), question


def test_what_only_looks_like_a_date_is_none():
    for question in (
        "May I ask?",
        "They march on",
        "31 February 2025",
        "2025-13-01",
        "1234 things",
        "31.2.2025",
        "1.2.3.4",
    ):
        assert parse_question(question, NOW).dates == ()
        assert parse_question(question, NOW).days is None


def test_the_days_to_look_at():
    day = datetime(2025, 5, 5, tzinfo=UTC)
    assert parse_question("5 May 2025").days == (day - timedelta(days=1), day + timedelta(days=7))
    assert parse_question("5 May", NOW).days == (day - timedelta(days=1), day + timedelta(days=7))
    assert parse_question("5 May").days is None
    assert parse_question("in 2025", NOW).days is None
    assert parse_question("9999-12-31", NOW).days is None
    assert in_year(DateRange(date(2000, 2, 29), date(2000, 2, 29)), 2023).first == date(2023, 2, 28)


def test_asks():
    pool = _pool(
        "Is it a violin?", "Is it? Fine.", 'She said "why?"', "Why? [image: a violin]", "琴？"
    )
    assert _only("asks", "violin", pool) == [0, 2, 3, 4]
    pool = _pool("A violin.", "A violin?", "A violin.")
    assert _seqs("violin", pool)[-1] == 1


def test_time():
    pool = _pool("Last week.", "In 2021.", "On Friday.", "Never.")
    assert _only("time", "When was it?", pool) == [0, 1, 2]
    assert _only("time", "Where was it?", pool) == []
    assert _seqs("When was it?", pool)[-1] == 3


def test_number():
    pool = _pool("Three.", "All 17.", "None.")
    assert _only("number", "How many were there?", pool) == [0, 1]
    assert _only("number", "Who were there?", pool) == []


def test_meaning():
    pool = _pool(*ROUND)
    values = features(parse_question("x"), pool, {2: 0.9, 5: 0.5})
    assert values["meaning"] == {0: 0.5, 1: 0.5, 2: 0.9, 3: 0.5, 4: 0.5, 5: 0.5, 6: 0.5}
    assert values["meaning_near"][1] == values["meaning_near"][3] == pytest.approx(0.7)
    assert set(_seqs("x", pool, near={2: 0.9, 5: 0.5})[:3]) == {1, 2, 3}


def test_conversations_can_be_compared_whether_they_have_near_entries_or_not():
    pool = _pool("A violin.", "Nothing else.")
    (best, _), (other, _) = (
        rank(parse_question("violin"), pool, {}, near, 0.3) for near in ({0: 0.3, 1: 0.3}, {})
    )
    assert best == other, "as near as the last of the nearest, or further away: no difference"
    assert rank(parse_question("violin"), pool, {}, {0: 0.8}, 0.3)[0].score > best.score


def test_every_feature_has_a_weight_and_only_questions_count_against_an_entry():
    found = features(parse_question("violin"), _pool("A violin."), {0: 0.5})
    assert set(found) == set(weights.MEANING)
    assert set(found) - {"meaning", "meaning_near"} == set(weights.LEXICAL)
    for table in (weights.LEXICAL, weights.MEANING):
        assert all(weight >= 0 for name, weight in table.items() if name != "asks")
        assert table["asks"] < 0


# -- other kinds of text ------------------------------------------------------------------------


def test_scripts_without_blanks():
    pool = _pool("我昨天去了大阪城公园。", "今天很冷。", "大象和城市", "好的")
    assert _seqs("大阪城在哪里？", pool)[0] == 0
    assert parse_question("大阪城").query == "大阪城"
    values = features(parse_question("大阪城"), pool)["words"]
    assert set(values) == {0}


def test_a_long_message_counts_as_its_best_passage():
    filler = "lorem ipsum " * PASSAGE_WORDS
    together = _pool(f"{filler} The red violin. {filler}")
    apart = _pool(f"violin {filler} The red {filler}")
    words = [features(parse_question("red violin"), pool)["words"][0] for pool in (together, apart)]
    assert words[0] > words[1]


def test_what_a_tool_is_asked_for_is_read():
    call = ToolCall.of("1", "search", {"city": "Lisbon"})
    pool = {0: entry(0, Message.assistant(tool_calls=[call])), 1: entry(1, Message.user("Porto"))}
    assert _seqs("Lisbon", pool)[0] == 0


def test_stems():
    assert stem("running") == stem("runs") == "run"
    assert stem("a" * 50) == "a" * 50
    assert stem("größe") == "größe"
    assert read_features("Running runs").passages[0].counts == {"run": 2}
