"""Every bound in one place. Nothing in Firnline grows, loops or waits without one."""

from __future__ import annotations

from typing import Final

from firnline.errors import InputError

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
CARD_BYTES_MAX: Final = 4 * 1024 * 1024
"""Bytes of one card's body."""

# Imports from elsewhere.
IMPORT_READ_BYTES: Final = 1024 * 1024
"""Bytes read at once from a file that is imported."""
IMPORT_VALUE_CHARS_MAX: Final = 128 * 1024 * 1024
"""Characters of one JSON value, such as a conversation with all its branches."""
IMPORT_BATCH_MESSAGES: Final = 500
"""Messages stored at once."""
IMPORT_BATCH_CHARS: Final = 2 * 1024 * 1024
"""Characters of messages after which such a batch ends."""
IMPORT_HELD_MAX: Final = 100_000
"""Messages of a conversation that are held in memory, where a file has to be put in order."""
IMPORT_COPIED_MAX: Final = 100_000
"""Messages copied for all branches of a conversation; further ones are kept without beginning."""
IMPORT_AT_ONCE: Final = 8
"""Short conversations taken at the same time."""
IMPORT_TRIES_MAX: Final = 8
"""Times that a conversation is looked at anew because somebody else has appended to it."""
IMPORT_FILES_MAX: Final = 100_000
"""Files in an archive or a folder."""
UNPACKED_RATIO_MAX: Final = 200
"""How many times its own size an archive may unpack to."""
UNPACKED_FREE_BYTES: Final = 64 * 1024 * 1024
"""What it may unpack to in any case."""
NOTE_EXAMPLES_MAX: Final = 5
"""Places that a report names for each thing that was not taken."""
NOTE_KINDS_MAX: Final = 100
"""Different things that a report tells apart."""
NOTE_CHARS_MAX: Final = 300
"""Characters of each of them."""

# What a query may ask for.
PAGE_MAX: Final = 1_000
"""Rows in one page of conversations or hits."""
QUERY_TERMS_MAX: Final = 64
"""Terms of a search query that are looked up; more are ignored."""
SEARCH_WEIGHED_MAX: Final = 4_000
"""Entries that a search weighs against each other, by and large; common words lead to no more."""

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
CROWD_SECONDS: Final = 0.0003
"""How long nobody has come when a commit stops waiting for those who shared the one before it."""
COMMIT_QUICK_SECONDS: Final = 0.0005
"""How long a commit may take, on a disk that is trusted to hold up nobody else."""
COMMITS_PROVING: Final = 16
"""Quick commits in a row after which a disk is trusted."""
COMMIT_AT_ONCE_BYTES: Final = 64 * 1024
"""Bytes of messages that a caller's own thread writes in one commit."""
READERS: Final = 4
"""Reading connections of one process."""
CONNECTIONS: Final = 10
"""Connections of one process to a database server."""
CONNECT_SECONDS: Final = 10.0
"""How long it may take to make one."""
TRANSACTION_SECONDS: Final = 10.0
"""How long a transaction may stand still before the server ends it: others may wait for it."""
STORE_TRIES_MAX: Final = 5
"""Tries of a transaction that others were in the way of."""
READ_PAGE: Final = 1_000
"""Entries fetched at once when a whole conversation is walked."""
PAGE_BYTES_MAX: Final = 32 * 1024 * 1024
"""Bytes of messages after which such a page ends."""
INDEX_PAGE: Final = 500
"""Entries indexed for search in one transaction."""
INDEX_BEFORE_CHARS: Final = 1_000
"""Characters of an entry's words that are indexed with the entry after it, too."""
INDEX_IDLE_SECONDS: Final = 0.2
"""Quiet time after which the writer catches up with the search index."""
SEGMENT_ENTRIES_MAX: Final = 256
"""Entries in one archived segment."""
SEGMENT_BYTES_MAX: Final = 1024 * 1024
"""Plain bytes in one archived segment, unless a single entry is larger."""
SCRUB_SECONDS: Final = 30.0
"""How long `erase` waits for readers that still hold erased pages."""
WATCHED_MAX: Final = 10_000
"""Digests in the making that are looked at when somebody asks what is pending."""
LEASE_SECONDS_MAX: Final = 3_600.0
"""The longest lease."""

# Digests.
ITEMS_MAX: Final = 120
"""Items of important data in one digest; the oldest entities leave first."""
EVIDENCE_MAX: Final = 8
"""Places where an item was said that are kept: the first and the newest."""
ITEM_CHARS_MAX: Final = 400
"""Characters of one item's value or quote, as the rules write them."""
SET_ASIDE_MAX: Final = 50
"""Items without evidence that a digest keeps visible."""
SENTENCES_MAX: Final = 600
"""Sentences the offline summariser weighs against each other."""
SENTENCE_CHARS_MAX: Final = 2_000
"""Characters of a sentence before it is taken as several."""
LOST_MAX: Final = 10
"""Lost things of one kind that a receipt lists; it counts all of them."""
RESIDUE_MAX: Final = 20
"""Verbatim quotes that a receipt carries because the summary lost them."""
RESIDUE_CHARS_MAX: Final = 2_400
"""Characters of all those quotes together."""
RESIDUE_QUOTE_CHARS_MAX: Final = 240
"""Characters of one of them."""
PROMPT_TEXT_CHARS_MAX: Final = 40_000
"""Characters of one message shown to a model that digests; the middle of longer ones is cut."""
PROMPT_TOOL_CHARS_MAX: Final = 4_000
"""The same for what a tool returned."""
DIGEST_INLINE_CHARS: Final = 20_000
"""Texts up to this long are digested at once, longer ones in a thread beside the event loop."""

# Contexts and folds.
TAIL_ENTRIES_MIN: Final = 16
"""Newest entries that a strategy sees in any case, if there are as many."""
BACKLOG_PAGE: Final = 200
"""Entries read at once when a span is folded."""
QUESTION_LOOK_BACK: Final = 200
"""How far before the tail the newest message of the user is looked for."""
FOLD_TOKENS_MAX: Final = 24_000
"""Tokens of entries that are summarised at once."""
FOLD_MESSAGE_TOKENS: Final = 4_000
"""Tokens of one message that a summariser gets; of a longer one its beginning and its end."""
FOLD_ROUNDS_MAX: Final = 8
"""Folds that one context waits for."""
LEASE_SECONDS: Final = 60.0
"""How long a lease holds without being renewed."""
ERROR_CHARS_MAX: Final = 500
"""Characters of an error that are kept with a failed digest."""
PROMPTS_REMEMBERED: Final = 1_000
"""Conversations whose last prompt is remembered, to tell how much of it is repeated."""
DATA_REMEMBERED: Final = 100
"""Conversations whose important data is kept ready between contexts."""
STRATEGIES_REMEMBERED: Final = 10_000
"""Conversations whose strategy is remembered between appends."""
HEADS_REMEMBERED: Final = 10_000
"""Conversations whose head is remembered between appends to a server's database."""
TOOL_CALL_REACH: Final = 100
"""Entries after a tool call among which its results are looked for."""
ANSWER_REACH: Final = 200
"""Entries after a question among which its answer is looked for."""
ANSWER_TRIES: Final = 20
"""Times an answer is stored exactly at the end of the log, while others write there, too."""
TOOL_ROUNDS_MAX: Final = 8
"""Rounds of tool calls in one turn."""
TOOL_ERROR_CHARS_MAX: Final = 1_000
"""Characters of what a model is told about a wrong tool call."""

# Recall.
RECALL_LEAST: Final = 40
"""Entries found by words among which the best are chosen, at least; by meaning half as many."""
RECALL_MOST: Final = 300
"""The same at most."""
RECALL_INLINE: Final = 150
"""Entries that are weighed at once; more of them in a thread beside the event loop."""
RECALL_REACH: Final = 2
"""Neighbours on each side of a found entry that are weighed with it."""
RECALL_CONVERSATIONS: Final = 50
"""Conversations of a tenant that one search looks into more closely."""
TOPICS_REMEMBERED: Final = 64
"""Conversations whose topics are kept ready between contexts."""
ASSIGN_PAGE: Final = 200
"""Entries assigned to topics in one step."""
ASSIGN_SECONDS: Final = 60.0
"""How long the vectors of such a page are waited for."""
ASSIGN_CONFLICTS_MAX: Final = 20
"""Times that topics are looked at anew because somebody else has changed them."""
EMBED_PAGE: Final = 64
"""Entries embedded between two writes."""
EMBED_IDLE_SECONDS: Final = 0.25
"""How long after an append embedding begins: a process that ends at once loads no model."""
EMBED_SECONDS: Final = 10.0
"""How long a question's vector is waited for."""
PASSAGE_CHARS: Final = 900
"""Characters that are embedded at once; a longer message has several vectors."""
PASSAGES_MAX: Final = 32
"""Vectors of one message; the middle of a longer one is found by its words alone."""
VECTOR_PAGE: Final = 10_000
"""Vectors read at once."""
VECTOR_BYTES_REMEMBERED: Final = 96 * 1024 * 1024
"""Bytes of codes kept in memory for search by meaning."""

# Recall tools.
RECALL_TOKENS: Final = 2_000
"""Tokens of one result of a recall tool, unless the caller says otherwise."""
RECALL_TOKENS_MIN: Final = 200
"""The least it can say: less has no room for a message and a note."""
RECALL_HITS_MAX: Final = 50
"""Messages that a model may ask for in one search."""
RECALL_DATED_MAX: Final = 100
"""Messages of a date that a model may ask for at once."""
RECALL_NEWEST_MAX: Final = 50
"""Newest messages that a model may ask for at once."""

# Agents, over MCP.
QUOTED_TOKENS_MAX: Final = 20_000
"""Tokens of messages that one result may quote."""
QUOTED_MAX: Final = 100
"""Messages, topics, digests or facts that one result may have."""
LISTED_MAX: Final = 200
"""Conversations that one result may list."""
AGENT_BUDGET_MAX: Final = 200_000
"""Tokens of a context that an agent may ask for."""
AGENT_APPENDS_MAX: Final = 100
"""Messages that an agent may append at once."""
AGENT_CONVERSATIONS: Final = 100
"""Conversations that one question about a date looks into; the next one goes on behind them."""
RESOURCE_TOKENS: Final = 8_000
"""Tokens of messages in one resource."""


def check_number(name: str, value: int, least: int | None = 0, most: int | None = None) -> int:
    """A number that a caller hands in; `InputError` if it is none, or not within its bounds."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{name}: expected a whole number, got {value!r}")
    if most is not None and not (least or 0) <= value <= most:
        raise InputError(f"{name}: {value}; {least or 0} to {most} are allowed")
    if least is not None and value < least:
        raise InputError(f"{name}: {value} is less than {least}")
    return value
