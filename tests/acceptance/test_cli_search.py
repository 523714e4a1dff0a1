"""The command line: search, on, topics, embed."""

import json
import re
from datetime import UTC, datetime

import pytest

from firnline import Message, sync
from firnline.cli import main
from firnline.cli import search as commands
from support.long_texts import essay

NOW = datetime(2026, 3, 11, 12, tzinfo=UTC)  # a Wednesday
TUESDAY = datetime(2026, 3, 10, 22, 30, tzinfo=UTC)  # in Berlin half past eleven, still Tuesday
LATE = datetime(2026, 3, 10, 23, 30, tzinfo=UTC)  # in Berlin Wednesday already
TRIP = [
    Message.user("The train to Lisbon leaves from platform nine.", name="Ana", created_at=TUESDAY),
    Message.assistant("Noted: Lisbon, platform nine.", created_at=TUESDAY),
    Message.user("My python program raises a KeyError in the parser.", created_at=LATE),
    Message.assistant("Use dict.get in the parser.", created_at=LATE),
]


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    monkeypatch.setattr(commands, "utc_now", lambda: NOW)


@pytest.fixture
def trip(run):
    """Two conversations, the first with two topics; about half of it archived."""
    with sync.Memory.open("sqlite:///firnline.db", clock=lambda: NOW) as memory:
        memory.append("trip", TRIP)
        memory.append("home", Message.user("The platform of the roof leaks.", created_at=NOW))
        memory.describe("home", project="house")
        memory.archive("trip", keep=2)
    return run


def told(run, *arguments):
    """What a command that goes well prints."""
    code, out, err = run(*arguments)
    assert (code, err) == (0, ""), err
    return out


# -- search -----------------------------------------------------------------------------------


def test_search_prints_the_best_first_with_conversation_number_time_and_speaker(trip):
    out = told(trip, "search", "train platform nine")
    first, *rest = out.splitlines()
    assert re.fullmatch(
        r"trip +0 2026-03-10 22:30  user \(Ana\): The train to Lisbon leaves from platform nine\.",
        first,
    )
    assert len(rest) == 2
    assert told(trip, "search", "train", "platform", "nine") == out, "quotes are not needed"
    assert told(trip, "search", "zebra") == "Nothing found.\n"


def test_search_keeps_to_its_filters(trip):
    assert told(trip, "search", "platform", "--role", "assistant").count("\n") == 1
    both = told(trip, "search", "platform", "--role", "assistant", "--role", "user")
    assert both.count("\n") == 3
    assert told(trip, "search", "platform", "--conversation", "home").startswith("home ")
    assert told(trip, "search", "platform", "--project", "house").startswith("home ")
    assert told(trip, "search", "platform", "--limit", "1").count("\n") == 1
    assert told(trip, "search", "--on", "today", "platform").startswith("home ")
    assert "home" not in told(trip, "search", "--on", "last tuesday", "platform")
    out = told(trip, "search", "parser", "--on", "2026-03-11", "--zone", "Europe/Berlin")
    assert out.count("2026-03-11 00:30") == 2, "times are those of the zone, too"
    assert told(trip, "search", "parser", "--on", "2026-03-11") == "Nothing found.\n"


def test_search_by_topic_and_tag(trip):
    told(trip, "topics", "trip", "--topic", "0", "--add-tag", "travel")
    out = told(trip, "search", "platform", "--tag", "travel")
    assert out.count("\n") == 2
    assert "home" not in out
    assert told(trip, "search", "platform", "--tag", "work") == "Nothing found.\n"
    out = told(trip, "search", "platform", "--conversation", "trip", "--topic", "2")
    assert out == "Nothing found.\n"
    code, _, err = trip("search", "platform", "--topic", "0")
    assert (code, "--conversation" in err) == (2, True)
    code, _, err = trip("search", "x", "--conversation", "trip", "--topic", "77")
    assert (code, err) == (2, "firnline: trip has no topic 77\n")


def test_search_within_tokens_brings_what_stands_around(trip):
    few = told(trip, "search", "lisbon", "--tokens", "15")
    assert few.count("\n") == 1
    many = told(trip, "search", "KeyError", "--tokens", "500")
    assert "Use dict.get" in many, "a neighbour"
    assert "Use dict.get" not in told(trip, "search", "KeyError")


def test_search_explains_its_scores_and_says_what_is_archived(trip):
    lines = told(trip, "search", "platform nine", "--explain").splitlines()
    assert len(lines) == 6
    for line in lines[1::2]:
        form = r" {5}score ([\d.]+): (.*); chance (\d+)%(?: \(archived\))?"
        total, parts, chance = re.fullmatch(form, line).groups()
        assert 0 <= int(chance) <= 100
        values = [float(part.split()[1]) for part in parts.split(", ")]
        assert float(total) == pytest.approx(sum(values), abs=0.05)
        assert values == sorted(values, key=lambda value: -abs(value))
    assert lines[1].endswith("(archived)")
    home = next(n for n, line in enumerate(lines) if line.startswith("home"))
    assert "archived" not in lines[home + 1]


def test_search_for_machines(trip):
    first = json.loads(told(trip, "search", "train platform nine", "--json").splitlines()[0])
    assert first["conversation"] == "trip"
    assert (first["seq"], first["archived"]) == (0, True)
    assert first["created_at"] == "2026-03-10T22:30:00.000000Z"
    assert first["score"] == pytest.approx(sum(first["parts"].values()))
    assert 0 < first["chance"] < 1
    assert first["message"]["content"] == TRIP[0].text
    assert first["passage"] == []
    assert told(trip, "search", "zebra", "--json") == ""


def test_search_for_machines_says_where_a_long_message_answers(run):
    text = essay(60, {31: "The spare key of the boathouse is under the third flowerpot."})
    with sync.Memory.open("sqlite:///firnline.db", embedder=None) as memory:
        memory.append("c", Message.user(text))
    found = json.loads(told(run, "search", "boathouse key", "--json"))
    (span,) = found["passage"]
    assert "third flowerpot" in text[span["start"] : span["end"]]
    assert found["message"]["content"] == text


def test_search_by_meaning_with_a_named_embedder_or_none(trip):
    told(trip, "embed", "--embedder", "words")
    with_meaning = told(trip, "search", "parser", "--embedder", "words", "--explain")
    assert "meaning +" in with_meaning
    assert "meaning" not in told(trip, "search", "parser", "--embedder", "none", "--explain")
    code, _, err = trip("search", "x", "--embedder", "nonsense")
    assert (code, "one of minilm, multilingual, words, or PROVIDER/MODEL" in err) == (2, True)


# -- on ---------------------------------------------------------------------------------------


def test_on_a_day_in_a_zone(trip):
    out = told(trip, "on", "last tuesday")
    assert out.splitlines()[-1] == (
        "4 messages from Tue 2026-03-10 00:00 to Wed 2026-03-11 00:00 (UTC)"
    )
    assert told(trip, "on", "last", "tuesday") == out
    berlin = told(trip, "on", "last tuesday", "--zone", "Europe/Berlin").splitlines()
    assert len(berlin) == 3
    assert "2026-03-10 23:30  user (Ana): The train" in berlin[0]
    assert berlin[-1] == (
        "2 messages from Tue 2026-03-10 00:00 to Wed 2026-03-11 00:00 (Europe/Berlin)"
    )
    today = told(trip, "on", "today").splitlines()
    assert today[0].startswith("home ")
    assert today[-1].startswith("1 message from Wed 2026-03-11")
    nothing = told(trip, "on", "2026-03-05")
    assert nothing == ("No messages from Thu 2026-03-05 00:00 to Fri 2026-03-06 00:00 (UTC).\n")


def test_on_a_day_in_one_conversation_within_a_limit_and_for_machines(trip):
    assert told(trip, "on", "march", "--conversation", "home").startswith("home ")
    out = told(trip, "on", "in March", "--limit", "3")
    assert out.splitlines()[-1] == "There may be more; raise --limit (now 3)."
    entries = [json.loads(line) for line in told(trip, "on", "march", "--json").splitlines()]
    assert [(e["conversation"], e["seq"]) for e in entries] == [
        ("home", 0),
        *(("trip", seq) for seq in range(4)),
    ]


# -- topics -----------------------------------------------------------------------------------


def test_topics_are_listed_with_a_bar_of_what_is_left_of_them(trip):
    lines = told(trip, "topics", "trip").splitlines()
    assert len(lines) == 4
    for line in lines[::2]:
        bar, percent = re.fullmatch(r" +\d+  ([█░]{20}) +(\d+)%  .+", line).groups()
        assert bar.count("█") == round(int(percent) / 5)
        assert int(percent) < 100, "half a day ago"
    assert lines[0].lstrip().startswith("2 ")
    assert lines[1].startswith("       active, 2 messages, 0 accesses, half-life 1 d")
    assert "short-term" in lines[3]


def test_topics_show_their_messages(trip):
    shown = told(trip, "topics", "trip", "--topic", "0", "--show")
    assert TRIP[0].text in shown
    assert TRIP[1].text in shown
    assert "parser" not in shown
    active = told(trip, "topics", "trip", "--show")
    assert active.count("░") >= 2
    assert TRIP[3].text in active
    assert "Noted: Lisbon" not in active
    only = told(trip, "topics", "trip", "--topic", "0").splitlines()
    assert len(only) == 2
    assert "active" not in only[1]
    rows = [json.loads(r) for r in told(trip, "topics", "trip", "--json", "--show").splitlines()]
    assert [row["topic_id"] for row in rows[:2]] == [2, 0]
    assert [row["seq"] for row in rows[2:]] == [2, 3]


def test_topics_get_and_lose_tags_and_are_merged(trip):
    out = told(trip, "topics", "trip", "--topic", "0", "--add-tag", "travel", "--add-tag", "2026")
    assert "#2026" in out
    assert "#travel" in out
    out = told(trip, "topics", "trip", "--topic", "0", "--remove-tag", "travel")
    assert "#travel" not in out
    merged = told(trip, "topics", "trip", "--merge", "0", "2").splitlines()
    assert len(merged) == 2
    assert "4 messages" in merged[1]


def test_a_conversation_without_topics_says_when_they_begin(run):
    assert run("append", "c", "--role", "system", "Be brief.")[0] == 0
    assert "the first message of a user starts one" in told(run, "topics", "c")
    assert "the first message of a user starts one" in told(run, "topics", "c", "--show")
    assert told(run, "topics", "c", "--json") == ""


# -- embed ------------------------------------------------------------------------------------


def test_embed_says_what_it_did_and_does_it_once(trip, monkeypatch):
    told_of = []
    real = commands.progress_on

    def watched(what):
        told_of.append(what)
        return real(what)

    monkeypatch.setattr(commands, "progress_on", watched)
    assert told(trip, "embed", "--embedder", "words") == "5 messages embedded with words-1\n"
    assert told_of == ["embedding home", "embedding trip"]
    assert told(trip, "embed", "--embedder", "words") == "0 messages embedded with words-1\n"
    out = told(trip, "embed", "trip", "--embedder", "words", "--json")
    assert json.loads(out) == {"embedded": 0, "embedder": "words-1"}


def test_embed_draws_its_progress_on_a_terminal(trip, monkeypatch):
    class Terminal:
        text = ""

        def isatty(self):
            return True

        def write(self, text):
            Terminal.text += text

        def flush(self):
            pass

    monkeypatch.setattr("firnline.cli.terminal._SHOWN_AFTER_SECONDS", 0)
    monkeypatch.setattr("sys.stderr", Terminal())
    assert main(["embed", "--embedder", "words"]) == 0
    assert "embedding trip ████████████████████████ 100% 4/4" in Terminal.text


def test_embed_reaches_every_conversation(trip, monkeypatch):
    monkeypatch.setattr(commands, "_PAGE", 1)  # in place of a thousand
    assert told(trip, "embed", "--embedder", "words") == "5 messages embedded with words-1\n"


def test_embed_without_an_embedder_says_how_to_get_one(trip, monkeypatch):
    monkeypatch.setattr(commands, "default_embedder", lambda: None)
    code, _, err = trip("embed")
    assert (code, 'pip install "firnline[recall]"' in err) == (2, True)


# -- what is wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["on", "the day of the zebra"], 2, "use today, yesterday, tuesday, last tuesday"),
        (["on", "2026-02-30"], 2, "2026-02-30"),
        (["on", "today", "--zone", "Mars/Base"], 2, "use a name such as Europe/Berlin"),
        (["on", "today", "--limit", "0"], 2, "limit: 0 is not between 1 and 1000"),
        (["on", "today", "--conversation", "nope"], 3, "`firnline conversations` lists them"),
        (["search", "x", "--on", "blursday"], 2, "'blursday' is not understood; use today"),
        (["search", "x", "--zone", "Mars/Base"], 2, "use a name such as Europe/Berlin"),
        (["search", "x", "--conversation", "nope"], 3, "`firnline conversations` lists them"),
        (["search", "x", "--limit", "0"], 2, "limit: 0 is not between 1 and 1000"),
        (["search", "x", "--tokens", "-1"], 2, "tokens: -1 is less than 0"),
        (["search", "x", "--tokens", "many"], 2, "invalid int value: 'many'"),
        (["search", "x", "--role", "boss"], 2, "invalid choice: 'boss'"),
        (["search", "x", "--project", "\udced\udca0"], 2, "project:"),
        (["search", "x", "--tag", ""], 2, "tag: 0 characters"),
        (["search"], 2, "the following arguments are required: query"),
        (["topics", "nope"], 3, "`firnline conversations` lists them"),
        (["topics", "trip", "--topic", "99"], 2, "trip has no topic 99; there are: 0, 2"),
        (["topics", "trip", "--topic", "99", "--show"], 2, "there are: 0, 2"),
        (["topics", "trip", "--add-tag", "x"], 2, "need --topic"),
        (["topics", "trip", "--merge", "0", "99"], 2, "there are: 0, 2"),
        (["topics", "trip", "--merge", "0"], 2, "expected 2 arguments"),
        (["embed", "nope", "--embedder", "words"], 3, "`firnline conversations` lists them"),
        (["embed", "--embedder", "nonsense"], 2, "or PROVIDER/MODEL"),
    ],
)
def test_an_error_says_what_to_do(trip, arguments, code, complaint):
    given, out, err = trip(*arguments)
    assert (given, out) == (code, "")
    assert complaint in err
    assert "Traceback" not in err


def test_a_query_is_never_an_option_or_an_operator(trip):
    for query in ("NEAR(", '"', "*", "a OR", "'; DROP TABLE entry; --", "\udcff", "%"):
        assert trip("search", "--", query)[0] == 0, query


def test_messages_cannot_take_over_the_terminal_by_being_found(run):
    assert run("append", "c", "red \x1b[31m alarm \x9b2J")[0] == 0
    for command in (["search", "alarm"], ["on", "today", "--zone", "UTC"], ["topics", "c"]):
        out = run(*command)[1]
        assert "\x1b" not in out
        assert "\x9b" not in out
