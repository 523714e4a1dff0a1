"""Terms as the word index stores them: numbers, each a hash of the tenant and the term.

So languages that MongoDB cannot stem or split into words, such as Chinese, Japanese and Korean, are
searched as on every other backend. The index contains no readable words.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

from firnline.language.terms import entry_terms, fact_terms, role_term
from firnline.log.message import Message

BEFORE_MAX: Final = 300
"""Maximum terms of an entry that are also stored with the next entry."""
_FACT: Final = "@"  # prefix of terms for the speaker and the date


@lru_cache(maxsize=65_536)
def number(tenant: str, term: str) -> int:
    """The number of a term in the index."""
    named = f"{tenant}\0{term}".encode()
    return int.from_bytes(hashlib.blake2b(named, digest_size=8).digest(), "big", signed=True)


def of_fact(tenant: str, term: str) -> int:
    """The number of a term for a speaker or a date."""
    return number(tenant, _FACT + term)


def of_role(tenant: str, role: str) -> int:
    """The number of the term for a role."""
    return of_fact(tenant, role_term(role))


def own(tenant: str, message: Message) -> list[int]:
    """The numbers of a message's terms, without duplicates, in order."""
    return list(dict.fromkeys(number(tenant, term) for term in entry_terms(message)))


def about(tenant: str, message: Message) -> list[int]:
    """The numbers of the terms for the speaker and the date."""
    return list(dict.fromkeys(of_fact(tenant, term) for term in fact_terms(message)))
