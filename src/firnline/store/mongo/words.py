"""Terms as the word index stores them: numbers, each a hash of the tenant and the term.

So languages that MongoDB cannot stem or split into words, such as Chinese, Japanese and Korean, are
searched as on every other backend. The index contains no readable words.
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
"""Maximum terms per document."""
BEFORE_MAX: Final = 300
"""Maximum terms of an entry that are also stored with the next entry."""
_FACT: Final = "@"  # prefix of terms for the speaker and the date


@lru_cache(maxsize=65_536)
def number(tenant: str, term: str) -> int:
    """The number of a term in the index."""
    named = f"{tenant}\0{term}".encode()
    return int.from_bytes(hashlib.blake2b(named, digest_size=8).digest(), "big", signed=True)


def of_query(tenant: str, term: Sequence[str]) -> int:
    """The number of a term of `query_terms`: a word, or an adjacent pair."""
    return number(tenant, stem("".join(term)))


def of_fact(tenant: str, term: str) -> int:
    """The number of a term for a speaker or a date."""
    return number(tenant, _FACT + stem(term))


def of_role(tenant: str, role: str) -> int:
    """The number of the term for a role."""
    return of_fact(tenant, role_term(role))


def own(tenant: str, message: Message) -> list[int]:
    """The numbers of a message's terms, without duplicates, in order."""
    said = spellings(index_terms(searchable_text(message)))
    return list(dict.fromkeys(number(tenant, stem(term)) for term in said))


def about(tenant: str, message: Message) -> list[int]:
    """The numbers of the terms for the speaker and the date."""
    return list(dict.fromkeys(of_fact(tenant, term) for term in spellings(fact_terms(message))))
