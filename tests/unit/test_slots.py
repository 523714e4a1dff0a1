"""What a sentence states, of whom, and what a newer statement outdates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.digest.succession import SpokenStatement, agree, current, outdated
from firnline.language.statements.reader import as_own, statements
from firnline.log.hit import Hit
from firnline.recall.updates import Outdated, order_hits
from support.entries import chat


def read(text):
    return [(one.subject, one.slot, one.value, one.old) for one in statements(text)]


def history(*texts):
    """The values that each text outdates, by the position of the outdated text."""
    stated = [
        SpokenStatement(seq, "", one) for seq, text in enumerate(texts) for one in statements(text)
    ]
    by = outdated(stated)
    return {old.seq: current(by, old).seq for old in by}


@pytest.mark.parametrize(
    ("text", "slot", "value"),
    [
        ("I live in Berlin.", "home city", "Berlin"),
        ("Just moved to New York last week!", "home city", "New York"),
        ("After ten years in Berlin, we finally moved to Lisbon.", "home city", "Lisbon"),
        ("I work at Siemens as an engineer.", "employer", "Siemens"),
        ("I switched jobs, I'm at Bosch now.", "employer", "Bosch"),
        ("I'm a nurse.", "job", "nurse"),
        ("My birthday is on the 3rd of March.", "birthday", "3rd of March"),
        ("I've started eating meat again.", "diet", "eats meat"),
        ("We got divorced.", "relationship", "divorced"),
        (
            "My delivery address is Rua Augusta 5, 1100 Lisboa.",
            "delivery address",
            "Rua Augusta 5, 1100 Lisboa",
        ),
        ("My email is ana@example.com now.", "email", "ana@example.com"),
        ("My favorite color is now green.", "favorite color", "green"),
        ("I have a dog named Rex.", "pet", "dog named Rex"),
        ("Ich wohne in Berlin.", "home city", "Berlin"),
        ("Ich bin letzte Woche nach Lissabon gezogen.", "home city", "Lissabon"),
        ("Ich esse wieder Fleisch.", "diet", "eats meat"),
        ("Me mudé a Lisboa.", "home city", "Lisboa"),
        ("Mi cumpleaños es el 3 de marzo.", "birthday", "el 3 de marzo"),
        ("J'ai déménagé à Lyon.", "home city", "Lyon"),
        ("Je travaille chez Renault.", "employer", "Renault"),
        ("Я переехала в Лиссабон.", "home city", "Лиссабон"),
        ("Я теперь работаю в Яндексе.", "employer", "Яндексе"),
        ("我上周搬到上海了。", "home city", "上海"),
        ("我在华为工作。", "employer", "华为"),
        ("I speak Polish and a bit of Czech.", "speaks", "Czech"),
        ("我会说法语和一点德语。", "speaks", "德语"),
        ("I'm an only child.", "siblings", "only child"),
        ("I weigh 71 kilos.", "weight", "71 kilos"),
        ("I'm training for the Chicago marathon in October.", "goal", "Chicago marathon"),
        ("Готовлюсь к марафону в Москве.", "goal", "марафону в Москве"),
        ("Ich unterrichte Mathe an einem Gymnasium.", "job", "unterrichte Mathe"),
        ("Ich komme aus dem Allgäu.", "from", "Allgäu"),
        ("Я принимаю метформин два раза в день.", "medication", "метформин"),
        ("Meine Kundennummer lautet K-4471.", "kundennummer", "K-4471"),
    ],
)
def test_a_speakers_own_statement(text, slot, value):
    assert ("", slot, value, "") in read(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My older sister Ana moved to Madrid.", ("sister", "home city", "Madrid", "")),
        ("Ana lives in Oslo now.", ("ana", "home city", "Oslo", "")),
        ("The project is now called Condor.", ("project", "title", "Condor", "")),
        ("Unser Projekt heißt jetzt Kondor.", ("projekt", "title", "Kondor", "")),
        ("Order #1138 has shipped.", ("order 1138", "status", "shipped", "")),
        ("Order 1138 hasn't shipped yet.", ("order 1138", "status", "not shipped", "")),
        ("Bestellung 1138 wurde versandt.", ("bestellung 1138", "status", "versandt", "")),
        ("订单1138已发货。", ("订单1138", "status", "发货", "")),
        ("Mi pedido 55 todavía no ha llegado.", ("pedido 55", "status", "not llegado", "")),
        ("Ma commande 55 n'est pas arrivée.", ("commande 55", "status", "not arrivée", "")),
        ("Заказ 55 ещё не пришёл.", ("заказ 55", "status", "not пришёл", "")),
        ("Bestellung 55 ist noch nicht da.", ("bestellung 55", "status", "not da", "")),
        ("订单55还没到。", ("订单55", "status", "没到", "")),
        ("We moved the meeting to Thursday.", ("meeting", "date", "Thursday", "")),
        (
            "The budget was raised from 5,000 to 8,000 euros.",
            ("budget", "amount", "8,000 euros", "5,000"),
        ),
        ("We use Postgres for the backend.", ("", "tool for backend", "Postgres", "")),
        ("We switched from Postgres to MySQL.", ("", "change", "MySQL", "Postgres")),
        ("I no longer live in Berlin.", ("", "home city", "", "Berlin")),
    ],
)
def test_others_things_and_endings(text, expected):
    assert expected in read(text)


@pytest.mark.parametrize(
    "text",
    [
        "Do I live in Berlin?",
        "If I moved to Rome, would it be cheaper?",
        "I might move to Rome.",
        "I'd love to live in Rome.",
        "I used to live in Paris.",
        "Imagine I live in Rome.",
        'My boss said "I live in Rome".',
        "He said I moved to Rome.",
        "She lives in Rome.",
        "We moved to Thursday.",
        "We moved to Postgres last month.",
        "I joined the gym.",
        "You should move to Lisbon.",
        "Wenn ich in Rom wohne, ist es billiger.",
        "My code is 1138.",
        "The server is Down.",
        "Ich liebe deine Antwort.",
        "J'adore ta réponse.",
        "Мне нравится твой ответ.",
        "我喜欢你的回答。",
        "Ich komme aus dem Staunen nicht heraus.",
        "Я принимаю предложение.",
        "Estoy preparando la cena.",
        "",
    ],
)
def test_nothing_is_stated(text):
    assert read(text) == []


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["I live in Berlin.", "I moved to Lisbon."], {0: 1}),
        (["I live in Berlin.", "My sister moved to Lisbon.", "Order 7 has shipped."], {}),
        (["I live in Berlin.", "I moved to Lisbon.", "I moved to Porto."], {0: 2, 1: 2}),
        (["I live in Lisbon.", "I moved to Lisbon, Portugal."], {}),
        (["I live in Berlin.", "I no longer live in Berlin.", "I live in Oslo."], {0: 2, 1: 2}),
        (["I work at Siemens.", "I left Siemens and joined Bosch."], {0: 1}),
        (["I work at Siemens.", "I live in Berlin.", "I moved from Siemens to Bosch."], {0: 2}),
        (["I'm vegetarian.", "I stopped eating meat."], {}),
        (["I'm vegetarian.", "I eat meat again."], {0: 1}),
        (["Our project is called Falcon.", "Falcon was renamed to Condor."], {0: 1}),
        (["My birthday is March 3.", "Correction: it's March 13, not March 3."], {0: 1}),
        (["Order 1 is pending.", "Order 2 has shipped."], {}),
        (["Order 1 is pending.", "The order has shipped."], {0: 1}),
        (["We use Postgres.", "We use Slack.", "We switched to MySQL."], {0: 2}),
        (["We use Postgres.", "We use Slack."], {}),
        (["I have a dog.", "I have a cat."], {}),
        (["Ich wohne in Berlin.", "Ich bin nach Lissabon gezogen."], {0: 1}),
        (["Я живу в Москве.", "Я переехала в Лиссабон."], {0: 1}),
        (["我住在北京。", "我搬到上海了。"], {0: 1}),
    ],
)
def test_a_newer_value_outdates_the_older(texts, expected):
    assert history(*texts) == expected


def test_an_echo_outdates_nothing_and_goes_with_what_it_repeats():
    texts = ["I live in Berlin.", as_own("You live in Berlin."), "I moved to Lisbon."]
    stated = [
        SpokenStatement(seq, "", one, echo=seq == 1)
        for seq, text in enumerate(texts)
        for one in statements(text)
    ]
    assert {old.seq for old in outdated(stated)} == {0, 1}
    assert not outdated(
        [SpokenStatement(0, "", stated[0].statement), stated[2]._replace(echo=True)]
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("March 3", "3rd of March", True),
        ("March 13", "March 3", False),
        ("5,000 euros", "8,000 euros", False),
        ("vegetarian", "no meat", True),
        ("Лиссабоне", "Лиссабон", True),
        ("New York", "New Jersey", False),
    ],
)
def test_values_agree(one, other, same):
    assert agree(one, other) is agree(other, one) is same


@given(st.permutations(range(8)), st.integers(0, 7), st.integers(0, 7), st.booleans())
def test_the_order_of_the_other_hits_stays(seqs, old, new, asked):
    entries = {entry.seq: entry for entry in chat(*map(str, range(8)))}
    hits = [Hit("c", entries[seq], float(-place)) for place, seq in enumerate(seqs)]
    changes = [Outdated(old, new, asked)] if old != new else []
    ordered = [hit.seq for hit in order_hits(hits, "c", entries, changes)]
    assert [seq for seq in ordered if seq != new] == [seq for seq in seqs if seq != new]
    if changes and asked:
        assert ordered.index(new) < ordered.index(old)
    else:
        assert ordered == list(seqs)
