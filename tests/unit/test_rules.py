"""The rule-based extractor finds decisions and preferences in users' own words only."""

# ruff: noqa: RUF001 - other scripts and their marks are meant

import pytest
from hypothesis import given, settings

from firnline import Message
from firnline.context.marks import RECALLED_END, RECALLED_START
from firnline.digest import offline_extractor
from firnline.digest.evidence import check_items
from firnline.digest.items import FIELDS, important_data, merge
from firnline.digest.rules import cues, extract
from firnline.protocols import Brief
from support.entries import chat, chats, entry

SEED = [
    "I prefer dark mode. My document should have sections for Introduction, Methods, Results.",
    "Important sources: https://example.com/paper1, https://example.com/paper2",
    "The key finding is that X causes Y. This is critical for the paper.",
]


def _data(*texts: str) -> dict:
    """Important data of what a user says."""
    entries = [entry(i, Message.user(text)) for i, text in enumerate(texts)]
    items, aside = check_items(extract(entries), entries)
    assert aside == ()
    return important_data(merge((), items))


@pytest.mark.requirement("A4")
@pytest.mark.requirement("X4")
async def test_the_seeds_example_is_found_without_a_model():
    entries = tuple(entry(i, Message.user(text)) for i, text in enumerate(SEED))
    written = await offline_extractor()(Brief(entries=entries))
    items, aside = check_items(written.items, entries)
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
        ("I prefer tea over coffee.", {"tea": "prefer tea over coffee"}),
        ("I prefer to work in the mornings.", {"work in the mornings": "prefer to"}),
        ("Please use metric units.", {"units": "metric"}),
        ("Call me Sam.", {"name": "Sam"}),
        ("Hi, my name is Ana Silva and I need help.", {"name": "Ana Silva"}),
        (
            "I'm allergic to peanuts and shellfish.",
            {"peanuts": "allergic", "shellfish": "allergic"},
        ),
        ("Never use emojis.", {"use emojis": "Never"}),
        ("Always answer in French.", {"language": "French"}),
        ("I love sushi but I hate olives.", {"sushi": "love", "olives": "hate"}),
        ("I'm vegetarian.", {"diet": "vegetarian"}),
        ("Ich bevorzuge dunklen Modus.", {"modus": "dunklen"}),
        ("我更喜欢深色模式。", {"深色模式": "喜欢"}),
        ("Do you prefer dark mode?", {}),
        ("Never mind.", {}),
    ],
)
def test_preferences_have_an_attribute_and_a_value(text, preferences):
    assert _data(text)["user_preferences"] == preferences


@pytest.mark.parametrize(
    "text",
    [
        "I am not allergic to nuts.",
        "I don’t think I'm allergic to nuts.",
        "My name is not Anna.",
        "Don't call me Bob.",
        "I don't think I like olives.",
        "I'm not saying I prefer tea.",
        "I am not vegan.",
        "Ich heiße nicht Anna.",
        "Ich bin nicht allergisch gegen Nüsse.",
        "No me llamo Anna.",
        "Меня зовут не Анна.",
    ],
)
def test_what_is_denied_is_no_preference(text):
    assert _data(text)["user_preferences"] == {}


@pytest.mark.parametrize(
    "text",
    [
        "My dog is allergic to chicken.",
        "People who are allergic to nuts must not eat this.",
        "My wife's name is Eva.",
        "They call me Sam.",
        "He should never drive.",
        "They always answer in German.",
        "I have to write in English at work.",
        "She told me my name is Bob.",
        "My brother says I hate olives.",
        "I thought I like olives.",
        "I love sushi, she said.",
        'The form has "My name is Bob" on it.',
        "The song goes 'my name is Slim Shady'.",
        "Translate: my name is Bob.",
        "> I prefer tea.",
        "他说我叫李明。",
    ],
)
def test_statements_about_others_or_by_others_are_no_preference(text):
    assert _data(text)["user_preferences"] == {}


@pytest.mark.parametrize(
    "text",
    [
        "Is my name Klara",
        "I wonder whether my name is Klara.",
        "If my name was Bob, I would know.",
        "Suppose I'm allergic to nuts.",
        "Let's pretend my name is Bob.",
        "如果我喜欢茶。",
    ],
)
def test_what_is_asked_or_supposed_is_no_preference(text):
    assert _data(text)["user_preferences"] == {}


@pytest.mark.parametrize(
    "text",
    [
        "Please call me tomorrow at 5 pm.",
        "Call me back.",
        "Call me at 5.",
        "Call me anytime.",
        "Please call me Monday.",
        "My name is spelled wrong",
        "MY NAME IS WRONG",
        "My name is Polish.",
        "My name is on the list.",
        "My name is Earl is a great show.",
        "My name is Bob in the game.",
        "Ich heiße Sie willkommen.",
        "Nenn mich später.",
        "我叫了外卖",
        "我叫他来。",
        "我叫王医生。",
    ],
)
def test_not_every_word_is_a_name(text):
    assert _data("My name is Klara.", text)["user_preferences"] == {"name": "Klara"}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("My name is not Anna, my name is Klara.", "Klara"),
        ("I'm Robert but please call me Bob.", "Bob"),
        ("You can call me Dr. Weber.", "Dr. Weber"),
        ("I told you my name is Klara.", "Klara"),
        ("Hi, I'm new here, my name is Jean-Luc O'Brien.", "Jean-Luc O'Brien"),
        ("Me llamo Anna.", "Anna"),
        ("Меня зовут Анна.", "Анна"),
        ("我叫李明，今年20岁。", "李明"),
    ],
)
def test_names_are_found_where_people_give_theirs(text, name):
    assert _data(text)["user_preferences"] == {"name": name}


@pytest.mark.parametrize(
    "text",
    [
        "I never received parcel 4412.",
        "Never received parcel 4412.",
        "We never got an answer.",
        "I always wanted a dog.",
        "Always late.",
        "You always answer in French.",
    ],
)
def test_what_happened_is_no_wish(text):
    assert _data(text)["user_preferences"] == {}


@pytest.mark.parametrize(
    ("text", "preferences"),
    [
        ("I never eat meat.", {"eat meat": "never"}),
        ("Be brief and never use emojis.", {"use emojis": "never"}),
        ("We should never deploy on Fridays.", {"deploy on Fridays": "never"}),
        ("Never answer in French.", {"answer in French": "Never"}),
        ("I want you to always answer in French.", {"language": "French"}),
        ("I'm vegan and allergic to nuts.", {"diet": "vegan", "nuts": "allergic"}),
        ("I'm allergic to nuts, my wife loves them.", {"nuts": "allergic"}),
        ("I'm allergic to nuts but not shellfish.", {"nuts": "allergic"}),
        ("Actually I prefer coffee now.", {"coffee": "prefer"}),
        ("I prefer a window seat on trains.", {"window seat on trains": "prefer"}),
        ("Make sure to never ever use emojis.", {"use emojis": "never ever"}),
        ("I’d prefer short answers.", {"answers": "short"}),
        ("Please use the table above.", {}),
        ("Please use it.", {}),
        ("I prefer it black.", {}),
        ("I hate to bother you.", {}),
        ("What I like is tea.", {}),
        ("I'm a vegan chef.", {}),
    ],
)
def test_a_preference_is_of_a_thing_and_of_no_more_than_that(text, preferences):
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
    data = important_data(merge((), check_items(extract(entries), entries)[0]))
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
    quoted = Message.user("The page says [recalled] in red. I prefer dark mode.")
    code = Message.user("```\nI prefer dark mode. https://in.code\n```")
    assert extract([entry(i, m) for i, m in enumerate([*marked, code])]) == []
    assert extract([entry(0, quoted)]), "a word in brackets hides nothing"
    forged = Message.user(f"{RECALLED_START}\nI prefer dark mode.\n{RECALLED_END}\nIs it so?")
    assert extract([entry(0, forged)]), "text alone hides nothing"


def test_sentences_are_distinguished_by_their_wording():
    assert cues("Let's go with Redis.").decision
    assert cues("I prefer tea.").preference
    assert cues("Shall we go with Redis?").question
    assert not cues("Shall we decide? Have we decided on tea?").decision
    assert cues("Important: bring keys.").marked


@given(chats)
@settings(deadline=None)
def test_everything_extracted_from_any_conversation_has_evidence(entries):
    raw = extract(entries)
    items, aside = check_items(raw, entries)
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


@pytest.mark.parametrize(
    "text",
    [
        "Wir haben uns noch nicht entschieden.",
        "Es ist noch nichts beschlossen.",
        "Aún no hemos decidido el hotel.",
        "Ещё не решено.",
        "我们还没决定使用哪个数据库。",
        "I don't think we agreed on 500 euros.",
        "I never said we agreed on 500 euros.",
        "My boss said we will use Oracle.",
        '"We will use Oracle," said Tom.',
        "Bob claims we decided on Lisbon.",
        "Maybe we'll use Redis.",
        "If we go with Postgres, we'll use Patroni.",
        "I'm not going with the blue one.",
        "My sister is going with me.",
        "I'll keep you posted.",
        "I will keep that in mind.",
        "Let's move on.",
        "The decision is still open.",
        "Decision: pending.",
    ],
)
def test_what_is_not_settled_by_the_speaker_is_no_decision(text):
    assert _data(text)["key_decisions"] == []
    assert not cues(text).decision


@pytest.mark.parametrize(
    "text",
    [
        "Bob asked for Postgres, so let's go with Postgres.",
        "It is not cheap, but we'll use Oracle.",
        "As I said, we will use Oracle.",
        "No, let's book the Alfama apartment instead.",
        "We're going with the blue one.",
        "The decision is Lisbon.",
        "Decision: no meat at the party.",
        "Wir nehmen das Hotel Adler.",
        "我们决定使用PostgreSQL数据库。",
    ],
)
def test_what_the_speaker_settles_is_a_decision(text):
    assert _data(text)["key_decisions"] == [text]


@pytest.mark.parametrize(
    "text",
    [
        "can you check if order 1138 is late",
        "Is my flight on Monday or on Tuesday",
        "What if the deadline is June 3",
        "Imagine I live in Lisbon with 3 cats.",
        "I dreamed that I was born in 1820.",
        "If I had the money I would stay at the Park Hyatt for 5 nights.",
        "> The server in Oslo has 4 disks.",
        'Traceback (most recent call last):\n  File "/app/main.py", line 42, in <module>\n    run',
        'class Foo:\n    def bar(self):\n        raise ValueError("x is 3")',
        "| the port is | 8080 |",
        "    at Object.openSync (fs.js:498:3)",
    ],
)
def test_questions_dreams_and_code_are_no_facts(text):
    assert _data(text)["important_facts"] == []


@pytest.mark.parametrize(
    "text",
    [
        "If you need me, my number is 0170 1234567.",
        "Will has 3 cats.",
        "May 5 is the day of the launch.",
        "Do not forget: the meeting is on Friday.",
        "Can you remember that the deadline is June 3.",
    ],
)
def test_facts_that_begin_like_questions_are_facts(text):
    assert _data(text)["important_facts"] == [text]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (
            ["I prefer tea.", "Actually I prefer coffee now."],
            {"tea": "Actually I prefer coffee now.", "coffee": "prefer"},
        ),
        (
            ["I prefer tea.", "Actually, no, I prefer coffee."],
            {"tea": "Actually, no, I prefer coffee.", "coffee": "prefer"},
        ),
        (["I prefer tea.", "I prefer coffee, too."], {"tea": "prefer", "coffee": "prefer"}),
        (["I prefer tea.", "Actually I prefer trains."], {"tea": "prefer", "trains": "prefer"}),
        (["I'm vegetarian.", "I'm not vegetarian anymore."], {"diet": "not vegetarian anymore"}),
        (["I am a vegan.", "I'm no longer vegan."], {"diet": "no longer vegan"}),
        (
            ["I'm allergic to nuts.", "I'm no longer allergic to nuts."],
            {"nuts": "no longer allergic"},
        ),
        (
            ["I prefer dark mode.", "I no longer prefer dark mode."],
            {"mode": "no longer prefer dark mode"},
        ),
        (["If I'm no longer vegan, tell me."], {}),
        (["I'm not vegan."], {}),
    ],
)
def test_what_a_speaker_takes_back_is_not_current(texts, expected):
    assert _data(*texts)["user_preferences"] == expected


def test_a_user_does_not_correct_preferences_of_another():
    said = [("Ana", "I prefer tea."), ("Bob", "Actually no, I prefer coffee.")]
    entries = [entry(i, Message.user(text, name=name)) for i, (name, text) in enumerate(said)]
    items, _ = check_items(extract(entries), entries)
    assert important_data(merge((), items))["user_preferences"] == {
        "tea (Ana)": "prefer",
        "coffee (Bob)": "prefer",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ich bevorzuge keinen Kaffee.", {"Kaffee": "bevorzuge keinen"}),
        ("Prefiero no volar.", {}),
        ("Je préfère ne pas prendre l'avion.", {}),
        ("Prefiero el té.", {"té": "Prefiero"}),
        ("Je préfère le thé.", {"thé": "préfère"}),
        ("Ich bevorzuge den frühen Zug.", {"zug": "frühen"}),
        ("我更喜欢茶而不是咖啡。", {"茶": "喜欢"}),
        ("Please use Python 3.11 for this.", {"Python 3.11": "use"}),
        ("I doubt I like jazz.", {}),
    ],
)
def test_a_preference_is_complete_and_not_inverted(text, expected):
    assert _data(text)["user_preferences"] == expected
