"""The numeric limits of the engine's own work; what all layers share is in `log.limits`."""

from __future__ import annotations

from typing import Final

ERASURE_TRIES: Final = 20
"""Attempts to erase while digests or topics change."""
SIGNER_NAME_CHARS_MAX: Final = 200
"""Characters of a signer's name, or of the origin of logs."""
CHECKPOINTS_REMEMBERED_MAX: Final = 1_000
"""Unsigned checkpoints that a process remembers to have made."""
EMBED_FAILURES_MAX: Final = 3
"""Conversations that fail before the embedder is taken for the cause."""
EMBED_REPORTED_MAX: Final = 1_000
"""Conversations with new entries that are remembered."""
EMBED_STOP_SECONDS: Final = 5.0
"""How long an embedder that cannot be canceled is waited for."""
EMBED_POLL_SECONDS: Final = 3_600.0
"""The time between two looks; the indexer is woken when there is work."""
BUSY_SECONDS: Final = 1.0
"""When a conversation is looked at again that another process is digesting."""
SETTLE_SECONDS: Final = 0.02
"""A wait after a wake-up: the request that woke the worker may still be running."""
FAILURES_COUNTED_MAX: Final = 10_000
"""Conversations whose failures are counted."""
WORK_ROUNDS_MAX: Final = 1_000
"""Lookups in one step of a worker."""
ELSEWHERE_MAX: Final = 8
"""What is shown of a person's other conversations."""
FACTS_WAIT_SECONDS: Final = 20.0
"""A wait before a model is asked for facts: messages that follow soon are asked about, too."""
