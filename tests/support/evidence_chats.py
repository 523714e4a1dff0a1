"""Short chats with questions, written by hand: where the answer is, or that there is none.

The file is in the format of LoCoMo, so that ``tools/ranker`` learns from it, too.
"""

import json
from pathlib import Path
from typing import NamedTuple

from firnline.log.message import Message

CHATS = Path(__file__).with_suffix(".json")


class EvidenceChat(NamedTuple):
    """The messages, and the questions with the numbers of the messages that answer them."""

    name: str
    messages: list[Message]
    questions: list[tuple[str, frozenset[int]]]


def evidence_chats():
    """All of them."""
    for chat in json.loads(CHATS.read_text(encoding="utf-8")):
        turns = chat["conversation"]["session_1"]
        seqs = {turn["dia_id"]: seq for seq, turn in enumerate(turns)}
        questions = [
            (asked["question"], frozenset(seqs[name] for name in asked["evidence"]))
            for asked in chat["qa"]
        ]
        yield EvidenceChat(chat["sample_id"], list(map(_message, turns)), questions)


def _message(turn):
    if turn["speaker"] in ("user", "assistant"):
        return Message(role=turn["speaker"], content=turn["text"])
    return Message.user(turn["text"], name=turn["speaker"])
