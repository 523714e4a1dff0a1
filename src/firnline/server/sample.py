"""Sample conversations: long enough to be digested, with facts to ask about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple

from firnline.log.entry import Project
from firnline.log.message import Message, ToolCall, utc_now
from firnline.memory import Memory
from firnline.server.prompts import record_turn

CONVERSATION: Final = "ticket-42"
_MINUTES: Final = timedelta(minutes=7)
_PACE: Final = timedelta(minutes=2)
_BUDGET: Final = 600
_PROJECT: Final = Project(
    "survey app",
    status="active",
    schedule="pilot from 4 May, launch on 26 May",
    task="Prepare the pilot at the Salzach bridges with three inspectors.",
)
_TURNS: Final = (
    3  # the newest questions of a conversation are answered by turns, with their prompts
)

SAMPLE: Final = (
    Message.system("You are the support assistant of a small shop for mountain gear."),
    Message.user("Order 1138 never arrived. I need the rope before Saturday.", name="Ana"),
    Message.assistant(tool_calls=[ToolCall.of("call_1", "find_order", {"order": 1138})]),
    Message.tool(
        '{"order": 1138, "state": "in transit", "hub": "Innsbruck"}', tool_call_id="call_1"
    ),
    Message.assistant("It has left Innsbruck and should reach you on Friday, Ana."),
    Message.user("Danke! 我的朋友在東京也想訂一條。 Can you ship to Japan? 🏔️", name="Ana"),
    Message.assistant("We do ship to Japan: six days, free from 80 euros on."),
    Message.user("Good. I prefer e-mail, not phone calls. Write to ana@example.com.", name="Ana"),
    Message.assistant("Noted: e-mail only. Shall I put the second rope on order 1138?"),
    Message.user("No, we decided to order it separately, for 95 euros, on 2026-03-02.", name="Ana"),
    Message.assistant("Then I will open a new order for Tokyo on that day."),
    Message.user("What else do you need from me?", name="Ana"),
)

GEAR: Final = ("harness", "helmet", "headlamp", "tent", "stove", "compass", "bivouac bag", "ladder")
SMALL_TALK: Final = tuple(
    message
    for gear in (*GEAR, *GEAR)
    for message in (
        Message.user(f"And a {gear}, would you send that to my friend as well?", name="Ana"),
        Message.assistant(f"Yes, a {gear} is in stock, and it can go with the next parcel."),
    )
)


async def add_samples(memory: Memory) -> None:
    """Add the sample conversations that do not exist: support, a project, and a private one."""
    if not await add_sample(memory):
        return
    await memory.save_project(_PROJECT)
    for sample in samples():
        if await memory.head(sample.name) is None:
            await _add(memory, sample)


async def add_sample(memory: Memory) -> bool:
    """Add the sample conversation, unless it exists."""
    if await memory.head(CONVERSATION) is not None:
        return False
    await memory.save_project(
        Project(
            "support",
            status="active",
            schedule="answers within a day",
            task="Get order 1138 to Ana before Saturday. Blocker: the parcel waits in Innsbruck.",
        )
    )
    messages = [message for message in (*SAMPLE, *SMALL_TALK) if message.role != "system"]
    begin = utc_now() - len(messages) * _MINUTES
    await memory.append(
        CONVERSATION, [message.at(begin + at * _MINUTES) for at, message in enumerate(messages)]
    )
    await memory.describe(CONVERSATION, project="support")
    await memory.context(CONVERSATION, 1_000)
    await memory.digest(CONVERSATION)
    return True


class Sample(NamedTuple):
    """A conversation of `samples.txt`: its messages, each with its time before now."""

    name: str
    title: str
    project: str
    person: str
    messages: tuple[tuple[timedelta, Message], ...]


@cache
def samples() -> tuple[Sample, ...]:
    """The sample conversations besides the first one."""
    text = resources.files("firnline.server").joinpath("samples.txt").read_text(encoding="utf-8")
    return tuple(_parse(block) for block in text.removeprefix("= ").split("\n= "))


def _parse(block: str) -> Sample:
    about, *lines = block.strip().splitlines()
    name, title, project, person = (part.strip() for part in about.split("|"))
    before = timedelta()
    messages = []
    for line in lines:
        if line.startswith("@"):
            days, time = line[1:].split(" days ")
            at = datetime.strptime(time, "%H:%M")  # noqa: DTZ007 - a time of the day
            before = timedelta(days=int(days), hours=-at.hour, minutes=-at.minute)
            continue
        who, _, text = line.partition(": ")
        is_answer = who == "assistant"
        message = Message.assistant(text) if is_answer else Message.user(text, name=who)
        messages.append((before, message))
        before -= _PACE
    return Sample(name, title, project, person, tuple(messages))


async def _add(memory: Memory, sample: Sample) -> None:
    now = utc_now()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    older, turns = sample.messages[: -2 * _TURNS], sample.messages[-2 * _TURNS :]
    await memory.append(sample.name, [message.at(midnight - before) for before, message in older])
    await memory.describe(
        sample.name,
        project=sample.project or None,
        person=sample.person,
        metadata={"title": sample.title},
    )
    await memory.context(sample.name, _BUDGET)  # so that its digests are due
    await memory.digest(sample.name)
    for (_, question), (_, answer) in zip(turns[::2], turns[1::2], strict=True):
        await memory.embed(sample.name)
        turn = await memory.turn(sample.name, question, _says(answer.text), budget=_BUDGET)
        await record_turn(memory, turn, "sample", "sample")


def _says(text: str) -> Any:
    async def answer(_: Sequence[Mapping[str, Any]]) -> str:
        return text

    return answer
