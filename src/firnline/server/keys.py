"""API keys: their scopes and tenants.

A key is ``fl_<id>_<secret>``. The store has its id and an HMAC of its secret, so a copy of the
store holds no usable key; the secret is shown once. A key belongs to one tenant permanently, and
the tenant of a request comes from its key alone.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from firnline.errors import InputError, StoreCorrupt
from firnline.log import limits
from firnline.log.entry import Card
from firnline.log.message import format_time, parse_time, utc_now
from firnline.log.text import clean_name, clean_text
from firnline.log.wire import parse_unique
from firnline.protocols import Clock
from firnline.server.limits import KEY_CACHE_SECONDS, KEY_NAME_CHARS_MAX, KEYS_CACHED
from firnline.store.cards import KEY, REVOKED, TenantCards

PREFIX: Final = "fl"
SCOPES: Final = ("read", "write", "admin", "metrics")
_INCLUDED: Final = {
    "read": {"read"},
    "write": {"read", "write"},
    "admin": set(SCOPES),
    "metrics": {"metrics"},
}
NO_TENANT: Final = ""  # keys are read before the tenant is known
_ID_BYTES: Final = 8
_SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key without its secret."""

    id: str
    tenant: str
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    digest: str = ""
    person: str | None = None

    def state(self, now: datetime) -> str:
        """``active``, ``expired`` or ``revoked``."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"


@dataclass(frozen=True, slots=True)
class Grant:
    """What a valid key allows: these scopes, on the conversations of this tenant.

    With a `person`, only on that person's.
    """

    id: str
    tenant: str
    scopes: frozenset[str]
    name: str = ""
    person: str | None = None


class Keys:
    """The keys among the cards of no tenant (`NO_TENANT`).

    `secret` is the key of the HMAC; by default, one is created and stored in the store itself.
    """

    def __init__(
        self, cards: TenantCards, *, secret: bytes | None = None, clock: Clock = utc_now
    ) -> None:
        self._cards, self._secret, self._clock = cards, secret, clock
        self._cache: dict[str, tuple[float, ApiKey | None]] = {}

    async def create(
        self,
        tenant: str,
        *,
        name: str = "",
        scopes: Iterable[str] = ("read", "write"),
        expires_in: timedelta | None = None,
        person: str | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key, for all of a tenant or for one person of it.

        Returns it with its token, which is not stored.
        """
        chosen = tuple(scope for scope in SCOPES if scope in set(scopes))
        unknown = set(scopes) - set(SCOPES)
        if unknown or not chosen:
            raise InputError(
                f"scopes: expected {', '.join(SCOPES)}; got {', '.join(scopes) or 'none'}"
            )
        if expires_in is not None and expires_in <= timedelta():
            raise InputError("expires_in: must be positive")
        secret, now = secrets.token_hex(_SECRET_BYTES), self._clock()
        key = ApiKey(
            id=secrets.token_hex(_ID_BYTES),
            tenant=clean_name(tenant, "tenant"),
            name=clean_text(name)[:KEY_NAME_CHARS_MAX],
            scopes=chosen,
            created_at=now,
            expires_at=None if expires_in is None else now + expires_in,
            digest=await self._digest(secret),
            person=None if person is None else clean_name(person, "person"),
        )
        await self._cards.put(_card(key))
        return key, f"{PREFIX}_{key.id}_{secret}"

    async def check(self, token: str) -> Grant | None:
        """The rights of a token, or None if it is not valid."""
        prefix, _, rest = token.partition("_")
        key_id, _, secret = rest.partition("_")
        key = await self._read_cached(key_id) if prefix == PREFIX and key_id and secret else None
        # Compared even without such a key, so that the timing reveals nothing.
        stored = key.digest if key else "0" * 64
        same = hmac.compare_digest(stored, await self._digest(secret))
        if key is None or not same or key.state(self._clock()) != "active":
            return None
        allowed = frozenset[str]().union(*(_INCLUDED[scope] for scope in key.scopes))
        return Grant(key.id, key.tenant, allowed, key.name, key.person)

    async def tenants(self) -> set[str]:
        """The tenants that have a key that is valid now."""
        now = self._clock()
        return {key.tenant for key in await self.all() if key.state(now) == "active"}

    async def all(self, tenant: str | None = None) -> list[ApiKey]:
        """All keys, or those of a tenant, including revoked ones; oldest first."""
        found: list[ApiKey] = []
        after = ""
        while page := await self._cards.find(KEY, after=after, limit=limits.PAGE_MAX):
            found += await self._read(page)
            after = page[-1].name
        chosen = [key for key in found if tenant is None or key.tenant == tenant]
        return sorted(chosen, key=lambda key: (key.created_at, key.id))

    async def revoke(self, key_id: str) -> ApiKey:
        """Revoke a key; it stays in the list."""
        key = await self._key(key_id)
        if key.revoked_at is None:
            key = replace(key, revoked_at=self._clock())
            # A separate mark: a concurrent rotation may write the old state of the key.
            mark = replace(_card(key), kind=REVOKED)
            await self._save(key, mark)
        return key

    async def rotate(self, key_id: str, *, overlap: timedelta) -> tuple[ApiKey, str]:
        """Create a key with the same rights; the old one stays valid for up to `overlap`."""
        old, now = await self._key(key_id), self._clock()
        if old.state(now) != "active":
            raise InputError(f"key {key_id} is {old.state(now)}; create a new one")
        left = None if old.expires_at is None else old.expires_at - now
        made = await self.create(
            old.tenant, name=old.name, scopes=old.scopes, expires_in=left, person=old.person
        )
        ends = now + max(overlap, timedelta())
        await self._save(replace(old, expires_at=min(ends, old.expires_at or ends)))
        return made

    async def _key(self, key_id: str) -> ApiKey:
        found = await self._cards.find(KEY, names=[key_id])
        if not found:
            raise InputError(f"there is no key {key_id!r}; run `firnline keys list`")
        return (await self._read(found))[0]

    async def _save(self, key: ApiKey, *more: Card) -> None:
        await self._cards.put(_card(key), *more)
        self._cache.pop(key.id, None)

    async def _read(self, cards: Sequence[Card]) -> list[ApiKey]:
        """The keys in cards; a revocation mark overrides the card of the key."""
        names = [card.name for card in cards]
        marks = await self._cards.find(REVOKED, names=names, limit=len(names))
        ended = {key.id: key.revoked_at for key in map(_from_card, marks)}
        keys = map(_from_card, cards)
        return [replace(key, revoked_at=key.revoked_at or ended.get(key.id)) for key in keys]

    async def _read_cached(self, key_id: str) -> ApiKey | None:
        """The key, cached for a second."""
        now = time.monotonic()
        cached = self._cache.get(key_id)
        if cached is not None and now - cached[0] < KEY_CACHE_SECONDS:
            return cached[1]
        if len(key_id) != 2 * _ID_BYTES:
            return None
        found = await self._cards.find(KEY, names=[key_id])
        key = (await self._read(found))[0] if found else None
        if len(self._cache) >= KEYS_CACHED:
            self._cache.clear()
        self._cache[key_id] = (now, key)
        return key

    async def _digest(self, secret: str) -> str:
        if self._secret is None:
            made = Card(tenant=NO_TENANT, kind="secret", name=KEY, body=secrets.token_bytes(32))
            await self._cards.put(made, absent=True)
            found = await self._cards.find("secret", names=[KEY])
            self._secret = found[0].body
        return hmac.new(self._secret, secret.encode(errors="replace"), hashlib.sha256).hexdigest()


# -- cards ------------------------------------------------------------------------------------

_TIMES: Final = ("created_at", "expires_at", "revoked_at")


def _card(key: ApiKey) -> Card:
    fields: dict[str, Any] = asdict(key)
    fields |= {name: fields[name] and format_time(fields[name]) for name in _TIMES}
    return Card(tenant=NO_TENANT, kind=KEY, name=key.id, body=json.dumps(fields).encode())


def _from_card(card: Card) -> ApiKey:
    try:
        fields = parse_unique(card.body)
        fields |= {name: fields[name] and parse_time(fields[name]) for name in _TIMES}
        return ApiKey(**{**fields, "scopes": tuple(fields["scopes"])})
    except (ValueError, KeyError, TypeError) as error:
        raise StoreCorrupt(f"key {card.name} cannot be read") from error
