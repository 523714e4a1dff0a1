"""The numeric limits of the proxy."""

from __future__ import annotations

from typing import Final

ROUNDS_MAX: Final = 4
"""Rounds of recall in one request."""
CALLS_MAX: Final = 128
"""Calls of recall tools in one round."""
LOCATE_TRIES: Final = 5
"""Times that a conversation is located again because another request appended to it."""
PREFIXES_PER_LOOKUP: Final = 64
"""Hashes of histories that are looked up at once, the longest histories first."""
ENTRIES_BEYOND: Final = 200
"""Entries that are read behind a known history; clients may leave out calls and results."""
TAIL_ENTRIES: Final = 500
"""Entries at the end of a named conversation that a shortened history is compared with."""
COMPACTED_ENTRIES: Final = 2_000
"""Entries at the end of a conversation that a history with a summary is compared with."""
SUMMARY_ENTRIES: Final = 20
"""Entries at the end of a conversation of which one may be the answer with that summary."""
RESERVE_TOKENS_MAX: Final = 4_096
"""Tokens reserved for the answer if the client sets no limit, up to the share below."""
RESERVE_SHARE: Final = 8
"""The window is divided by this for the reserve."""
TOOL_SHARE: Final = 8
"""The budget is divided by this for the results of recall tools in one round."""
TOOL_ROUNDS: Final = 2
"""Rounds of recall tools that tokens are reserved for."""
CACHE_MARKS_MAX: Final = 4
"""Marks for the prompt cache that Anthropic accepts in one request."""
ANTHROPIC_MARGIN_TOKENS: Final = 64
"""Tokens that writing messages in Anthropic's shape may add."""
TRANSLATION_MARGIN_TOKENS: Final = 64
"""Tokens that a translation may add: a separate message for images that tools return."""
STATUS_CHARS_MAX: Final = 200
"""Characters of a text in a response header."""
USER_CHARS_MAX: Final = 4_096
"""Characters of a user id that is read as JSON."""
TOOL_TYPE_CHARS_MAX: Final = 80
"""Characters of a tool's type that an error repeats."""
ANSWER_BYTES_MAX: Final = 32 * 1024 * 1024
"""Bytes of an endpoint's answer, or of all events of it."""
FIRST_EVENT_SECONDS: Final = 5.0
"""How long a response waits for the first event of its answer, before it sends its headers."""
KEEPALIVE_CONNECTIONS: Final = 100
"""Idle connections to an endpoint. Open ones are not limited here: the server limits streams."""
LIST_SECONDS: Final = 10.0
"""How long the endpoint may take for its list of models."""
LIST_WAIT_SECONDS: Final = 2.0
"""How long the first requests wait for that list."""
LIST_REFRESH_SECONDS: Final = 3_600.0
LIST_RETRY_SECONDS: Final = 60.0
LIST_BYTES_MAX: Final = 16 * 1024 * 1024
LISTED_MODELS_MAX: Final = 10_000
LISTED_TOKENS_MAX: Final = 1_000_000_000
"""A larger window in the list is taken for a mistake."""
METADATA_PAIRS_MAX: Final = 16
"""Pairs of a conversation's metadata."""
METADATA_KEY_CHARS_MAX: Final = 64
"""Characters of a key of it."""
METADATA_VALUE_CHARS_MAX: Final = 512
"""Characters of a value of it."""
RETRY_DIGITS_MAX: Final = 9
"""Digits of the number of a retry."""
SAME_ITEMS_MAX: Final = 100
"""Items with one id that are looked up."""
SAME_TEXTS_MAX: Final = 50
"""Messages with the same text that are compared."""
