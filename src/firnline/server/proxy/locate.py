"""Where a request's history lies in the log, and which of its messages are new.

The known beginnings of histories are cards that lead to an entry; they are a view of the log, and
the log itself decides. A history that goes on otherwise than the log becomes a branch: nothing is
changed, and nothing is stored twice within a conversation.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from firnline.errors import ConflictError
from firnline.log.entry import Card, Entry, Head
from firnline.log.message import Message
from firnline.log.regex import regex
from firnline.memory import Memory
from firnline.server.drafts import INTERRUPTED
from firnline.server.proxy.align import Agreed, agree, overlap
from firnline.server.proxy.identity import Named, chained, fingerprint, is_spoken, longer

_KIND: Final = "prefix"
_LOOKUP: Final = 64
_BEYOND: Final = 50
_TAIL: Final = 500
_TRIES: Final = 5
_BRANCHED: Final = regex(r"--[0-9a-f]{8}$")
_BRANCH: Final = ", branch"
_WHOLE: Final = frozenset({"header x-openwebui-chat-id"})
"""Names given by clients that send their whole history, and ask for titles and the like under them.

What does not begin as the conversation did is then none of it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a request belongs.

    `question` is the last entry of its history in the log, `hash` that entry's if it was stored
    just now, `next_seq` where the log goes on.
    `answer` is what the log holds for it already, if this is the repetition of a request that was
    answered. `hashes` are those of the history's beginnings, the whole of it last; `key` is the
    client's own for the request.
    """

    conversation: str
    source: str
    named: bool
    hashes: tuple[str, ...]
    key: str = ""
    question: int = -1
    hash: str = ""
    next_seq: int = 0
    answer: Entry | None = None


class Attempt(NamedTuple):
    """What a client says of a request: its own `key` for it, and whether it was sent before.

    With its key, a request is known again for sure. A mere count of attempts is no proof: two
    people may ask the same, so nobody is given what another was answered because of it.
    """

    key: str = ""
    again: bool = False


class _Request(NamedTuple):
    """What was sent, what of it was said in the conversation, and which attempt it is."""

    sent: Sequence[Message]
    spoken: Sequence[Message]
    attempt: Attempt


async def place(
    memory: Memory, name: Named | None, sent: Sequence[Message], attempt: Attempt
) -> Place:
    """Find the request's place and store its new messages there; durable when this returns."""
    spoken = [message for message in sent if is_spoken(message)]
    request = _Request(sent, spoken, attempt)
    for _ in range(_TRIES):
        try:
            return await _placed(memory, name, request)
        except ConflictError:
            continue  # somebody else appended in between: look again
    return await _placed(memory, name, request)


async def _placed(memory: Memory, name: Named | None, request: _Request) -> Place:
    seed = name.conversation if name else ""
    hashes = tuple(chained([fingerprint(message) for message in request.spoken], seed))
    where = Place(
        conversation=name.conversation if name else f"chat-{secrets.token_hex(8)}",
        source=name.source if name else "new",
        named=name is not None,
        hashes=hashes,
        key=request.attempt.key,
    )
    if asked := await _known(memory, _keyed(where)):
        return await _once_more(memory, where, request, *asked[1:])
    # Without an answer of ours in it, a history is nobody's: two people may begin with "hi".
    thin = not any(message.role == "assistant" for message in request.spoken)
    again = thin and request.attempt.again and not name
    known = await _known(memory, hashes) if not thin or again else None
    if known is not None:
        count, conversation, seq = known
        log = await memory.read(
            conversation, first_seq=seq + 1, limit=len(request.spoken) - count + _BEYOND
        )
        if again and agree((), log).entries < len(log):  # somebody was answered, not this one
            return await _append(memory, where, _new(request.sent, 0))
        source = name.source if name else "prefix"
        where = replace(where, conversation=conversation, source=source, question=seq)
        agreed = agree(request.spoken[count:], log)
        return await _go_on(memory, where, request, count, agreed, log)
    head = await memory.head(where.conversation) if name else None
    if head is None:
        return await _append(memory, where, _new(request.sent, 0))
    return await _under_its_name(memory, where, head, request, thin=thin)


async def _once_more(
    memory: Memory, where: Place, request: _Request, conversation: str, seq: int
) -> Place:
    """The same request under the same key: answered as before, or asked again."""
    log = await memory.read(conversation, first_seq=seq + 1, limit=_BEYOND)
    source = where.source if where.named else "prefix"
    where = replace(where, conversation=conversation, source=source, question=seq)
    if log and _whole_answer(log):
        return replace(where, answer=log[0])
    return await _go_on(memory, where, request, len(request.spoken), agree((), log), log)


async def _under_its_name(
    memory: Memory, where: Place, head: Head, request: _Request, *, thin: bool
) -> Place:
    """A named conversation, and a history whose beginning is not known.

    Either the client sends only what is new, and perhaps repeats its last question; or it sends
    what it has, and has dropped the oldest part.
    """
    reach = len(request.spoken) if thin else _TAIL
    tail = await memory.read(where.conversation, first_seq=max(head.seq - reach, 0))
    where = replace(where, question=head.seq)
    agreed = overlap(request.spoken, tail)
    if agreed is not None and thin:
        later = tail[agreed.entries :]
        answered = request.attempt.again and len(later) == 1 and _whole_answer(later)
        again = agreed.messages == len(request.spoken) and (not later or answered)
        agreed = agreed if again else None
    if agreed is None and thin and where.source in _WHOLE:
        return await branch(memory, replace(where, question=-1), _new(request.sent, 0))
    if agreed is None:
        agreed = Agreed((), len(tail))
    return await _go_on(memory, where, request, 0, agreed, tail)


async def _go_on(
    memory: Memory,
    where: Place,
    request: _Request,
    count: int,
    agreed: Agreed,
    log: Sequence[Entry],
) -> Place:
    """Append what is new behind what agrees, or branch where the log goes on otherwise."""
    later = log[agreed.entries :]
    new = _new(request.sent, count + agreed.messages)
    where = replace(
        where,
        question=agreed.seqs[-1] if agreed.seqs else where.question,
        next_seq=later[0].seq if later else (log[-1].seq if log else where.question) + 1,
    )
    if not later:
        return await _append(memory, where, new)
    again = where.named and request.attempt.again
    if again and not new and len(later) == 1 and _whole_answer(later):
        return replace(where, answer=later[0])
    return await branch(memory, where, new)


async def branch(memory: Memory, where: Place, new: Sequence[Message] = ()) -> Place:
    """The same beginning as a conversation of its own, and what is new there."""
    root = _BRANCHED.sub("", where.conversation)
    name = f"{root}--{secrets.token_hex(4)}"
    if where.question >= 0:
        await memory.branch(where.conversation, where.question, name)
    source = f"{where.source.removesuffix(_BRANCH)}{_BRANCH}"
    branched = replace(
        where, conversation=name, source=source, named=False, next_seq=where.question + 1
    )
    return await _append(memory, branched, new)


async def _append(memory: Memory, where: Place, new: Sequence[Message]) -> Place:
    if not new:
        return where
    # Whoever names a conversation may have several requests under way in it; each is appended.
    expected = None if where.named else where.next_seq
    stored = await memory.append(where.conversation, new, expected_seq=expected)
    spoken = [entry.seq for entry in stored if is_spoken(entry.message)]
    hashes = where.hashes[len(where.hashes) - len(spoken) :]
    keyed = _keyed(where)
    names, seqs = (*hashes, *keyed), (*spoken, *(stored[-1].seq for _ in keyed))
    await remember(memory, where.conversation, names, seqs)
    last = stored[-1]
    return replace(where, question=last.seq, hash=last.hash, next_seq=last.seq + 1)


def _new(sent: Sequence[Message], count: int) -> Sequence[Message]:
    """The messages behind the first `count` spoken ones.

    What the application says before the first of them is not of the conversation.
    """
    places = [at for at, message in enumerate(sent) if is_spoken(message)]
    if count >= len(places):
        return ()
    return sent[places[count - 1] + 1 if count else places[0] :]


def _whole_answer(later: Sequence[Entry]) -> bool:
    """Whether the log goes on with an answer that came to its end."""
    message = later[0].message
    return message.role == "assistant" and INTERRUPTED not in message.metadata


# -- known beginnings -------------------------------------------------------------------------


async def remember(
    memory: Memory, conversation: str, hashes: Sequence[str], seqs: Sequence[int]
) -> None:
    """Note where these beginnings of histories lead; the first to have one keeps it."""
    cards = [
        Card(
            tenant=memory.tenant,
            kind=_KIND,
            name=name,
            body=json.dumps([conversation, seq]).encode(),
            conversation=conversation,
        )
        for name, seq in zip(hashes, seqs, strict=True)
    ]
    await memory.store.put_cards(cards, absent=True)


def _keyed(where: Place) -> tuple[str, ...]:
    """The name under which a request is known by its key, if it has one."""
    if not where.key or not where.hashes:
        return ()
    return (longer(where.hashes[-1], f"under the key {where.key}"),)


async def _known(memory: Memory, hashes: Sequence[str]) -> tuple[int, str, int] | None:
    """The longest known beginning: how many messages, and where in which conversation it ends."""
    for end in range(len(hashes), 0, -_LOOKUP):
        names = hashes[max(end - _LOOKUP, 0) : end]
        found = await memory.store.cards(_KIND, tenant=memory.tenant, names=names, limit=len(names))
        if found:
            by_name = {card.name: card for card in found}
            at = max(names.index(name) for name in by_name)
            conversation, seq = json.loads(by_name[names[at]].body)
            return max(end - _LOOKUP, 0) + at + 1, conversation, seq
    return None
