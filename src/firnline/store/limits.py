"""The numeric limits of stores; what all layers share is in `log.limits`."""

from __future__ import annotations

from typing import Final

CLOCK_REFRESH_SECONDS: Final = 60.0
"""How long the difference from the server's clock is used before it is measured again."""
CLOCK_ANSWER_SECONDS_MAX: Final = 1.0
"""An answer that took longer is too imprecise to measure it."""
LOCK_TRIES: Final = 3
"""Names that are tried for a partial file."""
MEND_TRIES: Final = 20
"""How often damaged rows are repaired again because others wrote meanwhile."""
JOURNAL_TRIES: Final = 20
"""Attempts to write a statement while others write, too."""
JOURNAL_PAGE: Final = 200
"""Statements read at once."""
SNAPSHOT_TRIES: Final = 50
"""Attempts at a snapshot of a conversation that changes in the meantime."""
BACKUP_PAGE: Final = 100
"""Documents read at once for a backup."""
LOOK_TRIES: Final = 20
"""Attempts to read a conversation whose documents are just being moved."""
WORK_TRIES: Final = 5
"""Attempts at work on data whose conversation changes in the meantime."""
ECHO_SECONDS: Final = 5.0
"""How long a store waits for its own test notification."""
RECONNECT_SECONDS: Final = 2.0
"""The time before the next attempt to connect."""
TORN_PAGE_SECONDS: Final = 0.01
"""How long a page that is just being written gets to be complete."""
TORN_PAGE_TRIES: Final = 5
"""How often it is read again."""
PAGES_NAMED_MAX: Final = 10
"""Damaged pages that a report names."""
LOG_BYTES_HEALTHY: Final = 256 * 1024 * 1024
"""Bytes of a write-ahead log; a larger one is a warning."""
FACT_TRIES: Final = 60
"""Attempts to change facts while others do."""
MISSING_CARD_SECONDS: Final = 0.05
"""How long a card that is just being written or dropped gets to be complete."""
MISSING_CARD_TRIES: Final = 5
"""How often it is looked for."""
SCRATCH_NUMBERS_MAX: Final = 4096
"""Numbers of open files among which a free one is looked for."""
