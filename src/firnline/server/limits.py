"""The numeric limits of the server; those of the proxy are in `server.proxy.limits`."""

from __future__ import annotations

from typing import Final

from firnline.log import limits

OPEN_RETRY_SECONDS: Final = 1.0
"""How long to wait before a store that could not be opened is tried again."""
DRAIN_DELAY_SECONDS: Final = 2.0
"""How long requests are still accepted after a signal, until a load balancer has noticed."""
SIZE_DIGITS_MAX: Final = 20
"""Digits of a declared size."""
PROXY_HOPS_MAX: Final = 20
"""Proxies that a request may name."""
CALLERS_REMEMBERED: Final = 10_000
"""Callers whose rate is remembered."""
KEY_CACHE_SECONDS: Final = 1.0
"""A revoked key is rejected at most this much later."""
KEYS_CACHED: Final = 10_000
"""API keys that are remembered."""
KEY_NAME_CHARS_MAX: Final = 100
"""Characters of a key's name."""
TENANTS_OPEN_MAX: Final = 100
"""Tenants whose memories are kept open; the least recently used one is closed first."""
TENANTS_KNOWN_SECONDS: Final = 60.0
"""How long the tenants with keys are taken as known; other processes may create keys."""
ERRORS_TOLD_MAX: Final = 20
"""Errors of one request that the answer lists."""
LOGGED_CHARS_MAX: Final = 8_000
"""Characters of one text in a log line."""
LOGGED_FRAMES_MAX: Final = 30
"""Frames of a traceback in a log line."""
LOGGED_CAUSES_MAX: Final = 8
"""Causes of an error in a log line."""
LABELS_MAX: Final = 100
"""Distinct values of one label; all others become ``other``."""
GAUGES_FRESH_SECONDS: Final = 5.0
"""How long the gauges of the store are used before they are read again."""
DRAFT_BEAT_SECONDS: Final = 15.0
"""How often a draft that is still written says so."""
DRAFT_CARDS_MAX: Final = 10_000
"""Cards of drafts that are read at once."""
PROMPT_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes of a recorded prompt."""
HOOK_RECALL_SECONDS: Final = 0.08
"""How long a coding agent waits for what is recalled for its prompt."""
JOBS_RUNNING_MAX: Final = 2
"""Running jobs of a tenant; those that still receive their upload do not count."""
JOBS_RECEIVING_MAX: Final = 8
"""Jobs of a tenant that receive their upload."""
JOBS_KEPT_MAX: Final = 20
"""Remembered jobs of a tenant, with their files."""
JOB_REPORT_SECONDS: Final = 0.2
"""The time between two reports to a client."""
READ_ON_SECONDS: Final = 30.0
"""How long an answer is still read after its client has disconnected."""
PIECES_BUFFERED_MAX: Final = 20_000
"""Pieces buffered for a slow client; beyond that it is disconnected, and reading continues."""
TITLE_CHARS_MAX: Final = 200
"""Characters of a title that is shown."""
EVENT_ALIVE_SECONDS: Final = 15.0
"""How often a stream of events says that it is alive."""
TURNS_PRICED_MAX: Final = 5_000
"""Turns whose costs are added up; each record has to be decompressed."""
PATH_NAME_CHARS_MAX: Final = 2 * limits.NAME_CHARS_MAX
"""Characters of a name in a path, before it is checked."""
TOKENS_MAX: Final = 100_000_000
"""Tokens that a request may name."""
QUERY_CHARS_MAX: Final = 10_000
"""Characters of a query."""
CURSOR_CHARS_MAX: Final = 20 * limits.NAME_CHARS_MAX
"""Characters of a cursor."""
TAGS_MAX: Final = 50
"""Tags in one request."""
TOOLS_MAX: Final = 256
"""Schemas of tools in one request."""
UNKNOWN_FIELDS_MAX: Final = 20
"""Unknown fields that an error names."""
TELEGRAM_CONFLICTS_MAX: Final = 50
"""How often an answer is stored again because others wrote to the conversation."""
TELEGRAM_PARTS_MAX: Final = 20
"""Messages of one answer; the rest is only in the conversation."""
TELEGRAM_QUOTE_CHARS_MAX: Final = 400
"""Characters of a quoted message; the whole message is in the metadata."""
TELEGRAM_BODY_BYTES_MAX: Final = 1024 * 1024
"""Bytes of an update; real ones are far smaller."""
TELEGRAM_OVERTAKEN_MAX: Final = 2
"""Answers in a row that are dropped because new messages arrived in the meantime."""
TELEGRAM_FAILURES_MAX: Final = 5
"""Failures of the model before the bot apologizes."""
TELEGRAM_GIVE_UP_SECONDS: Final = 24 * 3_600.0
"""How long sending an answer is retried; Telegram keeps updates equally long."""
PROBE_SECONDS: Final = 2.0
"""How long a probe waits for the store; other calls wait longer for it to restart."""
TELEGRAM_SECONDS: Final = 30.0
"""How long Telegram may take for an answer."""
CHECKUP_SECONDS: Final = 5.0
"""How long `firnline doctor` waits for an endpoint."""
CHECKUP_BYTES_MAX: Final = 4 * 1024 * 1024
"""Bytes that it reads of an endpoint's list of models."""
