"""The rule-based extractor finds what people settle, in their own words, and nothing put in."""

import pytest
from hypothesis import given, settings

from entries import chat, chats, entry
from firnline import Message
from firnline.digest import offline_extractor
from firnline.digest.items import FIELDS, checked, important_data, merge
from firnline.digest.marks import RECALLED_END, RECALLED_START
from firnline.digest.rules import cues, extract
from firnline.protocols import Brief

SEED = [
    "I prefer dark mode. My document should have sections for Introduction, Methods, Results.",
    "Important sources: https://example.com/paper1, https://example.com/paper2",
    "The key finding is that X causes Y. This is critical for the paper.",
]


def _data(*texts: str) -> dict:
    """Important data of what a user says."""
    entries = [entry(i, Message.user(text)) for i, text in enumerate(texts)]
    items, aside = checked(extract(entries), entries)
    assert aside == ()
    return important_data(merge((), items))


@pytest.mark.requirement("A4")
@pytest.mark.requirement("X4")
async def test_the_seeds_example_is_found_without_a_model():
    entries = tuple(entry(i, Message.user(text)) for i, text in enumerate(SEED))
    written = await offline_extractor()(Brief(entries=entries))
    items, aside = checked(written.items, entries)
    data = important_data(merge((), items))
    assert aside == ()
    assert data["user_preferences"] == {"mode": "dark"}
    assert data["document_structure"] == {"sections": ["Introduction", "Methods", "Results"]}
    assert data["source_urls"] == ["https://example.com/paper1", "https://example.com/paper2"]
    assert data["important_facts"] == ["The key finding is that X causes Y."]
    assert written.calls == 0


@pytest.mark.parametrize(
    ("text", "preferences"),
    [
        ("I'd really prefer short answers, please.", {"answers": "short"}),
        ("I prefer tea over coffee.", {"tea": "preferred over coffee"}),
        ("I prefer to work in the mornings.", {"work in the mornings": "preferred"}),
        ("Please use metric units.", {"units": "metric"}),
        ("Call me Sam.", {"name": "Sam"}),
        ("Hi, my name is Ana Silva and I need help.", {"name": "Ana Silva"}),
        (
            "I'm allergic to peanuts and shellfish.",
            {"peanuts": "allergic", "shellfish": "allergic"},
        ),
        ("Never use emojis.", {"use emojis": "never"}),
        ("Always answer in French.", {"language": "French"}),
        ("I love sushi but I hate olives.", {"sushi": "likes", "olives": "dislikes"}),
        ("I'm vegetarian.", {"diet": "vegetarian"}),
        ("Ich bevorzuge dunklen Modus.", {"modus": "dunklen"}),
        ("我更喜欢深色模式。", {"深色模式": "preferred"}),
        ("Do you prefer dark mode?", {}),
        ("Never mind.", {}),
    ],
)
def test_preferences_have_an_attribute_and_a_value(text, preferences):
    assert _data(text)["user_preferences"] == preferences


def test_a_changed_mind_replaces_the_older_preference():
    data = _data("I prefer dark mode.", "Actually I prefer light mode.", "I prefer window seats.")
    assert data["user_preferences"] == {"mode": "light", "seats": "window"}


@pytest.mark.parametrize(
    "text",
    [
        "Let's go with PostgreSQL.",
        "We decided to postpone the launch.",
        "OK, we'll use Redis for that.",
        "Agreed, Tuesday it is.",
        "The decision is to hire Tom.",
        "Wir haben uns für Kafka entschieden.",
        "Hemos decidido viajar en mayo.",
        "On a décidé de partir.",
        "Мы решили переехать.",
        "我们决定使用PostgreSQL。",
    ],
)
def test_decisions_are_quoted(text):
    assert _data(text)["key_decisions"] == [text]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("My brother Tom lives in Oslo.", True),
        ("The deadline is near.", True),
        ("The flat costs 1,200 euros.", True),
        ("Remember that the door sticks.", True),
        ("We meet on Friday then.", True),
        ("How much is 1,200 euros in Oslo?", False),
        ("That is nice of you.", False),
        ("Thanks!", False),
    ],
)
def test_facts_are_statements_with_something_to_check(text, facts):
    assert _data(text)["important_facts"] == ([text] if facts else [])


def test_document_structure_can_be_given_as_an_outline():
    data = _data("Document structure: Intro, Related Work, and Results.")
    assert data["document_structure"] == {"sections": ["Intro", "Related Work", "Results"]}
    assert _data("It has parts that I like, and more.")["document_structure"] == {}


def test_the_assistant_is_read_for_decisions_and_tools_for_urls_and_names_only():
    entries = (
        entry(0, Message.assistant("I prefer tea. Tom lives in Oslo. We decided on the red one.")),
        entry(1, Message.tool("We decided on Kafka: https://k.org costs 5 USD", tool_call_id="c")),
        entry(2, Message.system("The user is Bob. We decided nothing.")),
    )
    data = important_data(merge((), checked(extract(entries), entries)[0]))
    assert data["user_preferences"] == {}
    assert data["key_decisions"] == ["We decided on the red one."]
    assert data["important_facts"] == []
    assert data["source_urls"] == ["https://k.org"]
    assert data["entities"] == ["Oslo", "Kafka"]


def test_recalled_injected_and_code_text_is_never_extracted():
    marked = [
        Message.user("I prefer dark mode.", metadata={"firnline": mark})
        for mark in ("recalled", "injected", "digest")
    ]
    inside = Message.user(f"{RECALLED_START}\nI prefer dark mode.\n{RECALLED_END} Is it so?")
    quoted = Message.user("The page says [recalled] in red. I prefer dark mode.")
    code = Message.user("```\nI prefer dark mode. https://in.code\n```")
    assert extract([entry(i, m) for i, m in enumerate([*marked, inside, code])]) == []
    assert extract([entry(0, quoted)]), "a word in brackets hides nothing"


def test_sentences_are_told_apart_by_their_wording():
    assert cues("Let's go with Redis.").decision
    assert cues("I prefer tea.").preference
    assert cues("Shall we go with Redis?").question
    assert not cues("Shall we decide? Have we decided on tea?").decision
    assert cues("Important: bring keys.").marked


@given(chats)
@settings(deadline=None)
def test_everything_extracted_from_any_conversation_has_evidence(entries):
    raw = extract(entries)
    items, aside = checked(raw, entries)
    assert len(items) + len(aside) >= min(len(raw), len(items) + 50)
    for item in raw:
        assert item["field"] in FIELDS
        assert item["quote"].strip()
    assert not [row for row in aside if "quote" in row["reason"]], aside
    assert raw == extract(entries)


def test_a_chat_is_read_in_order():
    seqs = [
        item["seqs"][0] for item in extract(chat("Ana is 5.", "We decided on tea.", "I met Tom."))
    ]
    assert seqs == sorted(seqs)
