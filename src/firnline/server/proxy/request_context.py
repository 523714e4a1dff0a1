"""A context as one request means it: its own question, and what the application says now. Pure.

The log holds what was said to everybody at any time. What others ask at the same moment is not this
request's; and what the application told a model in between, such as retrieved documents, is said
anew with each request, or not any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from firnline.context.context import Context, Piece
from firnline.log.message import Message
from firnline.log.tokens import TokenCounter
from firnline.server.drafts import INTERRUPTED
from firnline.server.proxy.identity import is_spoken


def fitted(
    context: Context, question: int, sent: Sequence[Message], count: TokenCounter
) -> Context:
    """The context for the request whose last entry is `question` and whose messages are `sent`.

    `ConflictError` if others have said so much in the meantime that its own question is not in it.
    """
    own = context.up_to(question)
    recent = [piece for piece in own["recent"].pieces if _is_said_now(piece, sent)]
    if not sent or sent[-1].role != "assistant":
        recent = _without_broken_end(recent)
    return own.with_recent(_with_words(recent, sent, count))


def leading(sent: Sequence[Message]) -> int:
    """How many messages of the application come before all others."""
    spoken = [at for at, message in enumerate(sent) if is_spoken(message)]
    return spoken[0] if spoken else len(sent)


def joined(system: Sequence[Message]) -> Message | None:
    """What the application says first, as one message."""
    if len(system) <= 1:
        return system[0] if system else None
    text = "\n\n".join(message.text for message in system)
    return replace(system[0], content=text)


def words_now(sent: Sequence[Message]) -> list[Message]:
    """What the application says since the last answer, and not before everything else."""
    last = max((at for at, message in enumerate(sent) if message.role == "assistant"), default=-1)
    return [m for m in sent[max(last + 1, leading(sent)) :] if not is_spoken(m)]


def _is_said_now(piece: Piece, sent: Sequence[Message]) -> bool:
    """Whether a piece is of the conversation, or said by the application in this request, too."""
    if piece.entry is None or is_spoken(piece.entry.message):
        return True
    return any(_same(piece.entry.message, message) for message in sent)


def _same(one: Message, other: Message) -> bool:
    return (one.role, one.content) == (other.role, other.content)


def _without_broken_end(recent: Sequence[Piece]) -> list[Piece]:
    """Without an answer that broke off behind the question: it is asked again.

    Behind the question, a provider takes an answer for the beginning of the next one.
    """
    kept = list(recent)
    while kept and kept[-1].entry and INTERRUPTED in kept[-1].entry.message.metadata:
        kept.pop()
    return kept


def _with_words(
    recent: Sequence[Piece], sent: Sequence[Message], count: TokenCounter
) -> list[Piece]:
    """With what the application says now and the log does not show: before or behind the question.

    It is not in the log where somebody said the same before, and the application something else.
    """
    shown = [piece.message for piece in recent]
    missing = [m for m in words_now(sent) if not any(_same(m, other) for other in shown)]
    last = max((at for at, message in enumerate(sent) if is_spoken(message)), default=-1)
    late = {id(message) for message in sent[last + 1 :]}
    users = (at for at, message in enumerate(shown) if message.role == "user")
    at = max(users, default=len(shown))
    added = [(id(m) in late, Piece(m, int(count.message(m)))) for m in missing]
    before = [piece for is_late, piece in added if not is_late]
    behind = [piece for is_late, piece in added if is_late]
    return [*recent[:at], *before, *recent[at:], *behind]
