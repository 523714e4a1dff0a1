"""What users can rely on. Tests carry the id of the promise they prove, both ways checked."""

from __future__ import annotations

from typing import Final, NamedTuple


class Promise(NamedTuple):
    """One promise: its id, what is promised, and why it matters."""

    id: str
    text: str
    why: str


PROMISES: Final = (
    Promise(
        "durable",
        "A message is on disk when `append` returns; kill -9 at any moment loses none.",
        "An assistant that forgets what it has confirmed is worse than one without memory.",
    ),
    Promise(
        "dense",
        "Sequence numbers start at 0 and have no holes; batches stay whole, callers keep order.",
        "Without holes, what is missing can be seen to be missing.",
    ),
    Promise(
        "byte-exact",
        "What was appended is read back byte for byte, unknown fields included; lone surrogates "
        "and NUL, which no database stores alike, are replaced visibly and flagged.",
        "A transcript that has been tidied up is not evidence.",
    ),
    Promise(
        "idempotent",
        "Repeating an append with its idempotency key stores nothing twice.",
        "Networks lose answers, so clients must be able to ask again.",
    ),
    Promise(
        "tamper-evident",
        "`verify` finds any change of an entry or segment, and damaged text is never served.",
        "Proof that nothing was lost has to include proof that nothing was altered.",
    ),
    Promise(
        "exact-tokens",
        "Token counts equal the reference encoder's; where they cannot, they are over-estimates "
        "that say so. No input makes counting fail or stops the event loop.",
        "A budget kept by guesses is not kept.",
    ),
    Promise(
        "tenants-apart",
        "A tenant sees only its own conversations, in every call and in search.",
        "One leak ends the trust of all tenants.",
    ),
    Promise(
        "one-compactor",
        "One worker digests a conversation at a time, across processes; one that comes back late "
        "is refused.",
        "Two summaries of the same span would contradict each other for good.",
    ),
    Promise(
        "within-budget",
        "A context never takes more tokens than its budget, system, tools and framing included; "
        "what must be in it and cannot fit raises `BudgetError` and says what is in the way.",
        "A prompt that is one token too long is no prompt.",
    ),
    Promise(
        "pairs-whole",
        "A tool call and all of its results are in a context together or not at all; pinned "
        "messages and the newest question are in every context, word for word.",
        "Half a tool call is an error at every provider.",
    ),
    Promise(
        "digests-beside",
        "A digest never replaces or removes an entry; the log is the same before and after.",
        "A summary is somebody's opinion of what mattered.",
    ),
    Promise(
        "archive-transparent",
        "Archived entries are read, searched, counted and verified like any other.",
        "Old is not the same as gone.",
    ),
    Promise(
        "search-total",
        "Every acknowledged entry can be found by its words, in any language; no query is an "
        "error, no character in it is an operator.",
        "Memory that cannot be found is not memory.",
    ),
    Promise(
        "erase-total",
        "After `erase` no byte of the conversation is left in any file of the store.",
        "The right to be forgotten is about bytes, not about rows.",
    ),
    Promise(
        "round-trip",
        "Import of an export is the identity, and a damaged export is refused whole.",
        "Your data is yours only if you can take it elsewhere.",
    ),
    Promise(
        "backup-whole",
        "A backup made under load is consistent and holds all that was acknowledged before.",
        "A backup that was never restored is a wish.",
    ),
    Promise(
        "typed-failure",
        "A full, read-only, locked, damaged or foreign file is a typed error that says what to do; "
        "what was stored before stays readable.",
        "Errors are part of the interface.",
    ),
    Promise(
        "undoable",
        "Every digest can be undone, and traced to the entries it covers, word for word.",
        "A summary that replaces what it summarises is a way of losing it.",
    ),
    Promise(
        "evidence",
        "Every fact that a digest keeps carries the sequence numbers and the words it came "
        "from, checked by code; what has none is set aside where it can be seen.",
        "A memory that makes things up is worse than one that forgets.",
    ),
    Promise(
        "prefix-stable",
        "A prompt begins like the one before it, byte for byte, until a digest changes; what "
        "was recalled for one question comes last.",
        "A prompt cache that is missed on every turn costs ten times as much.",
    ),
    Promise(
        "dead-model",
        "A model that fails, however it fails, stops no chat and costs no message: contexts say "
        "what is missing, and what it should have digested is owed until it is digested.",
        "The model is the part that fails most, so nothing may depend on it.",
    ),
    Promise(
        "offline",
        "Nothing goes over the network unless a model is configured: counting, storing, searching, "
        "proving, contexts and digests work without it.",
        "Memory is the last thing that should depend on somebody else's server.",
    ),
)
