"""Converts Telegram updates to messages. Pure: no store and no network.

Content other than text becomes a note such as ``[photo]`` or ``[sticker 😀]``. Every field of the
Telegram message that is not in the text is kept in the metadata under ``telegram``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from firnline.errors import InputError
from firnline.log.message import Message
from firnline.log.regex import regex
from firnline.log.text import Json
from firnline.server.limits import TELEGRAM_QUOTE_CHARS_MAX

KINDS: Final = ("message", "edited_message")
"""The kinds of updates that are handled; the webhook subscribes only to these."""

Fields: TypeAlias = Mapping[str, Any]
Note: TypeAlias = Callable[[str, Any], str]
"""Renders a field of a message, given its name and value."""

_BITS: Final = 64
_NAME_CHARS_MAX: Final = 64  # the limit of OpenAI
_NOT_IN_NAMES: Final = regex(r"[\s<|\\/>]+")
_COMMAND: Final = regex(r"/([A-Za-z0-9_]{1,32})(?:@(\w+))?(?:\s|$)")
_CALLS: Final = ("mention", "bot_command")  # entities that can mention a bot
_ABOUT: Final = frozenset(
    {
        "message_id",
        "message_thread_id",
        "direct_messages_topic",
        "from",
        "sender_chat",
        "sender_boost_count",
        "sender_business_bot",
        "sender_tag",
        "business_connection_id",
        "chat",
        "date",
        "edit_date",
        "forward_origin",
        "is_topic_message",
        "is_automatic_forward",
        "reply_to_message",
        "external_reply",
        "quote",
        "reply_to_story",
        "reply_to_checklist_task_id",
        "via_bot",
        "has_protected_content",
        "is_from_offline",
        "is_paid_post",
        "media_group_id",
        "author_signature",
        "paid_star_count",
        "effect_id",
        "entities",
        "caption_entities",
        "link_preview_options",
        "show_caption_above_media",
        "has_media_spoiler",
        "reply_markup",
        "text",
        "caption",
        "suggested_post_info",
    }
)
"""Fields about a message that are not its content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A message from Telegram.

    `forum_topic` is Telegram's ``message_thread_id`` if the chat has topics. `asks` is whether it
    may need an answer; if so, `mentions` is None if it does, or else the usernames that it is
    addressed to. `command` is the command it begins with. `moved_from` and `moved_to` are the
    previous and the next id of the chat. `person` is whom a private chat is with.
    """

    update_id: int
    chat_id: int
    message_id: int
    message: Message
    edited: bool = False
    forum_topic: int | None = None
    group: bool = False
    asks: bool = False
    mentions: tuple[str, ...] | None = None
    command: str = ""
    moved_from: int | None = None
    moved_to: int | None = None
    person: str | None = None


def kind_of(update: Json) -> str:
    """The kind of an update: the name of its field other than the id; empty if invalid."""
    if not isinstance(update, dict):
        return ""
    return next((name for name in update if name != "update_id"), "")


def number_of(update: Json) -> int:
    """The update's id; `InputError` if it has none."""
    return _integer(update if isinstance(update, dict) else {}, "update_id")


def read(update: Fields, bot_id: int) -> Incoming:
    """The message in an update of one of `KINDS`; `InputError` if it is invalid."""
    kind = kind_of(dict(update))
    fields, edited = _object(update, kind), kind == "edited_message"
    chat = _object(fields, "chat")
    group = chat.get("type") != "private"
    holds, wanted = _content(fields)
    command, target = _command(str(fields.get("text") or fields.get("caption") or ""))
    return Incoming(
        update_id=_integer(update, "update_id"),
        chat_id=_integer(chat, "id"),
        message_id=_integer(fields, "message_id"),
        message=_message(fields, f"[edited] {holds}" if edited else holds),
        edited=edited,
        forum_topic=_integer(fields, "message_thread_id") if _in_topic(fields) else None,
        group=group,
        asks=wanted and not edited and not _by_bot(fields),
        mentions=_mentions(fields, bot_id, target) if group else None,
        command=command,
        moved_from=_maybe(fields, "migrate_from_chat_id"),
        moved_to=_maybe(fields, "migrate_to_chat_id"),
        person=None if group else f"telegram:{_integer(chat, 'id')}",
    )


def _message(fields: Fields, text: str) -> Message:
    date = "edit_date" if "edit_date" in fields else "date"
    said = _integer(fields, date)
    try:
        created_at = datetime.fromtimestamp(said, UTC)
    except (ValueError, OverflowError, OSError):
        raise InputError(f"{date}: {said} is not a valid time") from None
    kept = {name: value for name, value in fields.items() if name not in ("text", date)}
    return Message.user(
        text, name=_name(fields), created_at=created_at, metadata={"telegram": kept}
    )


def _name(fields: Fields) -> str | None:
    """The name of the sender, in a form that every provider accepts."""
    # For an anonymous administrator or a channel, `from` is a placeholder for `sender_chat`.
    speaker = _map(fields.get("sender_chat") or fields.get("from"))
    given = [speaker.get("first_name") or speaker.get("title"), speaker.get("username")]
    for name in given:
        cleaned = _NOT_IN_NAMES.sub("_", str(name or "")).strip("_")[:_NAME_CHARS_MAX]
        if cleaned:
            return cleaned
    return None


# -- what it holds ----------------------------------------------------------------------------


def _content(fields: Fields) -> tuple[str, bool]:
    """The message as text, and whether it has content from a person."""
    told = {name for name in fields if name not in _ABOUT}
    # An animation is also sent as a document, and a venue as a location; one note is enough.
    told -= {"document"} if "animation" in told else set()
    told -= {"location"} if "venue" in told else set()
    notes = [_NOTES.get(name, _other)(name, fields[name]) for name in sorted(told)]
    said = [str(fields[name]) for name in ("text", "caption") if fields.get(name)]
    text = "\n".join([*_quote(fields), *notes, *said])
    return text or "[empty message]", bool(said) or any(name in _NOTES for name in told)


def _quote(fields: Fields) -> list[str]:
    """The message replied to, as a note: the bot may not have received it."""
    original = fields.get("reply_to_message")
    chosen = _map(fields.get("quote")).get("text")
    if not isinstance(original, Mapping) or "forum_topic_created" in original:
        return []  # in a topic, messages that are no replies refer to its first message
    text = str(chosen or _content({**original, "reply_to_message": None})[0])
    cut = text if len(text) <= TELEGRAM_QUOTE_CHARS_MAX else f"{text[:TELEGRAM_QUOTE_CHARS_MAX]}…"
    return [f"[reply to {_name(original) or 'a message'}: {cut}]"]


def _other(name: str, _: Any) -> str:
    return f"[{name.replace('_', ' ')}]"


def _told(name: str, *facts: Any) -> str:
    return f"[{' '.join([name.replace('_', ' '), *(str(fact) for fact in facts if fact)])}]"


def _fields_of(*names: str) -> Note:
    def told(name: str, value: Any) -> str:
        return _told(name, *(_map(value).get(field) for field in names))

    return told


def _file(name: str, value: Any) -> str:
    facts = _map(value)
    title = " - ".join(str(facts[part]) for part in ("performer", "title") if facts.get(part))
    seconds = facts.get("duration")
    return _told(name, facts.get("file_name") or title, f"{seconds} s" if seconds else "")


def _poll(name: str, value: Any) -> str:
    facts = _map(value)
    options = [str(_map(option).get("text")) for option in _list(facts.get("options"))]
    return _told(name, facts.get("question"), f"({' / '.join(options)})")


def _location(name: str, value: Any) -> str:
    return _told(name, f"{_map(value).get('latitude')}, {_map(value).get('longitude')}")


def _venue(name: str, value: Any) -> str:
    facts = _map(value)
    where = _location("at", facts.get("location")).strip("[]")
    return _told(name, facts.get("title"), facts.get("address"), where)


_NOTES: Final[Mapping[str, Note]] = {
    "photo": _other,
    "video": _file,
    "video_note": _file,
    "animation": _file,
    "audio": _file,
    "voice": _file,
    "document": _file,
    "sticker": _fields_of("emoji"),
    "contact": _fields_of("first_name", "last_name", "phone_number"),
    "dice": _fields_of("emoji", "value"),
    "game": _fields_of("title"),
    "poll": _poll,
    "venue": _venue,
    "location": _location,
    "checklist": _fields_of("title"),
    "paid_media": _other,
    "story": _other,
}
"""Renderers for content from people; all other fields are service messages of Telegram."""


# -- whom it is for ---------------------------------------------------------------------------


def _command(text: str) -> tuple[str, str]:
    """The command that a text begins with, and the username of the bot it is for."""
    found = _COMMAND.match(text)
    return (found[1].lower(), (found[2] or "").lower()) if found else ("", "")


def _mentions(fields: Fields, bot_id: int, target: str) -> tuple[str, ...] | None:
    """In a group: None if the message is for the bot, else the usernames it may be for."""
    original = _map(fields.get("reply_to_message"))
    text, caption = str(fields.get("text") or ""), str(fields.get("caption") or "")
    marked = [(text, fields.get("entities")), (caption, fields.get("caption_entities"))]
    entities = [(said, _map(entity)) for said, found in marked for entity in _list(found)]
    ids = [_map(entity.get("user")).get("id") for _, entity in entities]
    if bot_id in (*ids, _map(original.get("from")).get("id")):
        return None
    if _COMMAND.match(text or caption):
        return (target,) if target else None
    # A command inside a sentence counts only if it names a bot: /help@the_bot.
    names = [_marked(said, entity) for said, entity in entities if entity.get("type") in _CALLS]
    return tuple(name.partition("@")[2].lower() for name in names if "@" in name)


def _marked(text: str, entity: Fields) -> str:
    """The part of a text that an entity covers; offsets are in UTF-16 code units."""
    coded = text.encode("utf-16-le", "surrogatepass")
    start, length = _integer(entity, "offset"), _integer(entity, "length")
    return coded[2 * start : 2 * (start + length)].decode("utf-16-le", "replace")


def _by_bot(fields: Fields) -> bool:
    """Whether the sender is a bot: two bots that answer each other would never stop."""
    return bool(_map(fields.get("from")).get("is_bot")) and "sender_chat" not in fields


def _in_topic(fields: Fields) -> bool:
    # In groups without topics, replies have a thread id, too; ignore it.
    return bool(fields.get("is_topic_message"))


# -- fields -----------------------------------------------------------------------------------


def _object(fields: Fields, name: str) -> Fields:
    value = fields.get(name)
    if not isinstance(value, Mapping):
        raise InputError(f"update: {name or 'its kind'} is missing")
    return value


def _integer(fields: Fields, name: str) -> int:
    value = fields.get(name)
    if type(value) is not int or value.bit_length() >= _BITS:
        raise InputError(f"update: {name} is not a valid integer")
    return value


def _map(value: object) -> Fields:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _maybe(fields: Fields, name: str) -> int | None:
    return _integer(fields, name) if name in fields else None
