"""Entries for tests of data derived from the log."""

from hypothesis import strategies as st

from firnline.log.entry import Entry
from firnline.log.message import Message
from firnline.log.tokens import reference_encoder
from support.message_strategies import clean, messages

reference_encoder()  # loaded here, or the first example of a property would seem slow


def entry(seq: int, message: Message, tokens: int = 20) -> Entry:
    """A message at a position in the log; its hash is not checked."""
    return Entry(seq, message, tokens, tokens * (seq + 1), "", "o200k_base")


def chat(*texts: str) -> tuple[Entry, ...]:
    """Messages of a user and an assistant in turn, the user first."""
    said = (Message.user, Message.assistant)
    return tuple(entry(i, said[i % 2](text)) for i, text in enumerate(texts))


WORDS = [
    "we",
    "the",
    "budget",
    "plan",
    "deploy",
    "Ana",
    "Lisbon",
    "PostgreSQL",
    "42",
    "1,500",
    "March",
    "Friday",
    "decided",
    "prefer",
    "always",
    "https://example.com/a",
    "never",
    "risk",
    "report",
    "garden",
    "bicycle",
    "train",
    "coffee",
    "https://b.org",
    "3pm",
    "and",
    "with",
]
_sentence = st.builds(
    lambda words, end: " ".join(words) + end,
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=14),
    st.sampled_from([".", "?", "!", "。", "", "\n", ":"]),
)
prose_texts = st.lists(_sentence, max_size=8).map(" ".join)
texts = prose_texts | clean

chats = st.lists(
    messages
    | st.builds(
        Message,
        role=st.sampled_from(["user", "assistant", "tool", "system"]),
        content=texts,
        metadata=st.sampled_from([{}, {}, {}, {"firnline": "recalled"}, {"firnline": 3}]),
    ),
    max_size=12,
).map(lambda said: tuple(entry(i, message) for i, message in enumerate(said)))
"""Random conversations."""
