"""Claims of a summary are checked against its source: false ones are caught, true ones pass."""

# ruff: noqa: RUF001 - other scripts and their marks are meant

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline.digest.claims import TextClaim, claims, unsupported, url_key
from firnline.digest.extractive import summarize
from firnline.log.entry import Entry
from firnline.log.message import Message
from firnline.protocols import Brief
from support.chats import CHATS, CITIES, FALSE_NAMES, FIRMS, FREE, MONTHS, PEOPLE, SURNAMES, TOOLS


def _facts(rng: random.Random) -> dict[str, str]:
    p1, p2 = rng.sample(PEOPLE, 2)
    f1, f2 = rng.sample(FIRMS, 2)
    t1, t2 = rng.sample(TOOLS, 2)
    month, day = rng.randrange(len(MONTHS)), rng.randint(13, 28)
    later = rng.randint(day + 1, 30)
    n1, n2, n3 = (rng.randint(101, 9_999) for _ in range(3))
    number = {5: 6}.get(month + 1, month + 1) if month < 4 else month + 2
    return {
        "p1": p1, "p2": p2, "s1": rng.choice(SURNAMES), "c1": rng.choice(CITIES),
        "f1": f1, "f2": f2, "t1": t1, "t2": t2, "m1": MONTHS[month], "mm": f"{number:02}",
        "d1": str(day), "dd": f"{day:02}", "d2": str(later),
        "n1": rng.choice([f"{n1:,}", str(n1)]), "n2": str(n2), "n3": str(n3),
    }  # fmt: skip


def _samples(seed: int, number: int):
    """Sources, an honest summary, and false names and numbers that are in no source."""
    rng = random.Random(seed)
    for i in range(number):
        turns, summaries = CHATS[i % len(CHATS)]
        facts = _facts(rng)
        sources = [turn.format(**facts) for turn in turns]
        kind = rng.randrange(len(summaries) + 1)
        if kind < len(summaries):
            summary = summaries[kind].format(**facts)
        else:
            speakers = (Message.user, Message.assistant)
            entries = tuple(
                Entry(n, speakers[n % 2](text), 20, 0, "", "o200k_base")
                for n, text in enumerate(sources)
            )
            summary = summarize(Brief(entries=entries, words_max=rng.choice([30, 45, 60])))
        yield rng, sources, summary


NAMES = sorted({*PEOPLE, *SURNAMES, *CITIES, *TOOLS, *FIRMS}, key=len, reverse=True)
NAME = re.compile(rf"\b(?:{'|'.join(NAMES)})\b")
NUMBER = re.compile(r"(?<![\w/-])\d[\d,]*\d(?![\w:-])")


def _with_false_name(rng: random.Random, summary: str) -> str | None:
    """The summary with one name replaced, or a sentence with a false name added."""
    false = rng.choice(FALSE_NAMES)
    places = list(NAME.finditer(summary))
    if places and rng.random() < 0.7:
        place = rng.choice(places)
        return summary[: place.start()] + false + summary[place.end() :]
    more = rng.choice([
        f" It was approved by {false}.", f" {false} will review it.", f" They moved to {false}.",
        f" According to {false}, this is enough.", f" {false} agreed.", f" Later {false} called.",
    ])  # fmt: skip
    return summary + more


def _with_false_number(rng: random.Random, summary: str, sources: list[str]) -> str | None:
    """The summary with one number replaced, or a sentence with a false number added."""
    said = " ".join(sources).replace(",", "")
    false = next(n for n in iter(lambda: rng.randint(31, 99_999), None) if str(n) not in said)
    text = rng.choice([str(false), f"{false:,}"])
    places = list(NUMBER.finditer(summary))
    if places and rng.random() < 0.7:
        place = rng.choice(places)
        return summary[: place.start()] + text + summary[place.end() :]
    more = rng.choice([
        f" The total is {text}.", f" It takes {text} minutes.", f" The price rose by {text}%.",
        f" There were ${text} left.", f" They ordered {text} units.",
    ])  # fmt: skip
    return summary + more


SAMPLES = 900


def test_planted_false_names_and_numbers_are_caught():
    caught = {"name": [0, 0], "number": [0, 0]}
    for rng, sources, summary in _samples(20_250_301, SAMPLES):
        lies = {
            "name": _with_false_name(rng, summary),
            "number": _with_false_number(rng, summary, sources),
        }
        for kind, lie in lies.items():
            caught[kind][0] += bool(unsupported(lie, sources))
            caught[kind][1] += 1
    for kind, (hits, tries) in caught.items():
        assert tries >= 500
        assert hits >= 0.95 * tries, f"{kind}: {hits} of {tries}"


def test_honest_summaries_raise_few_false_alarms():
    alarms = [
        (summary, found)
        for _, sources, summary in _samples(77, SAMPLES)
        if (found := unsupported(summary, sources))
    ]
    assert len(alarms) <= 0.05 * SAMPLES, alarms[:3]


def test_free_retellings_of_other_chats_raise_few_false_alarms():
    tries = [(retelling, sources) for sources, retellings in FREE for retelling in retellings]
    alarms = [(text, found) for text, sources in tries if (found := unsupported(text, sources))]
    assert len(alarms) <= 0.05 * len(tries), alarms


# -- what counts as the same --------------------------------------------------------------------

SOURCE = [
    "I'm Ana Silva and I moved to Lisbon on March 3. I have $1,500, maybe 2.5 million later.",
    "Let's use PostgreSQL with three replicas. See https://Example.com/Paper1. GPT-4o is fine.",
    "On 2025-04-01 we ship ABC-123 at 3pm to two hundred and fifty users. New York City is next.",
    "Wir zahlen 1.250,50 Euro am 24.12.2024. 下周三有12个人。",
]


@pytest.mark.parametrize(
    "summary",
    [
        "Ana's budget is 1500 dollars.",
        "The user, SILVA, lives in lisbon.",
        "She moved on 3 March 2025.",
        "Postgres runs with 3 replicas.",
        "They expect 2,500,000 later, or 2.5M.",
        "Shipping of ABC-123 happens on April 1 at 15:00.",
        "Shipping is on a Tuesday, 01/04/2025 or 04/01/2025.",
        "There are 250 users. NYC comes next.",
        "See https://example.com/Paper1/ and https://www.example.com.",
        "They pay 1,250.50 euros on December 24.",
        "Around 1,480 dollars are planned.",
        "The two of them discussed four topics.",
        "1. Ana moved.\n2. Lisbon is home.\n3. Done.",
        "## Key Decisions\n- Use PostgreSQL\n- Ship in April",
        "Twelve people come: 12人。",
    ],
)
def test_a_summary_may_write_the_same_thing_in_another_way(summary):
    assert unsupported(summary, SOURCE) == ()


@pytest.mark.parametrize(
    ("summary", "lie"),
    [
        ("Marta has a budget.", "Marta"),
        ("It was Ana Costa who moved.", "Ana Costa"),
        ("The budget is $1,600.", "$1,600"),
        ("She moved on March 5.", "March 5"),
        ("She moved on March 3, 2025, to Porto.", "Porto"),
        ("It ships on 2024-04-01.", "2024-04-01"),
        ("It ships as ABC-124.", "ABC-124"),
        ("There are seven replicas.", "seven"),
        ("See https://example.com/Paper2.", "https://example.com/Paper2"),
        ("It ships at 4pm.", "4pm"),
        ("They meet on Sunday.", "Sunday"),
        ("Owner: Beatrix.", "Beatrix"),
        ("Ask bob@example.com.", "bob@example.com"),
        ("They pay 2.5 thousand.", "2.5 thousand"),
    ],
)
def test_claims_without_a_source_are_found(summary, lie):
    assert [claim.value for claim in unsupported(summary, SOURCE)] == [lie]


def _keys(text: str, kind: str) -> list[str]:
    return [claim.key for claim in claims(text) if claim.kind == kind]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("1,000 and 1000 and one thousand", ["1000"] * 3),
        ("30% or 30 percent or $30 or 30 €", ["30"] * 4),
        ("5k, 2.5 million, 3 bn", ["5000", "2500000", "3000000000"]),
        ("twenty-five and two hundred and six", ["25", "206"]),
        ("1 000 000 and 1'000", ["1000000", "1000"]),
        ("at 3pm, 15:00 and 3:30 p.m.", ["t3:00", "t3:00", "t3:30"]),
        ("version 1.2.3 of B12", ["1.2.3"]),
        ("共３人，预算1500元，3万", ["3", "1500", "30000"]),
    ],
)
def test_numbers_have_one_plain_form(text, keys):
    assert _keys(text, "number") == keys


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("2025-03-03, 3 March 2025, March 3rd, 2025, 03/03/2025", ["2025-03-03"] * 4),
        ("March 3 and 3. März and 3 de marzo and 3月3日", ["*-03-03"] * 4),
        ("in May, by March 2025, on Friday", ["*-05-*", "2025-03-*", "weekday-5"]),
        ("I may march 300 miles", []),
    ],
)
def test_dates_have_one_plain_form(text, keys):
    assert _keys(text, "date") == keys


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("We met Ana Silva, and Tom's team, in New York.", ["Ana Silva", "Tom", "New York"]),
        ("The API of iPhone uses NASA data for GPT-4o.", ["iPhone", "NASA", "GPT-4o"]),
        ("I think It's fine. Let's go. I'm Done!", []),
        ("THIS IS ALL SHOUTED AT BOB", []),
        ("Der Hund mag die Katze und das Haus ist nicht groß.", []),
        ("我叫小明，住在北京。", []),
        ("Ask Dr. Keller or O'Brien.", ["Keller", "O'Brien"]),
        ("Maria Lopez leads. Owner: Priya Nair", ["Maria Lopez", "Priya Nair"]),
        (
            "Tom Baker came. Emily Stone's, too. Bill Gates",
            ["Tom Baker", "Emily Stone", "Bill Gates"],
        ),
        ("New York's best. Los Angeles? New Contract for Ana", ["New York", "Los Angeles", "Ana"]),
        ("Mark Friday. Tom Will. Max It Out. Sam, Ana", ["Ana"]),
        ("Congratulations Maria! Reschedule Anna Schmidt.", ["Maria", "Anna Schmidt"]),
        ("Breakfast Club, then: tell\nMaria\nLopez", ["Club"]),
    ],
)
def test_names_are_words_with_a_capital_letter(text, names):
    assert [c.value for c in claims(text) if c.kind == "name" and c.sure] == names


def test_urls_lose_the_punctuation_around_them():
    text = "See (https://Example.com/a_(b)), <HTTP://x.org/Path/>; www.y.net/q?z=1. 见https://z.cn/页。"
    assert _keys(text, "url") == [
        "https://example.com/a_(b)",
        "http://x.org/Path",
        "https://y.net/q?z=1",
        "https://z.cn/页",
    ]
    assert url_key("https://WWW.Example.com/") == url_key("https://example.com")


def test_claims_compare_by_what_they_mean():
    assert claims("1,000") == (TextClaim("number", "1,000", "1000"),)


@pytest.mark.parametrize(
    "piece",
    [
        "a", "1,", "Ab ", ". ", ".", "http://", "one ", "two hundred and ", "March 3 ", "a.b@",
        "1 000 ", "(", '."', "9", "我们决定", "[", " ", "\n", "Ab-", "1/1/2020 ", "3:30 ",
    ],
)  # fmt: skip
def test_no_repetition_makes_checking_fail_or_hang(piece):
    text = piece * (60_000 // len(piece))
    assert unsupported(text, [text]) == ()


@given(st.text(), st.lists(st.text(), max_size=3))
@settings(deadline=None)
def test_any_text_can_be_checked(summary, sources):
    for claim in unsupported(summary, sources):
        assert claim.value
    assert claims(summary) == claims(summary)


@given(st.text())
@settings(deadline=None)
def test_a_text_supports_itself(text):
    assert unsupported(text, [text]) == ()
