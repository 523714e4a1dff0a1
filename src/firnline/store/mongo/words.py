"""Terms as the word index stores them: numbers, each a hash of the tenant and the term.

So languages that MongoDB cannot stem or split into words, such as Chinese, Japanese and Korean, are
searched as on every other backend. The index contains no readable words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from firnline.language.terms import index_entry, is_part, role_term
from firnline.log.message import Message

_NUMBER_BYTES: Final = 8
_PART_NUMBER_BYTES: Final = 4  # there are few parts of words, and many of each


@lru_cache(maxsize=131_072)
def number(tenant: str, term: str) -> int:
    """The number of a term in the index."""
    size = _PART_NUMBER_BYTES if is_part(term) else _NUMBER_BYTES
    digest = hashlib.blake2b(f"{tenant}\0{term}".encode(), digest_size=size).digest()
    return int.from_bytes(digest, "big", signed=True)


def numbers(tenant: str, terms: Iterable[str]) -> list[int]:
    """The numbers of terms."""
    return [number(tenant, term) for term in terms]


def of_role(tenant: str, role: str) -> int:
    """The number of the term for a role."""
    return number(tenant, role_term(role))


def of_entry(tenant: str, message: Message) -> tuple[list[int], list[int]]:
    """The numbers of a message's own terms, in order, and of its others."""
    terms = index_entry(message)
    return numbers(tenant, terms.own), numbers(tenant, (*terms.facts, *terms.parts))
