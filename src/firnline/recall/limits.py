"""The numeric limits of recall: how much is read and compared. Its weights are in `weights`."""

from __future__ import annotations

from typing import Final

EARNED_MAX: Final = 24
"""Messages that earn their place, at most."""
FEATURE_CHARS_MAX: Final = 16_000
"""Characters of a message that are analyzed; the index also finds the text after them."""
QUESTION_CHARS_MAX: Final = 4_000
"""Characters of a question that are read."""
REPEATS_COMPARED: Final = 100
"""The best hits that are compared for near repeats; four times as many for equal words."""
REPEAT_CHARS_MAX: Final = 4_000
"""Characters of a text that is compared; longer ones are repeats only if they are equal."""
RUNS_MAX: Final = 8
"""Runs of numbers in a note on what is left."""
ID_DIGITS_MAX: Final = 20
"""Digits of the number in an id."""
BEHIND_MAX: Final = 20
"""Conversations whose missing vectors are counted."""
UPDATE_HITS_READ: Final = 200
"""Hits of a conversation that are read for statements."""
UPDATES_FOUND_MAX: Final = 100
"""Entries that a search for newer statements reads."""
UPDATE_SLOTS_MAX: Final = 3
"""Slots that newer statements are searched for."""
UPDATE_CONVERSATIONS_MAX: Final = 3
"""Conversations in which they are searched."""
UPDATE_CHARS_READ: Final = 200_000
"""Characters of a conversation's entries that are read for statements, the best hits first."""
STATEMENTS_MAX: Final = 1_000
"""Statements that are compared with each other, the newest."""
FACT_HITS_READ: Final = 30
"""The best hits that are read for what facts outdate."""
FACT_ANSWERS_MAX: Final = 3
"""Facts that answer a question."""
PASSAGE_TOKENS: Final = 180
"""Tokens that are shown of a long message, at least; of one that is little longer, all."""
PASSAGES_SHOWN: Final = 4
"""Passages that fit into the tokens that are given, if these are many: then each has more."""
PASSAGE_CHARS_READ: Final = 64_000
"""Characters of a message in which the sentences are looked for that answer a question."""
PASSAGE_SENTENCE_CHARS: Final = 400
"""Characters of a sentence of such a message; a longer one is taken for several."""
PASSAGE_PLACES_MAX: Final = 3
"""Sentences around which a passage is made."""
PASSAGES_LOCATED: Final = 120
"""Long messages of one search of which the passages are looked for, the best first."""
PASSAGE_CHARS_ALL: Final = 400_000
"""Characters of all of them together."""
WORDS_SECONDS: Final = 2.0
"""For so long a context waits until the words of a long log are indexed."""
