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

from firnline.language.terms import index_entry, is_part, role_term
from firnline.log.message import Message
from firnline.store.rows import TERMS_PER_ROW

_BYTES: Final = 6
_PART_BYTES: Final = 4  # there are few parts of words, and many of each


@lru_cache(maxsize=131_072)
def lexeme(tenant: str, term: str) -> str:
    """The hash of a term in the index."""
    size = _PART_BYTES if is_part(term) else _BYTES
    digest = hashlib.blake2b(f"{tenant}\0{term}".encode(), digest_size=size).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def of_role(tenant: str, role: str) -> str:
    """The hash for entries of a role."""
    return lexeme(tenant, role_term(role))


def parts(tenant: str, message: Message) -> list[str]:
    """The index rows of a message, each in the text form of a tsvector."""
    every = iter({lexeme(tenant, term) for term in index_entry(message).every})
    rows = []
    while part := " ".join(islice(every, TERMS_PER_ROW)):
        rows.append(part)
    return rows


def of_any(tenant: str, terms: Iterable[str]) -> str:
    """A tsquery for rows that contain any of the terms."""
    return any_of(lexeme(tenant, term) for term in terms)


def of_all(tenant: str, terms: Iterable[str]) -> str:
    """A tsquery for rows that contain all of the terms."""
    return " & ".join(f"'{lexeme(tenant, term)}'" for term in terms)


def any_of(lexemes: Iterable[str]) -> str:
    """A tsquery for rows that contain any of them."""
    return " | ".join(f"'{item}'" for item in lexemes)
