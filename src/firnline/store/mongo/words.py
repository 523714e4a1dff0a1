"""Terms as the word index keeps them: numbers, each made of the tenant and the term.

So languages that MongoDB does not stem or cut into words, Chinese, Japanese and Korean among them,
are searched as on every other backend; and nobody can read words in the index.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from firnline.language.stems import stem
from firnline.language.terms import fact_terms, index_terms, role_term, searchable_text, spellings
from firnline.log.message import Message

PART: Final = 50_000
"""Terms in one document."""
BEFORE_MAX: Final = 300
"""Terms of an entry that are kept with the entry after it, too."""
_FACT: Final = "@"  # in front of what says who spoke and when


@lru_cache(maxsize=65_536)
def number(tenant: str, term: str) -> int:
    """What stands for a term in the index."""
    named = f"{tenant}\0{term}".encode()
    return int.from_bytes(hashlib.blake2b(named, digest_size=8).digest(), "big", signed=True)


def of_query(tenant: str, term: Sequence[str]) -> int:
    """What stands for a term of `query_terms`: a word, or a pair of neighbours."""
    return number(tenant, stem("".join(term)))


def of_fact(tenant: str, term: str) -> int:
    """What stands for a term that says who spoke or when."""
    return number(tenant, _FACT + stem(term))


def of_role(tenant: str, role: str) -> int:
    """What stands for the entries of a role."""
    return of_fact(tenant, role_term(role))


def own(tenant: str, message: Message) -> list[int]:
    """The terms of what a message says, each once, in order."""
    said = spellings(index_terms(searchable_text(message)))
    return list(dict.fromkeys(number(tenant, stem(term)) for term in said))


def about(tenant: str, message: Message) -> list[int]:
    """The terms that say who spoke and when."""
    return list(dict.fromkeys(of_fact(tenant, term) for term in spellings(fact_terms(message))))
