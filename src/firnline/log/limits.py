"""The shared limits. Nothing in Firnline grows, loops or waits without one."""

from __future__ import annotations

from typing import Final

from firnline.errors import InputError

# Input of callers.
NAME_CHARS_MAX: Final = 200
"""Characters in the name of a tenant, conversation or project, or in an idempotency key."""
MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of one message in canonical form."""
PARTS_MAX: Final = 10_000
"""Parts of a message's content: each step of a context looks at all of them."""
BATCH_MESSAGES_MAX: Final = 10_000
"""Messages in one append."""
BATCH_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes of all messages of one append."""
JSON_DEPTH_MAX: Final = 64
"""Nesting of objects and arrays in a message or in metadata."""
INTEGER_DIGITS_MAX: Final = 4_000
"""Digits of an integer in JSON; CPython does not print longer ones."""
DATA_CHARS_MAX: Final = 1024 * 1024
"""Characters of a conversation's or project's metadata, or of important data, as JSON."""
CARD_BYTES_MAX: Final = 4 * 1024 * 1024
"""Bytes of one card's body."""

JOURNAL_ENTRIES_MAX: Final = 500
"""Statements in a journal before they are replaced by the present state."""

# Imports from other programs.
IMPORT_READ_BYTES: Final = 1024 * 1024
"""Bytes read at once from an imported file."""
IMPORT_VALUE_CHARS_MAX: Final = 128 * 1024 * 1024
"""Characters of one JSON value, such as a conversation with all its branches."""
IMPORT_BATCH_MESSAGES: Final = 500
"""Messages stored in one append."""
IMPORT_HELD_MAX: Final = 100_000
"""Messages of a conversation that are held in memory while a file is sorted."""
IMPORT_COPIED_MAX: Final = IMPORT_HELD_MAX
"""Messages copied for all branches of a conversation; further branches lack their beginning."""
IMPORT_AT_ONCE: Final = 8
"""Short conversations imported concurrently."""
IMPORT_BATCH_CHARS: Final = 2 * 1024 * 1024
"""Characters of messages after which a batch ends."""
IMPORT_TRIES_MAX: Final = 8
"""Attempts to import a conversation to which others append at the same time."""
IMPORT_FILES_MAX: Final = 100_000
"""Files in an archive or a folder."""
UNPACKED_RATIO_MAX: Final = 200
"""The largest ratio of an archive's unpacked size to its own."""
UNPACKED_FREE_BYTES: Final = 64 * 1024 * 1024
"""The unpacked size that is allowed for any archive."""
NOTE_EXAMPLES_MAX: Final = 5
"""Examples that a report gives of each kind of skipped data."""
NOTE_KINDS_MAX: Final = 100
"""Kinds of skipped data that a report distinguishes."""
NOTE_CHARS_MAX: Final = 300
"""Characters of one note in a report."""

# Files.
INPUT_BYTES_MAX: Final = 8 * 1024**3
"""Bytes that are copied from standard input or a pipe."""
PIPE_SECONDS: Final = 10.0
"""How long to wait for a process at the other end of a pipe."""
SETTINGS_BYTES_MAX: Final = 1024 * 1024
"""The largest settings file."""

# Prompts.
SPEAKER_CHARS_MAX: Final = 64
"""Characters of a speaker's name next to quoted text."""
ECHO_SECTIONS_MAX: Final = 8
"""Sections of recalled text in one message that are compared with the log."""
ECHO_ENTRIES_MAX: Final = 2_000
"""Entries that one such section may quote."""
RECALL_CALL_REACH: Final = 32
"""Entries before and after a recalled tool call or result that are searched for the others."""
RECALL_UNITS_MAX: Final = 100
"""Recalled tool calls and results for which that is done, the best ones; also short answers."""

# Queries.
PAGE_MAX: Final = 1_000
"""Rows in one page of conversations or hits."""
QUERY_TERMS_MAX: Final = 64
"""Terms of a search query that are looked up; more are ignored."""
SEARCH_WEIGHED_MAX: Final = 4_000
"""Entries that a search compares, approximately; common words do not lead to more."""

# How the token counter splits its work.
COUNT_PIECE_CHARS: Final = 65_536
"""Characters passed to the encoder at once; on a megabyte of spaces it overflows its stack."""
COUNT_INLINE_CHARS: Final = 8_192
"""Texts up to this long are counted in the event loop, longer ones in a thread."""
LOOP_CHARS_MAX: Final = 65_536
"""Texts up to this long are parsed and written in the event loop, longer ones in a thread."""
SLICE_CHARS: Final = 65_536
"""Characters of a long text that are passed to C code at once, which keeps all threads waiting."""
MARKS_MAX: Final = 30
"""Combining marks in a row that count when texts are compared, as in UAX 15."""

# What is not text, where its size is not known or a file claims too much.
PDF_PAGES_MAX: Final = 1_000
"""Pages of one PDF that are counted; no provider takes as many."""
PDF_UNPACKED_BYTES_MAX: Final = 8 * 1024 * 1024
"""Bytes of one PDF that are unpacked to find its pages and text."""
PAGE_TOKENS: Final = 1_500
"""Text of a page that cannot be read: Anthropic says 1,500 to 3,000."""
PAGE_TOKENS_MAX: Final = 3_000
"""Text of a page, at most."""
PAGE_BYTES: Final = 30_000
"""Bytes of a page in a PDF whose pages cannot be counted."""
PAGES_GUESSED_MAX: Final = 100
"""Pages of such a PDF."""
REFERENCE_PAGES: Final = 3
"""Pages of a file that is elsewhere: a URL or an id."""
REFERENCE_SECONDS: Final = 300
"""The length of a recording that is elsewhere."""
REFERENCE_VIDEO_SECONDS: Final = 60
"""The length of a video that is elsewhere."""
FILE_TOKENS_MAX: Final = 25_000
"""Tokens of a file of another kind."""

# The store.
SEQ_BITS: Final = 32
"""Bits of an entry's number that hold its sequence number within the conversation."""
BUSY_SECONDS: Final = 30.0
"""How long a writer waits for another process's transaction."""
WRITES_WAITING_MAX: Final = 10_000
"""Writes queued in one process before callers must slow down."""
BATCH_WRITES_MAX: Final = 512
"""Writes that share one commit."""
CROWD_SECONDS: Final = 0.0003
"""A commit stops waiting for more writes when none has arrived for this long."""
COMMIT_QUICK_SECONDS: Final = 0.0005
"""The longest commit of a disk that is trusted not to block other callers."""
COMMITS_PROVING: Final = 16
"""Consecutive quick commits after which a disk is trusted."""
COMMIT_AT_ONCE_BYTES: Final = 64 * 1024
"""Bytes of messages that the caller's thread writes in one commit."""
ANALYZE_INLINE_BYTES: Final = 100_000
"""Bytes of messages whose words are found in the event loop; more are left to a thread."""
COPY_BYTES: Final = 1024 * 1024
"""Bytes of a file or stream that are copied at once."""
READERS: Final = 4
"""Reading connections of one process."""
CONNECTIONS: Final = 10
"""Connections of one process to a database server."""
CONNECT_SECONDS: Final = 10.0
"""How long it may take to open a connection."""
TRANSACTION_SECONDS: Final = 10.0
"""How long a transaction may be idle before the server ends it: others may wait for it."""
RETRIES_MAX: Final = 10
"""The most retries that a caller can ask of a client or a model."""
STORE_TRIES_MAX: Final = 5
"""Attempts of a transaction that conflicts with others."""
READ_PAGE: Final = 1_000
"""Entries fetched at once when a whole conversation is read."""
PAGE_BYTES_MAX: Final = 32 * 1024 * 1024
"""Bytes of messages after which a page ends."""
INDEX_PAGE: Final = 250
"""Entries indexed for search in one transaction."""
INDEX_LAG: Final = 1_000
"""Entries appended without a pause after which each page of them is indexed between two commits."""
INDEX_TURNS: Final = 4
"""Pages that are indexed in a row while other writes wait."""
REINDEX_SECONDS: Final = 3_600
"""Time after which another process may index everything again, because one that began is gone."""
INDEX_IDLE_SECONDS: Final = 0.2
"""Idle time after which the writer updates the search index."""
SEGMENT_ENTRIES_MAX: Final = 256
"""Entries in one archived segment."""
SEGMENT_BYTES_MAX: Final = 1024 * 1024
"""Plain bytes in one archived segment, unless a single entry is larger."""
SCRUB_SECONDS: Final = 30.0
"""How long `erase` waits for readers of erased pages."""
WATCHED_MAX: Final = 10_000
"""Digests in progress that are checked when pending digests are listed."""
LEASE_SECONDS_MAX: Final = 3_600.0
"""The longest lease; one that ends later was taken with a wrong clock, and has expired."""
POSTPONE_SECONDS_MAX: Final = 3_600.0
"""The longest time that pending work is postponed; one that is due later is due now."""

# Digests.
ITEMS_MAX: Final = 120
"""Items of important data in one digest; the oldest entities are dropped first."""
EVIDENCE_MAX: Final = 8
"""Entries kept as evidence of an item: the first and the newest."""
ITEM_CHARS_MAX: Final = 400
"""Characters of one item's value or quote, as the rules write them."""
SET_ASIDE_MAX: Final = 50
"""Items without evidence that a digest lists."""

# People and facts.
FACTS_HELD: Final = 500
"""Facts of a person that are kept ready for contexts; `facts` returns all of them."""
PROFILE_FACTS: Final = 60
"""Facts in a profile."""
FACTS_PROPOSED_MAX: Final = 100
"""Facts of one answer of a model that are looked at."""
FACTS_PROMPT_CHARS: Final = 16_000
"""Characters of messages that a model is asked about at once for facts."""
FACT_VALUE_CHARS_MAX: Final = 100
"""Characters of a value that a model proposes."""
STATEMENTS_PER_CARD: Final = 500
"""Statements that are stored together."""
PEOPLE_REMEMBERED: Final = 256
"""People whose facts that hold are cached."""
UNREAD_AT_ONCE: Final = 32
"""Unread conversations of a person that a context reads first; the rest is read later."""
APPEND_READ_MAX: Final = 500
"""Messages of an append that are read for facts at once; more are read later."""
SENTENCES_MAX: Final = 600
"""Sentences that the offline summarizer compares."""
SENTENCE_CHARS_MAX: Final = 2_000
"""Characters of a sentence; longer ones are split."""
LOST_MAX: Final = 10
"""Lost facts of one kind that a receipt lists; it counts all of them."""
RESIDUE_MAX: Final = 20
"""Verbatim quotes that a receipt carries because the summary lost them."""
RESIDUE_CHARS_MAX: Final = 2_400
"""Characters of all these quotes together."""
RESIDUE_QUOTE_CHARS_MAX: Final = 240
"""Characters of one of these quotes."""
PROMPT_TEXT_CHARS_MAX: Final = 40_000
"""Characters of one message in a digest prompt; the middle of longer ones is cut."""
PROMPT_TOOL_CHARS_MAX: Final = 4_000
"""The same for tool results."""
DIGEST_WORDS_MIN: Final = 12
"""Words that a digest may have in any case: one of a word or two would tell nothing."""
DIGEST_TOKENS_MIN: Final = 24
"""The same in tokens."""
DIGEST_INLINE_CHARS: Final = 20_000
"""Texts up to this long are digested in the event loop, longer ones in a thread."""

# Contexts and digesting.
TAIL_ENTRIES_MIN: Final = 16
"""Newest entries that a strategy always sees, if there are as many."""
BACKLOG_PAGE: Final = 200
"""Entries read at once when a span is digested."""
QUESTION_LOOK_BACK: Final = 200
"""Entries before the tail that are searched for the user's newest message."""
FOLD_TOKENS_MAX: Final = 24_000
"""Tokens of entries that are summarized at once."""
FOLD_MESSAGE_TOKENS: Final = 4_000
"""Tokens of one message in a digest prompt; of a longer one its beginning and end."""
FOLD_ROUNDS_MAX: Final = 8
"""Digests that one context waits for."""
LEASE_SECONDS: Final = 60.0
"""How long a lease is valid without being renewed."""
ERROR_CHARS_MAX: Final = 500
"""Characters of an error that are stored with a failed digest."""
PROMPTS_REMEMBERED: Final = 1_000
"""Conversations whose last prompt is cached, to measure how much of it is repeated."""
DATA_REMEMBERED: Final = 100
"""Conversations whose important data is cached between contexts."""
STRATEGIES_REMEMBERED: Final = 10_000
"""Conversations whose strategy is cached between appends."""
HEADS_REMEMBERED: Final = 10_000
"""Conversations whose head is cached between appends to a database server."""
TOOL_CALL_REACH: Final = 100
"""Entries after a tool call that are searched for its results."""
ANSWER_REACH: Final = 200
"""Entries after a question that are searched for its answer."""
ANSWER_TRIES: Final = 20
"""Attempts to store an answer at the end of the log while others append, too."""
TOOL_ROUNDS_MAX: Final = 8
"""Rounds of tool calls in one turn."""
TOOL_ERROR_CHARS_MAX: Final = 1_000
"""Characters of the error that a model gets for a wrong tool call."""

# Recall.
RECALL_LEAST: Final = 40
"""The fewest candidates found by words that are ranked; by meaning half as many."""
RECALL_MOST: Final = 300
"""The most candidates."""
RECALL_INLINE: Final = 150
"""Entries up to this number are ranked in the event loop, more in a thread."""
RECALL_COMPARED: Final = 300
"""The best candidates whose tokens are compared with the question's."""
TOKEN_CODES_COMPARED: Final = 120_000
"""Bytes of codes of tokens that are compared with one question."""
QUESTION_BACK: Final = 3
"""Entries before a short answer that is quoted, among which its question is looked for."""
QUESTION_CHARS_MAX: Final = 600
"""Characters of a question that is quoted with its answer."""
ANSWER_CHARS_MAX: Final = 400
"""Characters of such an answer; a longer one says enough by itself."""
RECALL_REACH: Final = 2
"""Neighbors on each side of a found entry that are ranked with it."""
RECALL_CONVERSATIONS: Final = 50
"""Conversations of a tenant that one search ranks."""
RECALL_COPIES_MAX: Final = 20_000
"""Entries found by words in all conversations, if many of them are copies in branches."""
BRANCH_DEPTH_MAX: Final = 100
"""How far a search follows a branch of a branch of a branch to where a message was written."""
TOPICS_REMEMBERED: Final = 64
"""Conversations whose topics are cached between contexts."""
ASSIGN_PAGE: Final = 200
"""Entries assigned to topics in one step."""
ASSIGN_SECONDS: Final = 60.0
"""How long to wait for the vectors of such a page."""
TOPICS_EMBEDDED: Final = 100
"""Topics, the newest ones, that get the vectors of another embedder when it changes."""
TOPIC_SAMPLE: Final = 12
"""Entries of such a topic, the newest ones, that are embedded."""
ROUND_BACK: Final = 20
"""Entries before an answer among which its question is looked for."""
ASSIGN_CONFLICTS_MAX: Final = 20
"""Attempts to change topics that others change at the same time."""
EMBED_PAGE: Final = 256
"""Entries embedded between two writes."""
EMBED_IDLE_SECONDS: Final = 0.25
"""The delay between an append and its embedding: a short-lived process loads no model."""
EMBED_SECONDS: Final = 10.0
"""How long to wait for a question's vector."""
PASSAGE_CHARS: Final = 900
"""Characters embedded as one vector; a longer message has several."""
PASSAGES_MAX: Final = 32
"""Vectors of one message; the middle of a longer one is found only by its words."""
VECTOR_PAGE: Final = 10_000
"""Vectors read at once."""
VECTORS_COPIED: Final = 1_000
"""Vectors copied at once into a branch; a store may have to hold them in one document."""
WORDS_REMEMBERED: Final = 16_384
"""Words that an embedder caches: most texts use the same few thousand."""
VECTOR_BYTES_REMEMBERED: Final = 96 * 1024 * 1024
"""Bytes of codes cached for search by meaning."""

# Recall tools.
RECALL_FOUND_TOKENS: Final = 20_000
"""Tokens of one result of a recall tool, where the model's window allows it."""
RECALL_NEWEST_TOKENS: Final = 50_000
"""The same for `get_extended_context`."""
RECALL_TOKENS: Final = 2_000
"""Tokens of one result in a small window, if a quarter of it has room for as many."""
RECALL_TOKENS_MIN: Final = 200
"""The smallest limit of a result: less has no room for a message and a note."""
RECALL_HITS_DEFAULT: Final = 5
"""Messages that a search of a model returns, unless it requests another number."""
RECALL_HITS_MAX: Final = 50
"""Messages that a model may request in one search."""
RECALL_DATED_MAX: Final = 100
"""Messages of a date that a model may request at once."""
TASK_TOKENS_MAX: Final = 2_000
"""Tokens of the current task in a context."""
PROJECT_DIGESTS_MAX: Final = 20
"""Older conversations of a project whose digests one context looks for."""
PROJECT_DATED_MAX: Final = 200
"""Conversations of a project that one request for a date reads."""
RECALL_NEWEST_MAX: Final = 50
"""Newest messages that a model may request at once."""

# Agents, over MCP.
MCP_VALUES_MAX: Final = 50_000
"""Values in one MCP request: the SDK reads them on the event loop."""
QUOTED_TOKENS: Final = 5_000
"""Tokens of messages that one result quotes by default."""
QUOTED_TOKENS_MAX: Final = 50_000
"""Tokens of messages that one result may quote."""
QUOTED_MAX: Final = 100
"""Messages, topics, digests or facts in one result."""
LISTED_MAX: Final = 200
"""Conversations listed in one result."""
AGENT_BUDGET_MAX: Final = 200_000
"""Tokens of a context that an agent may request."""
AGENT_APPENDS_MAX: Final = 100
"""Messages that an agent may append at once."""
AGENT_CONVERSATIONS: Final = 100
"""Conversations that one request for a date searches; the next request continues after them."""
AGENT_QUOTES: Final = 3
"""Quotes of one fact in a result, the newest."""
AGENT_COPIES: Final = 10
"""Branches that are named with a message they share."""
RESOURCE_TOKENS: Final = 8_000
"""Tokens of messages in one resource."""

# Connections of the server; docs/server.md lists those that are settings.
HEADER_BYTES_MAX: Final = 32 * 1024
"""Bytes of a request's line and headers."""
UPSTREAM_SECONDS: Final = 600.0
"""How long the endpoint behind the proxy may be silent."""
HEADER_SECONDS: Final = 20.0
"""How long a request's headers may take, from the connection or their first byte on."""
BODY_SECONDS: Final = 3_600.0
"""How long a request's body may take."""
BODY_STALL_SECONDS: Final = 30.0
"""In each period of this length, a part of the body must arrive."""
BODY_BYTES_PER_SECOND: Final = 1_024
"""How large that part must be."""
SEND_SECONDS: Final = 60.0
"""How long a client may read nothing of a response."""
IDLE_SECONDS: Final = 75.0
"""How long a connection is kept between requests: more than the 60 of nginx and most balancers."""
CONNECTIONS_MAX: Final = 8_192
"""Connections of clients, if the file descriptors allow as many."""
CONNECTIONS_OVER_MAX: Final = 32
"""Connections beyond the cap whose request is awaited: it may be a health check."""
OVER_SECONDS: Final = 2.0
"""How long it is awaited."""
ACCEPTED_AT_ONCE: Final = 32
"""Connections accepted before the first of them is handled."""
DESCRIPTORS_MAX: Final = 65_536
"""File descriptors that the server asks the system for."""
DESCRIPTORS_RESERVED: Final = 256
"""File descriptors that are not for clients: of the store, and of rejected connections."""
DRAIN_SECONDS: Final = 10.0
"""How long the rest of a body is read whose request has been answered."""
LINGER_SECONDS: Final = 2.0
"""How long a client may take to read why its connection is closed."""
REPEATS_MAX: Final = 30
"""Warnings and errors of one kind that are logged in one period; more are counted."""
REPEAT_SECONDS: Final = 60.0
"""The length of that period."""
REPEAT_KINDS_MAX: Final = 1_000
"""Kinds that are distinguished."""


def check_size(name: str, chars: int, most: int = DATA_CHARS_MAX) -> None:
    """Raise `InputError` if JSON has more than `most` characters."""
    if chars > most:
        raise InputError(f"{name}: {chars:,} characters as JSON; the limit is {most:,}")


def check_number(name: str, value: int, least: int | None = 0, most: int | None = None) -> int:
    """Return `value`, or raise `InputError` if it is not an int within the bounds."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{name}: expected an integer, got {value!r}")
    if most is not None and not (least or 0) <= value <= most:
        raise InputError(f"{name}: {value} is not between {least or 0} and {most}")
    if least is not None and value < least:
        raise InputError(f"{name}: {value} is less than {least}")
    return value


MIGRATE_PENDING_MAX: Final = 1_000_000
"""Conversations of a tenant with pending digests that a migration marks in the target."""
UNKNOWN_MODELS_MAX: Final = 1_000
"""Models of unknown windows that are remembered, so that each is warned about once."""
