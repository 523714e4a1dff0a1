"""What users can rely on. A test has the id of the promise it proves; both ways are checked."""

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
        "Sequence numbers start at 0 and have no gaps; a batch is stored completely or not at "
        "all; each caller's order is kept.",
        "Without gaps, a missing message is visible.",
    ),
    Promise(
        "byte-exact",
        "Messages are read back byte for byte, unknown fields included; lone surrogates and "
        "NUL, which databases store differently, are replaced visibly and flagged.",
        "An edited transcript is not evidence.",
    ),
    Promise(
        "idempotent",
        "Repeating an append with its idempotency key stores nothing twice.",
        "Networks lose answers, so clients must be able to retry.",
    ),
    Promise(
        "tamper-evident",
        "`verify` finds any change of a message, of a segment, and of the rows next to the log; "
        "damaged text is never returned.",
        "Proof that nothing was lost must include proof that nothing was altered.",
    ),
    Promise(
        "proof-for-strangers",
        "A checkpoint that was kept elsewhere shows any rewriting of the log before it, and that a "
        "message is in a log can be checked with one file of plain Python, without the store.",
        "A proof that only the operator can check does not convince a customer.",
    ),
    Promise(
        "exact-tokens",
        "Token counts equal the reference encoder's; where that is impossible, they are over-"
        "estimates and marked as such. No input makes counting fail or blocks the event loop.",
        "A budget based on guesses is not a budget.",
    ),
    Promise(
        "media-by-rule",
        "Images, PDFs and sound are counted by their provider's published rule, at most twice of "
        "it; base64 is never counted as text, nor cut. What cannot be known is a marked estimate.",
        "A photo is a thousand tokens to the model and a quarter of a million characters on the "
        "wire.",
    ),
    Promise(
        "verbatim-first",
        "A message that fits is shown word for word, once; a digest stands only for what does not "
        "fit, and digests are opened while there is room. A context is never larger than the plain "
        "history, and at most a tenth of its budget is free while anything is left to show.",
        "A summary of what would have fit is a loss that nothing asked for.",
    ),
    Promise(
        "recall-earned",
        "What is recalled has earned its place: recall ends where the chance to help ends, not "
        "where its allowance ends, and a strategy's own limit holds with a question, too.",
        "A model that reads twenty messages to find one finds the wrong one.",
    ),
    Promise(
        "split-by-need",
        "The room of a context is split by what there is to show: the newest question and "
        "the tool results that follow it are whole if they fit, and a context of 1,000 "
        "tokens or more finds the answers that recall finds with 85% of its tokens, but for"
        " one in a hundred.",
        "Fixed shares waste room in one prompt and lack it in the next.",
    ),
    Promise(
        "seqs-exact",
        "`context.seqs` names exactly the messages that are there word for word, quoted "
        "ones too; a message is there once, and one that is shortened is not named.",
        "What an application is told about a prompt has to be what the model reads.",
    ),
    Promise(
        "no-wait",
        "A context waits for no digest by default; it shows the best there is, and digests are "
        "created in the background.",
        "A user waits for an answer, not for a summary of last week.",
    ),
    Promise(
        "whole-if-unknown",
        "If a model's window is unknown, nothing is cut: the history passes through whole, and a "
        "warning names the setting.",
        "A guessed window would lose most of a conversation without a word.",
    ),
    Promise(
        "tenants-apart",
        "A tenant sees only its own conversations, in every call and in search.",
        "One leak ends the trust of all tenants.",
    ),
    Promise(
        "one-digester",
        "One worker digests a conversation at a time, across processes; a worker that comes "
        "back late cannot commit.",
        "Two summaries of the same span would contradict each other.",
    ),
    Promise(
        "within-budget",
        "A context never takes more tokens than its budget, including system, tools and "
        "framing; if required content does not fit, `BudgetError` says what takes the room.",
        "Providers reject a prompt that is one token too long.",
    ),
    Promise(
        "pairs-whole",
        "A tool call and all of its results are in a context together or not at all; pinned "
        "messages and the newest question are in every context, word for word.",
        "Half a tool call is an error at every provider.",
    ),
    Promise(
        "digests-additive",
        "A digest never replaces or removes a message; the log is the same before and after.",
        "A summary is an opinion of what mattered.",
    ),
    Promise(
        "archive-transparent",
        "Archived messages are read, searched, counted and verified like any other.",
        "Old messages matter as much as new ones.",
    ),
    Promise(
        "search-total",
        "Every acknowledged message can be found by its words, in any language; every query is "
        "valid, and no character in it is an operator.",
        "Memory that cannot be found is not memory.",
    ),
    Promise(
        "erase-total",
        "After `erase` no byte of the conversation is left in any file of the store; after "
        "`erase_messages`, none of these messages or of what was derived from them. "
        "The certificate names the copies that survive.",
        "The right to be forgotten is about bytes, not about rows.",
    ),
    Promise(
        "round-trip",
        "Importing an export gives the same data, and a damaged export is rejected completely.",
        "Your data is yours only if you can take it elsewhere.",
    ),
    Promise(
        "backup-whole",
        "A backup made under load is consistent and has everything that was acknowledged before"
        " it started.",
        "A backup that cannot be restored is worth nothing.",
    ),
    Promise(
        "typed-failure",
        "A full, read-only, locked, damaged or foreign file is a typed error that says what to "
        "do; what was stored before stays readable.",
        "Errors are part of the interface.",
    ),
    Promise(
        "undoable",
        "Every digest can be undone, and traced to the messages it covers, word for word.",
        "A summary that replaces its source loses it.",
    ),
    Promise(
        "evidence",
        "Every fact in a digest carries the sequence numbers and the words it came from, "
        "checked by code; a fact without evidence is set aside where it can be seen.",
        "A memory that invents facts is worse than one that forgets.",
    ),
    Promise(
        "current-facts-win",
        "A newer statement of the user outdates what it contradicts: recall puts it first and "
        "marks the older message; important data says what holds now. Both are kept.",
        "An assistant that delivers to the old address has the right memory and the wrong answer.",
    ),
    Promise(
        "one-person",
        "A conversation is with one person at most. What they state in one is known in all of "
        "theirs, with its quote and its time, and in no other person's; at every message the facts "
        "are what a replay of the log gives.",
        "A returning customer should not be a stranger, nor be taken for another one.",
    ),
    Promise(
        "prefix-stable",
        "A prompt starts like the previous one, byte for byte, until a digest changes; messages"
        " recalled for a question come last.",
        "A prompt cache that misses on every turn costs ten times as much.",
    ),
    Promise(
        "dead-model",
        "A failing model, however it fails, stops no chat and loses no message: contexts say "
        "what is missing, and digests stay pending until they are created.",
        "The model is the part that fails most often, so nothing may depend on it.",
    ),
    Promise(
        "offline",
        "There are no network requests unless a model is configured: counting, storing, "
        "searching, verifying, contexts and digests work offline.",
        "Memory should not depend on another company's server.",
    ),
)
