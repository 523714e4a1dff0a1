"""Digest encoding and the rules of the version chain, shared by all backends."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from datetime import datetime
from typing import Final

from firnline.errors import ConflictError, InputError, StoreCorrupt
from firnline.log import limits
from firnline.log.entry import Digest, Lease
from firnline.log.message import encode_json, format_time, parse_time
from firnline.log.text import clean_fields
from firnline.store.seals import Seal, mark_of


def encode_digest(digest: Digest) -> bytes:
    """The digest's canonical form."""
    fields = asdict(digest)
    if digest.created_at is not None:
        fields["created_at"] = format_time(digest.created_at)
    return encode_json(clean_fields(fields, "digest")).encode()


def decode_digest(body: bytes, checksum: bytes | None = None) -> Digest:
    """The inverse of `encode_digest`; damage raises `StoreCorrupt`.

    Fields added after it was stored get their defaults.
    """
    if checksum is not None and checksum_of(body) != checksum:
        raise StoreCorrupt("a digest does not match its checksum")
    try:
        fields = json.loads(body)
        created_at = fields["created_at"]
        if created_at is not None:
            fields["created_at"] = parse_time(created_at)
        for name in ("beside", "parts"):
            fields[name] = _versions(fields.get(name, []))
        return Digest(**fields)
    except (ValueError, KeyError, TypeError, InputError) as error:
        raise StoreCorrupt("the stored value is not a digest") from error


def digest_created_at(body: bytes) -> datetime | None:
    """When a digest was begun; None if it cannot be read."""
    try:
        return decode_digest(body).created_at
    except StoreCorrupt:
        return None


def _versions(listed: object) -> tuple[int, ...]:
    if not isinstance(listed, list) or any(type(version) is not int for version in listed):
        raise TypeError("expected a list of versions")
    return tuple(listed)


def checksum_of(body: bytes) -> bytes:
    """The checksum of stored bytes, verified on every read; of no bytes, there is none."""
    return hashlib.sha256(body).digest() if isinstance(body, bytes) else b""


# -- the rules of the version chain, the same for every backend --------------------------------


def next_version(newest: Digest | None, last: int, digest: Digest, now: datetime) -> Digest:
    """The digest as it is begun: with status processing and version `last` + 1.

    `last` is the highest version of any status. The base must be the `newest` completed one.
    """
    _check_base(digest, newest)
    if not 0 <= digest.first_seq <= digest.last_seq + 1:  # facts from the application cover none
        raise InputError(f"a digest cannot cover messages {digest.first_seq} to {digest.last_seq}")
    return replace(digest, version=last + 1, status="processing", created_at=now)


def _check_base(digest: Digest, newest: Digest | None) -> None:
    actual = newest.version if newest else None
    if digest.base != actual:
        raise ConflictError(
            f"the digest is based on digest {digest.base}, but the newest one is digest {actual}",
            expected_base=digest.base,
            actual_base=actual,
        )


def newest_seal(newest: Digest | None, checksum: bytes) -> Seal:
    """What the seal of the newest completed digest should be; `checksum` is its row's."""
    if newest is None:
        return Seal(0, 0)
    topic = -1 if newest.topic is None else newest.topic
    return Seal(newest.version, mark_of(newest.version, topic, checksum))


def fail_abandoned(digest: Digest) -> Digest:
    """A digest that was processing when its lease was taken over becomes failed."""
    if digest.status != "processing":
        return digest
    return replace(digest, status="failed", error="its worker stopped or lost the lease")


def damaged_digest(version: int) -> Digest:
    """The failed digest that replaces one that can no longer be read."""
    return Digest(version=version, first_seq=0, last_seq=0, status="failed", error="it was damaged")


def check_lease_seconds(seconds: float) -> None:
    """Raise `InputError` unless a lease may last this long without renewal."""
    if not 0 < seconds <= limits.LEASE_SECONDS_MAX:
        raise InputError(
            f"lease: {seconds} s; must be more than 0 and at most {limits.LEASE_SECONDS_MAX} s"
        )


LEASE_MAX: Final = int(limits.LEASE_SECONDS_MAX * 1e6)
"""Microseconds; a stored lease that ends later has expired: the clock was wrong."""
POSTPONE_MAX: Final = int(limits.POSTPONE_SECONDS_MAX * 1e6)
"""Microseconds; work that is due later is due now, for the same reason."""


def is_leased(until: int | None, now: int) -> bool:
    """Whether a lease is held; times in microseconds."""
    return until is not None and now < until <= now + LEASE_MAX


def check_finish(stored: Digest | None, digest: Digest, newest: Digest | None) -> None:
    """Raise unless the digest can be finished: once, by its own lease, as completed or failed.

    If its base has been undone since it was begun, it can only fail.
    """
    if stored is None or stored.status != "processing":
        raise ConflictError(f"digest {digest.version} is no longer being processed")
    if digest.status not in ("completed", "failed"):
        raise InputError(f"a finished digest must be completed or failed, not {digest.status!r}")
    if digest.status == "completed" and not digest.text.strip():
        raise InputError("a completed digest must not be empty; finish it as failed")
    if digest.status == "completed":
        _check_base(digest, newest)


def mark_undone(newest: Digest | None, version: int) -> Digest:
    """The newest completed digest, marked as undone; no other version can be undone."""
    actual = newest.version if newest else None
    if newest is None or actual != version:
        raise ConflictError(
            f"digest {version} cannot be undone: the newest completed one is {actual}",
            expected_version=version,
            actual_version=actual,
        )
    return replace(newest, status="undone")


def lease_lost(lease: Lease) -> ConflictError:
    """The error for a lease that was taken over or released."""
    return ConflictError(
        f"the lease on {lease.key.conversation} (fence {lease.fence}) was taken over or released",
        fence=lease.fence,
    )
