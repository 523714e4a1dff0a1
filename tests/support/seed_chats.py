"""Chats for the acceptance tests, and their scripted model."""

from firnline import Message

FACTS = (
    "I prefer dark mode.",
    "Document structure: Intro, Methods, Results, Conclusion.",
    "Key sources: https://example.com/paper1 and https://example.com/paper2.",
    "We decided to use PostgreSQL for the registry.",
    "The deadline is 14 March 2026.",
)
TOPICS = (
    "The harbour crane in Rotterdam lifts forty tonnes in a light wind.",
    "Bakers in Lyon start their ovens at four in the morning.",
    "A violin from Cremona needs a dry room and a patient owner.",
    "The night train to Vienna leaves from platform nine.",
    "Snow on the pass closes the road for about three days.",
    "Her grandmother wrote recipes on the back of old maps.",
    "The telescope on the hill is open on clear Fridays.",
)


def rounds(number, *, words=60, start=0):
    """`number` rounds of a chat, each message of about `words` words."""
    for i in range(start, start + number):
        fact = FACTS[i] if i < len(FACTS) else TOPICS[i % len(TOPICS)]
        filler = " ".join(TOPICS[(i + k) % len(TOPICS)] for k in range(words // 10))
        yield Message.user(f"{fact} {filler}")
        yield Message.assistant(f"Noted, round {i}. {filler}")


async def play(memory, conversation, number, **options):
    """Store rounds in one append; tests of single appends do it themselves."""
    await memory.append(conversation, list(rounds(number, **options)))
