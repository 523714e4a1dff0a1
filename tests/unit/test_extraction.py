"""What the rules extract of conversations that were labelled by hand, in six languages."""

# ruff: noqa: RUF001 - other scripts and their marks are meant

import os
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings

from firnline import Message
from firnline.cli.bench import facts, person_facts
from firnline.digest.evidence import check_items
from firnline.digest.items import important_data, merge
from firnline.digest.rules import extract
from firnline.errors import InputError
from firnline.language.prose import fold_text
from support.entries import chats, entry

CHATS = Path(__file__).parents[1] / "support" / "fact_chats.json"
PEOPLE = CHATS.with_name("person_facts.json")
LANGUAGES = ("en", "de", "es", "fr", "ru", "zh")


@cache
def _scores() -> tuple[facts.FactScore, ...]:
    return tuple(map(facts.score, facts.load(CHATS)))


def _data(*texts: str) -> dict:
    entries = [entry(i, Message.user(text)) for i, text in enumerate(texts)]
    items, aside = check_items(extract(entries), entries)
    assert aside == ()
    return important_data(merge((), items))


@pytest.mark.requirement("A4")
@pytest.mark.parametrize("part", ["tuning", "test"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_most_of_what_matters_is_found_in_its_field_and_little_else(language, part):
    scores = [s for s in _scores() if (s.chat.language, s.chat.part) == (language, part)]
    gold, missed, items, junk = facts.totals(scores)
    recall, share = (0.85, 0.05) if language == "en" else (0.75, 0.08)
    assert gold - missed >= recall * gold, facts.details(scores)
    assert junk <= share * items, facts.details(scores)


@pytest.mark.parametrize(("part", "recall"), [("tuning", 0.95), ("test", 0.7)])
def test_most_of_what_people_state_is_a_fact_and_nothing_else(part, recall):
    people = [person_facts.score(chat) for chat in facts.load(PEOPLE) if chat.part == part]
    missed, found, junk = (
        sum(len(getattr(one, name)) for one in people) for name in ("missed", "facts", "junk")
    )
    gold = sum(len(one.chat.gold) for one in people)
    assert gold - missed >= recall * gold, person_facts.details(people)
    assert junk <= 0.05 * found, person_facts.details(people)


def _values(value):
    return value if isinstance(value, list) else [value]


def _check_quotes(entries):
    texts = {one.seq: fold_text(one.message.text) for one in entries}
    for raw in extract(entries):
        (seq,) = raw["seqs"]
        quote = fold_text(raw["quote"])
        assert quote in texts[seq], raw
        assert all(fold_text(value) in quote for value in _values(raw["value"])), raw


@pytest.mark.requirement("A4")
def test_every_value_is_in_its_quote_and_every_quote_in_its_message():
    for one in _scores():
        _check_quotes(one.chat.entries)


@pytest.mark.requirement("A4")
@given(chats)
@settings(deadline=None)
def test_the_same_of_any_conversation(entries):
    _check_quotes(entries)


@pytest.mark.parametrize(
    ("text", "preferences"),
    [
        ("Ich bevorzuge helle Farben.", {"farben": "helle"}),
        ("Ich mag große Hotels nicht.", {"große Hotels": "mag große Hotels nicht"}),
        ("Bitte verwende keine Fußnoten.", {"Fußnoten": "verwende keine"}),
        ("Me llamo Lucía Ferrer Montes.", {"name": "Lucía Ferrer Montes"}),
        ("I'm Rosa Delgado, a soil ecologist.", {"name": "Rosa Delgado"}),
        ("I'm Senior Engineer, by the way.", {}),
        ("No me gustan las notas al pie.", {"notas al pie": "No me gustan"}),
        ("Ne m'appelez jamais au téléphone.", {"au téléphone": "Ne m'appelez jamais"}),
        ("Мне не нравятся сноски.", {"сноски": "не нравятся"}),
        ("我喜欢游泳，但讨厌跑步机。", {"游泳": "喜欢", "跑步机": "讨厌"}),
        ("Soy alérgica al níquel, ¿la funda lo contiene?", {"níquel": "alérgica"}),
        ("I'm allergic to rosin dust, sadly.", {"rosin dust": "allergic"}),
        ("Please keep the tone informal.", {"tone informal": "keep"}),
        ("I prefer short commit messages.", {"commit messages": "short"}),
        (
            "Please send me updates by text message, never on Sundays.",
            {"updates by text message": "send me"},
        ),
        ("Please send it to me by email.", {}),
        ("And answer in metric units, please.", {"in metric units": "answer"}),
        ("No exclamation marks please.", {"exclamation marks": "No"}),
        ("Don't share my address with the others.", {"address with the others": "Don't share"}),
        ("I hate those spray collars.", {"spray collars": "hate"}),
        ("I usually drink Riesling.", {"drink Riesling": "usually"}),
        ("Schreib mir bitte per Mail.", {"per Mail": "Schreib mir"}),
        ("Schreib bitte eine Mail an Tom.", {}),
        ("Schreib bitte ohne Emojis.", {"Emojis": "ohne"}),
        ("Me encanta el tono sencillo.", {"tono sencillo": "Me encanta"}),
        ("No como carne.", {"carne": "No como"}),
        ("Respóndame siempre por correo, por favor.", {"por correo": "Respóndame"}),
        ("Tutoyez-moi, s'il vous plaît.", {"moi": "Tutoyez"}),
        ("Répondez-moi par mail, merci.", {"par mail": "Répondez-moi"}),
        ("Пишите мне только по почте.", {"только по почте": "Пишите"}),
        ("Новостройки не хочу.", {"Новостройки": "не хочу"}),
        ("请用表格回答我。", {"表格回答": "用"}),
        ("我对乳糖不耐受。", {"乳糖": "不耐受"}),
        ("Keep it up!", {}),
        ("It's the job I love most.", {}),
        ("Oh great, I just love waiting on hold.", {}),
        ("Mi hermana dice que odio el mar.", {}),
        ("Packstationen mag ich nicht.", {"Packstationen": "mag ich nicht"}),
        ("Je ne bois pas d'alcool.", {"alcool": "ne bois pas"}),
        ("Mi color favorito es el verde y me voy.", {"color favorito": "el verde"}),
        ("Meine Freundin mag Tabellen.", {}),
        ("我朋友说她喜欢表格。", {}),
        ("Si tuviera tiempo, prefiero leer.", {}),
    ],
)
def test_preferences_are_in_the_words_of_their_speaker(text, preferences):
    assert _data(text)["user_preferences"] == preferences


@pytest.mark.parametrize(
    "text",
    [
        "Write an email to John about the March report.",
        "Maybe the launch slips to 5 October.",
        "If the publisher declines, I will publish it myself on 3 May.",
        "My friend Tom says he hates Oslo.",
        "Wow, Caroline, that sounds awesome!",
        "Thanks, Ana.",
        "You have 14 days left.",
        "Mein Nachbar sagt, dass er bei Hetzner zufrieden ist.",
        "Quizás usemos Redis el 4 de mayo.",
        "Если бы я поехал в Самару, было бы лучше.",
        "如果去香格里拉，还要多两天。",
        "Imaginez un million d'utilisateurs.",
    ],
)
def test_requests_guesses_comments_and_what_others_say_are_no_facts(text):
    assert _data(text)["important_facts"] == []


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("I study at the University of Leeds.", ["University of Leeds"]),
        ("Dr. Henrik Aalto is my doctor. I like Dr. Aalto.", ["Henrik Aalto"]),
        ("We ate at the Time Out Market.", ["Time Out Market"]),
        ("The VAT form and the PDF are in British English.", []),
        ("I work at IBM.", ["IBM"]),
        ('The film is called "Long Farewells".', ["Long Farewells"]),
        ("Structure: Opening note, Main essay, Events.", []),
        ("Wie lautet die Adresse, und wo ist die Rechnung für den Vertrag?", []),
        ("Ich bin mit meinem Mann Erik nach Triest gefahren.", ["Erik", "Triest"]),
        ("Estudio en la Universidad de Zaragoza.", ["Universidad de Zaragoza"]),
        ("Je travaille à l'Université de Rennes.", ["Université de Rennes"]),
        ("我叫林晓雯，在浙江大学学习。", ["林晓雯", "浙江大学"]),
        ("我们养了一只叫豆豆的猫。", ["豆豆"]),
        ("Советую Tilda.", ["Tilda"]),
    ],
)
def test_entities_are_whole_names(text, entities):
    assert _data(text)["entities"] == entities


def test_the_assistants_own_plans_are_no_decisions_but_what_it_did_is_a_fact():
    said = [
        "I have decided to rename the repository. I'll keep that deadline in mind.",
        "Your parcel was shipped today with tracking number JD0145998.",
        "I could refund order 4417 if you like. You love food markets.",
    ]
    entries = [entry(i, Message.assistant(text)) for i, text in enumerate(said)]
    data = important_data(merge((), check_items(extract(entries), entries)[0]))
    assert data["key_decisions"] == []
    assert data["user_preferences"] == {}
    assert data["important_facts"] == [said[1]]


@pytest.mark.parametrize(
    ("text", "sections"),
    [
        ("Gliederung: Einleitung, Methoden, Fazit.", ["Einleitung", "Methoden", "Fazit"]),
        (
            "Das Dokument soll die Abschnitte Einleitung, Methoden und Ergebnisse haben.",
            ["Einleitung", "Methoden", "Ergebnisse"],
        ),
        ("论文结构：引言、方法、结果。", ["引言", "方法", "结果"]),
        ("Структура: Введение, Методы, Результаты.", ["Введение", "Методы", "Результаты"]),
    ],
)
def test_sections_are_found_in_other_languages(text, sections):
    assert _data(text)["document_structure"] == {"sections": sections}


def test_a_file_that_is_no_list_of_conversations_is_an_error(tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text('[{"name": "x", "messages": []}]')
    with pytest.raises(InputError, match="expected a list of objects"):
        facts.load(bad)
    with pytest.raises(InputError, match="No such file"):
        facts.load(tmp_path / "none.json")


def test_labels_are_read_from_a_file_only(tmp_path):
    """A pipe or a device may never end."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null"), tmp_path / "missing"):
        with pytest.raises(InputError):
            facts.load(path)


@pytest.mark.requirement("A4")
@pytest.mark.parametrize(
    "text",
    [
        "We've chosen the early train.",
        "Agreed, we'll put the crate next to the bed.",
        "Let's go for seven kilowatts.",
        "Let's roll back to the old version.",
        "Let's give each worker its own schema.",
        "On est d'accord : la sortie longue sera le dimanche.",
        "Estamos de acuerdo en repartir los viernes.",
        "Крышу решили крыть черепицей.",
    ],
)
def test_what_is_agreed_is_a_decision(text):
    assert _data(text)["key_decisions"] == [text]


@pytest.mark.parametrize(
    "text", ["Let's go for a walk.", "Соседи решили уехать.", "Yes, I'll see."]
)
def test_what_is_said_every_day_is_no_decision(text):
    assert _data(text)["key_decisions"] == []


def test_names_of_houses_are_whole_and_units_months_and_nouns_are_no_names():
    said = (
        "My wife works at Saint Mary's Hospital, and Tom's Python script is slow.",
        "We use 6,400 kWh a year and start before March.",
        "Ich eröffne eine Praxis in Husum und die Miete ist nicht hoch.",
        "95 Quadratmeter, drei Räume.",
        "Gute Entscheidung.",
    )
    assert _data(*said[:2])["entities"] == ["Saint Mary's Hospital", "Tom", "Python"]
    assert _data(*said[2:])["entities"] == ["Husum"]
