"""How fast tokens are counted, against the reference encoder with the same vocabulary."""

from __future__ import annotations

from collections.abc import AsyncIterator

from benchmarks.bench import Bench
from benchmarks.measure import in_turns, megabytes, timed_call
from benchmarks.table import Row, at_least
from firnline.log.tokens import counter, reference_encoder


async def speed(bench: Bench) -> AsyncIterator[Row]:
    """Count every message with ours and with the reference's two calls."""
    texts = [message.text for message in bench.messages]
    size = sum(len(text.encode()) for text in texts)
    reference = reference_encoder("o200k_base")
    count = counter().text

    def ours() -> None:
        for text in texts:
            count(text)

    def ordinary() -> None:
        for text in texts:
            len(reference.encode_ordinary(text))

    def documented() -> None:
        for text in texts:
            len(reference.encode(text, disallowed_special=()))

    # `encode` is the reference's call for text that may hold special tokens; the other is leaner.
    for other, name in ((documented, "encode"), (ordinary, "encode_ordinary")):
        # Many short rounds: the difference is small, and a median of many finds it in the noise.
        pairs = await in_turns(timed_call(ours), timed_call(other), bench.size(100, 5), "count")
        yield Row(
            f"count: tokens, against {name}",
            megabytes(size, pairs.ours),
            megabytes(size, pairs.other),
            pairs.speed,
            at_least(1) if other is documented else None,
        )
