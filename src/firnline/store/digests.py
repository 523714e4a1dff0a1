"""Digests as bytes, and the rules of their version chain: the same for every backend."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from datetime import datetime

from firnline.errors import ConflictError, InputError, StoreCorrupt
from firnline.log import limits
from firnline.log.entry import Digest, Lease
from firnline.log.message import encode_json, format_time, parse_time
from firnline.log.text import clean_fields


def encode_digest(digest: Digest) -> bytes:
    """The digest's canonical form."""
    fields = asdict(digest)
    if digest.created_at is not None:
        fields["created_at"] = format_time(digest.created_at)
    return encode_json(clean_fields(fields, "digest")).encode()


def decode_digest(body: bytes, checksum: bytes | None = None) -> Digest:
    """The inverse of `encode_digest`; damage raises `StoreCorrupt`.

    Fields that were unknown when it was stored have their defaults.
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
        raise StoreCorrupt("what is stored is not a digest") from error


def digest_created_at(body: bytes) -> datetime | None:
    """When a digest was begun; unknown if it cannot be read, which is not told here."""
    try:
        return decode_digest(body).created_at
    except StoreCorrupt:
        return None


def _versions(listed: object) -> tuple[int, ...]:
    if not isinstance(listed, list) or any(type(version) is not int for version in listed):
        raise TypeError("not a list of versions")
    return tuple(listed)


def checksum_of(body: bytes) -> bytes:
    """What a digest's bytes are checked against when they are read."""
    return hashlib.sha256(body).digest()


# -- the rules of the version chain, the same for every backend --------------------------------


def next_version(newest: Digest | None, last: int, digest: Digest, now: datetime) -> Digest:
    """The digest as it is begun: processing, and behind `last`, the last version of any status.

    It must continue `newest`, the newest completed one.
    """
    _check_base(digest, newest)
    if not 0 <= digest.first_seq <= digest.last_seq + 1:  # what the application knows covers none
        raise InputError(f"a digest over entries {digest.first_seq} to {digest.last_seq}")
    return replace(digest, version=last + 1, status="processing", created_at=now)


def _check_base(digest: Digest, newest: Digest | None) -> None:
    actual = newest.version if newest else None
    if digest.base != actual:
        raise ConflictError(
            f"the digest continues version {digest.base}, but {actual} is the newest completed one",
            expected_base=digest.base,
            actual_base=actual,
        )


def fail_abandoned(digest: Digest) -> Digest:
    """A digest that was in the making when its lease was taken over has failed."""
    if digest.status != "processing":
        return digest
    return replace(digest, status="failed", error="its worker did not come back")


def damaged_digest(version: int) -> Digest:
    """What stands for a digest of which nothing can be read any more."""
    return Digest(version=version, first_seq=0, last_seq=0, status="failed", error="it was damaged")


def check_lease_seconds(seconds: float) -> None:
    """How long a lease may be held without being renewed."""
    if not 0 < seconds <= limits.LEASE_SECONDS_MAX:
        raise InputError(
            f"a lease of {seconds} s; more than 0 and up to {limits.LEASE_SECONDS_MAX}"
        )


def check_finish(stored: Digest | None, digest: Digest, newest: Digest | None) -> None:
    """A digest can be finished once, by whoever began it, into completed or failed.

    What it continues may have been undone since it was begun; then it can only fail.
    """
    if stored is None or stored.status != "processing":
        raise ConflictError(f"digest {digest.version} is no longer being processed")
    if digest.status not in ("completed", "failed"):
        raise InputError(f"a digest is finished as completed or failed, not {digest.status!r}")
    if digest.status == "completed" and not digest.text.strip():
        raise InputError("an empty digest is not stored; fail it instead")
    if digest.status == "completed":
        _check_base(digest, newest)


def mark_undone(newest: Digest | None, version: int) -> Digest:
    """The newest completed digest as it is undone; no other version can be."""
    actual = newest.version if newest else None
    if newest is None or actual != version:
        raise ConflictError(
            f"digest {version} cannot be undone: {actual} is the newest completed one",
            expected_version=version,
            actual_version=actual,
        )
    return replace(newest, status="undone")


def lease_lost(lease: Lease) -> ConflictError:
    """The error for a lease that is not the newest one any more."""
    return ConflictError(
        f"the lease on {lease.key.conversation} (fence {lease.fence}) was taken over or released",
        fence=lease.fence,
    )
