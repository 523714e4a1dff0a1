"""Sample conversations: a support case, a project and a private one, with facts to ask about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple

from firnline.log.entry import Project
from firnline.log.message import Message, utc_now
from firnline.memory import Memory
from firnline.server.offline_model import NAME
from firnline.server.prompts import record_turn
from firnline.strategies import progressive

CONVERSATION: Final = "ticket-42"
"""The one that a newcomer sees first."""
_PACE: Final = timedelta(minutes=2)
_STRATEGY: Final = progressive(threshold_tokens=600)
"""The samples are short, so they are digested early: one sees at once what memory does."""
_TURNS: Final = 3
"""The newest questions are answered by turns, so that their prompts are recorded."""
_PROJECTS: Final = (
    Project(
        "support",
        status="active",
        schedule="answers within a day",
        task="Close claim 77. Blocker: the old headlamp has to come back.",
    ),
    Project(
        "survey app",
        status="active",
        schedule="pilot from 4 May, launch on 26 May",
        task="Prepare the pilot at the Salzach bridges with three inspectors.",
    ),
)


async def add_samples(memory: Memory) -> None:
    """Add the sample conversations to a store that has none of them yet."""
    if await memory.head(CONVERSATION) is not None:
        return
    for project in _PROJECTS:
        await memory.save_project(project)
    for sample in reversed(samples()):
        if await memory.head(sample.name) is None:
            await _add(memory, sample)


class Sample(NamedTuple):
    """A conversation of `samples.txt`: its messages, each with its time before now."""

    name: str
    title: str
    project: str
    person: str
    messages: tuple[tuple[timedelta, Message], ...]


@cache
def samples() -> tuple[Sample, ...]:
    """The sample conversations."""
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
    await memory.set_strategy(sample.name, _STRATEGY)
    budget = memory.budget_of(NAME)
    await memory.context(sample.name, budget)  # so that its digests are due
    await memory.digest(sample.name)
    for (_, question), (_, answer) in zip(turns[::2], turns[1::2], strict=True):
        await memory.embed(sample.name)
        turn = await memory.turn(sample.name, question, _says(answer.text), budget=budget)
        await record_turn(memory, turn, "sample", "sample")


def _says(text: str) -> Any:
    async def answer(_: Sequence[Mapping[str, Any]]) -> str:
        return text

    return answer
