"""Every bound in one place. Nothing in Firnline grows, loops or waits without one."""

from __future__ import annotations

from typing import Final

# What a caller may hand in.
NAME_CHARS_MAX: Final = 200
"""Characters in the name of a tenant, conversation or project, or in an idempotency key."""
MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of one message in canonical form."""
BATCH_MESSAGES_MAX: Final = 10_000
"""Messages in one append."""
BATCH_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes of all messages of one append."""
JSON_DEPTH_MAX: Final = 64
"""Nesting of objects and arrays in a message or in metadata."""
INTEGER_DIGITS_MAX: Final = 4_000
"""Digits of an integer in JSON; CPython refuses to print longer ones."""

# What a query may ask for.
PAGE_MAX: Final = 1_000
"""Rows in one page of conversations or hits."""
QUERY_TERMS_MAX: Final = 64
"""Terms of a search query that are looked up; more are ignored."""

# How the token counter splits its work.
COUNT_PIECE_CHARS: Final = 65_536
"""Characters given to the encoder at once; on a megabyte of blanks it overflows its stack."""
COUNT_INLINE_CHARS: Final = 8_192
"""Texts up to this long are counted at once, longer ones in a thread beside the event loop."""

# The store.
SEQ_BITS: Final = 32
"""Bits of an entry's number that hold its sequence number within the conversation."""
BUSY_SECONDS: Final = 30.0
"""How long a writer waits for another process's transaction."""
WRITES_WAITING_MAX: Final = 10_000
"""Writes queued in one process before callers are told to slow down."""
BATCH_WRITES_MAX: Final = 512
"""Writes that share one commit."""
CROWD_SECONDS: Final = 0.001
"""How long a commit waits for as many writes as shared the one before it."""
READERS: Final = 4
"""Reading connections of one process."""
READ_PAGE: Final = 1_000
"""Entries fetched at once when a whole conversation is walked."""
PAGE_BYTES_MAX: Final = 32 * 1024 * 1024
"""Bytes of messages after which such a page ends."""
INDEX_PAGE: Final = 500
"""Entries indexed for search in one transaction."""
INDEX_IDLE_SECONDS: Final = 0.2
"""Quiet time after which the writer catches up with the search index."""
SEGMENT_ENTRIES_MAX: Final = 256
"""Entries in one archived segment."""
SEGMENT_BYTES_MAX: Final = 1024 * 1024
"""Plain bytes in one archived segment, unless a single entry is larger."""
SCRUB_SECONDS: Final = 30.0
"""How long `erase` waits for readers that still hold erased pages."""
LEASE_SECONDS_MAX: Final = 3_600.0
"""The longest lease."""
