"""Updates as messages: everything users send is visible, and unknown fields are stored."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from firnline.errors import InputError
from firnline.log.message import encode
from firnline.server.telegram.settings import BotSettings, checked, named
from firnline.server.telegram.updates import kind_of, read

ADA = {"id": 7, "is_bot": False, "first_name": "Ada", "username": "ada"}
BOT_ID = 42
PHOTO = [{"file_id": "small", "width": 90}, {"file_id": "large", "width": 1280}]


def update(text=None, *, chat=7, kind="message", **fields):
    message = {
        "message_id": 5,
        "date": 1_760_000_000,
        "chat": {"id": chat, "type": "private" if chat > 0 else "supergroup"},
        "from": ADA,
        **fields,
    }
    if text is not None:
        message["text"] = text
    return {"update_id": 100, kind: message}


def incoming(*args, **fields):
    return read(update(*args, **fields), BOT_ID)


def test_a_text_is_the_users_word_for_word_with_time_name_and_numbers():
    got = incoming("  Hello\n there ")
    assert got.message.text == "  Hello\n there "
    assert got.message.role == "user"
    assert got.message.name == "Ada"
    assert got.message.created_at == datetime(2025, 10, 9, 8, 53, 20, tzinfo=UTC)
    kept = got.message.metadata["telegram"]
    assert (kept["message_id"], kept["chat"]["id"], kept["from"]) == (5, 7, ADA)
    assert (got.asks, got.mentions, got.edited, got.group) == (True, None, False, False)
    assert (got.person, incoming("Hi", chat=-7).person) == ("telegram:7", None)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"photo": PHOTO, "caption": "our house"}, "[photo]\nour house"),
        ({"document": {"file_id": "d", "file_name": "plan.pdf"}}, "[document plan.pdf]"),
        ({"voice": {"file_id": "v", "duration": 12}}, "[voice 12 s]"),
        ({"audio": {"performer": "A", "title": "B", "duration": 3}}, "[audio A - B 3 s]"),
        ({"video_note": {"file_id": "n", "duration": 4}}, "[video note 4 s]"),
        ({"sticker": {"file_id": "s", "emoji": "😀"}}, "[sticker 😀]"),
        ({"animation": {"file_id": "a"}, "document": {"file_id": "a"}}, "[animation]"),
        ({"location": {"latitude": 52.5, "longitude": 13.4}}, "[location 52.5, 13.4]"),
        (
            {
                "venue": {
                    "title": "Zoo",
                    "address": "Street 1",
                    "location": {"latitude": 1, "longitude": 2},
                },
                "location": {"latitude": 1, "longitude": 2},
            },
            "[venue Zoo Street 1 at 1, 2]",
        ),
        ({"contact": {"first_name": "Bob", "phone_number": "+49 1"}}, "[contact Bob +49 1]"),
        ({"dice": {"emoji": "🎲", "value": 5}}, "[dice 🎲 5]"),
        ({"poll": {"question": "Tea?", "options": [{"text": "yes"}]}}, "[poll Tea? (yes)]"),
        ({"new_chat_title": "Home"}, "[new chat title]"),
        ({"something_of_next_year": {"a": [1]}}, "[something of next year]"),
        ({}, "[empty message]"),
    ],
)
def test_whatever_is_sent_is_visible_and_kept(fields, text):
    got = incoming(**fields)
    assert got.message.text == text
    kept = got.message.metadata["telegram"]
    assert {name: kept[name] for name in fields} == fields


@pytest.mark.parametrize(
    ("fields", "asks"),
    [
        ({"text": "hi"}, True),
        ({"photo": PHOTO}, True),
        ({"sticker": {"emoji": "😀"}}, True),
        ({"new_chat_members": [ADA]}, False),
        ({"something_of_next_year": 1}, False),
        ({"text": "hi", "from": {**ADA, "is_bot": True}}, False),
        ({"text": "hi", "kind": "edited_message", "edit_date": 1_760_000_100}, False),
    ],
)
def test_people_get_answers_and_notices_edits_and_bots_do_not(fields, asks):
    assert incoming(**fields).asks is asks


def test_an_edit_says_so_and_has_its_own_time():
    got = incoming("new", kind="edited_message", edit_date=1_760_000_100)
    assert got.message.text == "[edited] new"
    assert got.message.created_at == datetime(2025, 10, 9, 8, 55, tzinfo=UTC)
    assert got.message.metadata["telegram"]["date"] == 1_760_000_000
    assert got.edited


def test_what_is_replied_to_is_quoted_for_the_bot_may_not_have_seen_it():
    original = {"message_id": 1, "from": {"first_name": "Bob"}, "text": "word " * 200}
    got = incoming("what does he mean?", reply_to_message=original)
    quote, said = got.message.text.split("\n")
    assert said == "what does he mean?"
    assert quote.startswith("[reply to Bob: word word")
    assert len(quote) < 450
    assert got.message.metadata["telegram"]["reply_to_message"] == original
    chosen = incoming("this?", reply_to_message=original, quote={"text": "chosen words"})
    assert chosen.message.text == "[reply to Bob: chosen words]\nthis?"


def test_names_are_such_that_every_provider_takes_them():
    assert incoming("x", **{"from": {"first_name": "Ada <|> Love/lace"}}).message.name == (
        "Ada_Love_lace"
    )
    assert incoming("x", **{"from": {"first_name": " ", "username": "ada"}}).message.name == "ada"
    assert incoming("x", **{"from": {"first_name": "Ж" * 100}}).message.name == "Ж" * 64
    assert incoming("x", **{"from": {}}).message.name is None
    group = {"from": {"first_name": "Group", "is_bot": True}, "sender_chat": {"title": "Our house"}}
    assert incoming("x", chat=-1, **group).message.name == "Our_house"
    assert incoming("x", chat=-1, **group).asks


def mention(text, name, kind="mention"):
    place = text.encode("utf-16-le").index(name.encode("utf-16-le")) // 2
    return {"text": text, "entities": [{"type": kind, "offset": place, "length": len(name)}]}


@pytest.mark.parametrize(
    ("fields", "mentions"),
    [
        ({"text": "just talking"}, ()),
        (mention("😀😀 @Firnline_bot, what?", "@Firnline_bot"), ("firnline_bot",)),
        ({"text": "/start"}, None),
        ({"text": "/start@Other_bot now"}, ("other_bot",)),
        (mention("see /ask@My_bot there", "/ask@My_bot", "bot_command"), ("my_bot",)),
        (mention("and/or /etc there", "/etc", "bot_command"), ()),
        ({"photo": [], "caption": "/ask@My_bot what?", "text": None}, ("my_bot",)),
        ({"photo": [], "caption": "/ask what?", "text": None}, None),
        ({"text": "yes", "reply_to_message": {"from": {"id": BOT_ID}}}, None),
        ({"text": "yes", "reply_to_message": {"from": {"id": 9}}}, ()),
        ({"text": "Bot?", "entities": [{"type": "text_mention", "user": {"id": BOT_ID}}]}, None),
    ],
)
def test_in_a_group_only_what_is_for_the_bot_is_answered(fields, mentions):
    got = incoming(chat=-1001, **fields)
    assert got.group
    assert got.mentions == mentions


def test_a_caption_begins_with_a_command_as_a_text_does():
    got = incoming(None, photo=[], caption="/Help@My_bot please")
    assert (got.command, got.message.text) == ("help", "[photo]\n/Help@My_bot please")


def test_topics_are_apart_but_threads_of_replies_are_not():
    assert incoming("x", chat=-1, message_thread_id=3, is_topic_message=True).forum_topic == 3
    assert incoming("x", chat=-1, message_thread_id=3).forum_topic is None
    first = {"message_id": 3, "forum_topic_created": {"name": "Plans"}}
    got = incoming("x", chat=-1, message_thread_id=3, is_topic_message=True, reply_to_message=first)
    assert got.message.text == "x"


@pytest.mark.parametrize(
    "wrong",
    [
        {"update_id": 1, "message": None},
        {"update_id": 1, "message": {"message_id": 1, "date": 1}},
        {"update_id": True, **update("x")["message"]},
        {**update("x"), "update_id": "1"},
        {**update("x"), "update_id": 10**30},
        update("x", date=10**18),
        update("x", date=None),
        update("x", message_id="5"),
        update("x", is_topic_message=True, message_thread_id="x"),
    ],
)
def test_an_invalid_message_is_rejected(wrong):
    with pytest.raises(InputError):
        read(wrong, BOT_ID)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
PLACES = (
    "chat from sender_chat date edit_date is_topic_message message_thread_id migrate_to_chat_id"
)
SAID = "text caption entities caption_entities reply_to_message quote"
SENT = "photo document sticker voice poll venue location contact dice audio"
FIELDS = [name for names in (PLACES, SAID, SENT) for name in names.split()]


@given(
    st.dictionaries(st.sampled_from(FIELDS), JSON), st.sampled_from(["message", "edited_message"])
)
def test_no_update_whatever_is_in_it_fails_in_another_way(fields, kind):
    try:
        given = update(kind=kind)
        given[kind] |= fields
        got = read(given, BOT_ID)
    except InputError:
        return
    assert encode(got.message)
    assert got.message.text


def test_the_kind_of_an_update():
    assert kind_of({"update_id": 1, "callback_query": {}}) == "callback_query"
    assert [kind_of(x) for x in ([], "x", None, {}, {"update_id": 1})] == [""] * 5


# -- settings ---------------------------------------------------------------------------------


def bot(**fields):
    return BotSettings(**{"name": "b", "token": "42:token", "secret": "s" * 16, **fields})


@pytest.mark.parametrize(
    "wrong",
    [
        {"token": "no token"},
        {"token": "42"},
        {"secret": "short"},
        {"secret": "s" * 257},
        {"secret": "with blanks, and so on"},
        {"strategy": "none of ours"},
        {"zone": "Atlantis/Capital"},
        {"zone": "../../etc/passwd"},
        {"api_url": "ftp://somewhere"},
        {"chats": ["@somebody"]},
        {"unknown": 1},
    ],
)
def test_wrong_settings_are_rejected_without_showing_secrets(wrong):
    with pytest.raises(ValidationError) as refused:
        bot(**wrong)
    told = str(refused.value)
    assert "42:token" not in told
    assert all(str(value) not in told for value in wrong.values() if isinstance(value, str))


def test_settings_never_show_token_or_secret():
    shown = repr(bot(token="42:canary", secret="canary" * 4)) + str(bot(token="42:canary"))
    assert "canary" not in shown
    assert bot().id == 42


def test_two_bots_of_a_tenant_never_share_a_conversation():
    with pytest.raises(InputError, match="prefix"):
        checked([bot(), bot(name="c", token="43:x")])
    assert len(checked([bot(), bot(name="c", token="43:x", prefix="other")])) == 2
    assert len(checked([bot(), bot(name="c", token="43:x", tenant="other")])) == 2
    with pytest.raises(InputError, match="token"):
        checked([bot(), bot(name="c", prefix="other")])
    with pytest.raises(InputError, match="not a valid name"):
        checked([bot(name="a/b")])


def test_a_table_of_settings_gives_bots_their_names():
    (only,) = named({"house": bot(name="", secret=SecretStr("s" * 20))})
    assert (only.name, only.conversation(-5)) == ("house", "telegram:-5")
    assert only.planned is not None
    assert only.planned.parameters["lean"]
    assert bot(strategy="layered").planned.name == "layered"
    assert bot(strategy="").planned is None
