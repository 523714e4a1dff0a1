"""Terms in the word index: hashes, bound to the tenant.

PostgreSQL does not use an index for `@@` under a row-level policy, so the index is read without
one. It contains no readable words, and a tenant's query can only match the tenant's rows, because
the hash of a term depends on the tenant. So a posting list has at most one tenant's entries.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from typing import Final

from firnline.language.terms import entry_terms, fact_terms, role_term
from firnline.log.message import Message
from firnline.store.rows import TERMS_PER_ROW

_FACT: Final = "@"  # prefix of speaker and date terms


@lru_cache(maxsize=65_536)
def lexeme(tenant: str, term: str) -> str:
    """The hash of a term in the index."""
    named = f"{tenant}\0{term}".encode()
    return base64.urlsafe_b64encode(hashlib.blake2b(named, digest_size=6).digest()).decode()


def of_fact(tenant: str, term: str) -> str:
    """The hash of a speaker or date term."""
    return _FACT + lexeme(tenant, term)


def of_role(tenant: str, role: str) -> str:
    """The hash for entries of a role."""
    return of_fact(tenant, role_term(role))


def parts(tenant: str, message: Message) -> list[str]:
    """The index rows of a message, each in the text form of a tsvector."""
    found = {lexeme(tenant, term) for term in entry_terms(message)}
    found |= {of_fact(tenant, term) for term in fact_terms(message)}
    every = iter(found)
    rows = []
    while part := " ".join(islice(every, TERMS_PER_ROW)):
        rows.append(part)
    return rows


def any_of(lexemes: Iterable[str]) -> str:
    """A tsquery for rows that contain any of them."""
    return " | ".join(f"'{item}'" for item in lexemes)
