"""Digests as bytes: one encoding for every backend, with a checksum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime

from firnline import limits
from firnline.errors import ConflictError, InputError, StoreCorrupt
from firnline.log import Digest, Lease
from firnline.message import encode_json, format_time, parse_time
from firnline.text import clean_fields


def encode_digest(digest: Digest) -> bytes:
    """The digest's canonical form."""
    fields = asdict(digest)
    if digest.created_at is not None:
        fields["created_at"] = format_time(digest.created_at)
    return encode_json(clean_fields(fields, "digest")).encode()


def decode_digest(body: bytes, checksum: bytes | None = None) -> Digest:
    """The inverse of `encode_digest`; damage raises `StoreCorrupt`."""
    if checksum is not None and checksum_of(body) != checksum:
        raise StoreCorrupt("a digest does not match its checksum")
    try:
        fields = json.loads(body)
        created_at = fields["created_at"]
        if created_at is not None:
            fields["created_at"] = parse_time(created_at)
        return Digest(**fields)
    except (ValueError, KeyError, TypeError, InputError) as error:
        raise StoreCorrupt("what is stored is not a digest") from error


def checksum_of(body: bytes) -> bytes:
    """What a digest's bytes are checked against when they are read."""
    return hashlib.sha256(body).digest()


# -- the rules of the version chain, the same for every backend --------------------------------


def next_version(existing: Sequence[Digest], digest: Digest, now: datetime) -> Digest:
    """The digest as it is begun: the next version, processing; its base must be the newest."""
    completed = [item.version for item in existing if item.status == "completed"]
    newest = completed[-1] if completed else None
    if digest.base != newest:
        raise ConflictError(
            f"the digest continues version {digest.base}, but {newest} is the newest completed one",
            expected_base=digest.base,
            actual_base=newest,
        )
    if not 0 <= digest.first_seq <= digest.last_seq:
        raise InputError(f"a digest over entries {digest.first_seq} to {digest.last_seq}")
    version = existing[-1].version + 1 if existing else 1
    return replace(digest, version=version, status="processing", created_at=now)


def abandoned(digest: Digest) -> Digest:
    """A digest that was in the making when its lease was taken over has failed."""
    if digest.status != "processing":
        return digest
    return replace(digest, status="failed", error="its worker did not come back")


def check_seconds(seconds: float) -> None:
    """How long a lease may be held without being renewed."""
    if not 0 < seconds <= limits.LEASE_SECONDS_MAX:
        raise InputError(
            f"a lease of {seconds} s; more than 0 and up to {limits.LEASE_SECONDS_MAX}"
        )


def check_finish(stored: Digest | None, digest: Digest) -> None:
    """A digest can be finished once, by whoever began it, into completed or failed."""
    if stored is None or stored.status != "processing":
        raise ConflictError(f"digest {digest.version} is no longer being processed")
    if digest.status not in ("completed", "failed"):
        raise InputError(f"a digest is finished as completed or failed, not {digest.status!r}")
    if digest.status == "completed" and not digest.text.strip():
        raise InputError("an empty digest is not stored; fail it instead")


def overtaken(lease: Lease) -> ConflictError:
    """The error for a lease that is not the newest one any more."""
    return ConflictError(
        f"the lease on {lease.key.conversation} (fence {lease.fence}) was taken over or released",
        fence=lease.fence,
    )
