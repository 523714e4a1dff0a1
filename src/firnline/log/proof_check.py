"""Checks proofs of Firnline with nothing but Python's standard library: this file is all it takes.

    python proof_check.py PROOF [--key KEY] [--checkpoint FILE]

It can be copied out of the package and read in a few minutes, so you need not trust the program
that wrote the log. An inclusion proof shows that a message is at its place in a log of a known
size; a consistency proof shows that a log only grew from an older checkpoint to a newer one.
Checkpoints are signed notes (c2sp.org/tlog-checkpoint, Ed25519), trees are those of RFC 6962.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

INCLUSION = "firnline inclusion proof 1"
CONSISTENCY = "firnline consistency proof 1"
_ED25519 = b"\x01"
_SIGNED = "\u2014 "
_SIZE_MAX = 1 << 62
_PATH_MAX = 64
_DEPTH_MAX = 200
_BYTES_MAX = 64 << 20


class ProofError(ValueError):
    """The proof does not hold, or it is not a proof."""


# -- trees ------------------------------------------------------------------------------------


def leaf_hash(entry_hash: str) -> bytes:
    """The tree's leaf of an entry; the data is the entry's own hash, as text."""
    return hashlib.sha256(b"\x00" + entry_hash.encode()).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of two neighbors in the tree."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def included_root(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """The root of a tree of `size` leaves in which `leaf` is at `index` (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        raise ProofError(f"message {index} is not in a log of {size} messages")
    return _climb(leaf, index, size - 1, path)[1]


def check_growth(old: Checkpoint, new: Checkpoint, path: Sequence[bytes]) -> None:
    """Raise unless the tree of `new` continues the one of `old` (RFC 9162, 2.1.4.2)."""
    if old.size > new.size:
        raise ProofError(f"the log had {old.size} messages and now has {new.size}")
    if old.size in (0, new.size):
        holds = not path and (not old.size or old.root == new.root)
    else:
        whole = (old.size & -old.size).bit_length() - 1  # levels of the last complete subtree
        at, last = old.size - 1 >> whole, new.size - 1 >> whole
        nodes = path if at else (old.root, *path)
        if not nodes:
            raise ProofError("the path is too short")
        holds = _climb(nodes[0], at, last, nodes[1:]) == (old.root, new.root)
    if not holds:
        raise ProofError("the log was rewritten: it does not continue the older checkpoint")


def _climb(start: bytes, at: int, last: int, path: Sequence[bytes]) -> tuple[bytes, bytes]:
    """The roots that a path leads to: of the tree that ends at the start, and of the whole one."""
    ending = whole = start
    for sibling in path:
        if last == 0:
            raise ProofError("the path is too long")
        if at & 1 or at == last:
            ending, whole = node_hash(sibling, ending), node_hash(sibling, whole)
            while at and not at & 1:
                at, last = at >> 1, last >> 1
        else:
            whole = node_hash(whole, sibling)
        at, last = at >> 1, last >> 1
    if last:
        raise ProofError("the path is too short")
    return ending, whole


# -- checkpoints ------------------------------------------------------------------------------


class Checkpoint(NamedTuple):
    """The state of a log at a size; `signatures` are pairs of a key's name and its signature."""

    origin: str
    size: int
    root: bytes
    signatures: tuple[tuple[str, bytes], ...] = ()

    @property
    def body(self) -> str:
        """The signed text."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"

    @property
    def note(self) -> str:
        """The checkpoint as a signed note."""
        lines = (f"{_SIGNED}{n} {base64.b64encode(s).decode()}\n" for n, s in self.signatures)
        return f"{self.body}\n{''.join(lines)}"


def parse_note(text: str) -> Checkpoint:
    """Parse a checkpoint; raises `ProofError` if it is not exactly one."""
    if not isinstance(text, str) or not _is_unicode(text):
        raise ProofError("not a checkpoint: it is not a text")
    body, blank, signed = text.partition("\n\n")
    lines = body.split("\n")
    if not blank or len(lines) != 3 or not lines[0]:  # noqa: PLR2004 - origin, size, root
        raise ProofError("not a checkpoint: expected an origin, a size, a hash and an empty line")
    if not _is_size(lines[1]):
        raise ProofError("not a checkpoint: the size is not a number")
    root = _bytes(lines[2], hashlib.sha256().digest_size)
    signatures = []
    for line in signed.splitlines():
        name, _, signature = line.removeprefix(_SIGNED).rpartition(" ")
        if not line.startswith(_SIGNED) or not name:
            raise ProofError("not a checkpoint: a signature is not readable")
        signatures.append((name, _bytes(signature)))
    found = Checkpoint(lines[0], int(lines[1]), root, tuple(signatures))
    if found.note != text:
        raise ProofError("not a checkpoint: it is not written in its only form")
    return found


def key_id(name: str, public: bytes) -> bytes:
    """The four bytes by which signatures name their key."""
    return hashlib.sha256(name.encode() + b"\n" + _ED25519 + public).digest()[:4]


def public_key(text: str) -> tuple[str, bytes]:
    """The name and the 32 bytes of a key written as ``NAME+ID+BASE64``."""
    name, _, rest = text.strip().partition("+")
    stated, _, encoded = rest.partition("+")
    key = _bytes(encoded, 33)
    if (
        not _is_unicode(name)
        or key[:1] != _ED25519
        or not name
        or key_id(name, key[1:]).hex() != stated
    ):
        raise ProofError("not a public key: expected NAME+ID+BASE64, as `firnline` printed it")
    return name, key[1:]


def check_signature(checkpoint: Checkpoint, key: str) -> None:
    """Raise unless the checkpoint is signed with this public key."""
    name, public = public_key(key)
    for signer, signature in checkpoint.signatures:
        if signer == name and signature[:4] == key_id(name, public):
            if not is_signed(public, checkpoint.body.encode(), signature[4:]):
                raise ProofError(f"the signature of {name} is wrong")
            return
    raise ProofError(f"the checkpoint is not signed by {name}")


# -- proofs -----------------------------------------------------------------------------------


class Checked(NamedTuple):
    """What a proof shows."""

    checkpoint: Checkpoint
    seq: int | None = None
    message: Any = None
    older: Checkpoint | None = None

    def __str__(self) -> str:
        log = f"{visible(self.checkpoint.origin)}, {self.checkpoint.size:,} messages"
        if self.older is not None:
            return f"holds: the log only grew: {self.older.size:,} -> {log}"
        if self.message is None:
            return f"holds: message {self.seq} of {log}, without its text"
        text = visible(json.dumps(self.message, ensure_ascii=False))
        return f"holds: message {self.seq} of {log}\n{text}"


def check_proof(text: str, *, key: str | None = None, known: Checkpoint | None = None) -> Checked:
    """Check a proof; raises `ProofError` if it does not hold.

    `key` is the public key that must have signed the checkpoint; `known` is a checkpoint that you
    have from elsewhere, from which a consistency proof must start, or at which an inclusion
    proof must end.
    """
    kinds = {INCLUSION: _check_inclusion, CONSISTENCY: _check_consistency}
    proof = _object(text, "the proof")
    kind = proof.get("proof")
    if not isinstance(kind, str) or kind not in kinds:
        raise ProofError("not a proof of Firnline")
    checked = kinds[kind](proof, known)
    if key is not None:
        check_signature(checked.checkpoint, key)
        if checked.older is not None and known is None:
            check_signature(checked.older, key)
    return checked


def _check_inclusion(proof: Mapping[str, Any], known: Checkpoint | None) -> Checked:
    checkpoint, entry = parse_note(_text(proof, "checkpoint")), proof.get("entry")
    if known is not None and checkpoint.body != known.body:
        raise ProofError("the proof is for another checkpoint than the one you know")
    if not isinstance(entry, dict):
        raise ProofError("the proof is incomplete: it names no message")
    stored, message = _text(entry, "hash"), None
    if "body" in entry:
        body, tokens = _text(entry, "body"), _number(entry, "tokens")
        previous, tokenizer = _text(entry, "previous"), _text(entry, "tokenizer")
        start = f"{previous} {tokens} {tokenizer} "
        if " " in previous + tokenizer:  # a part of the message could be passed off as them
            raise ProofError("the message is not separated from what is hashed with it")
        if "sha256:" + hashlib.sha256((start + body).encode()).hexdigest() != stored:
            raise ProofError("the message does not match its hash")
        message = _object(body, "the message")
    seq, path = _number(entry, "seq"), _path(proof)
    if included_root(leaf_hash(stored), seq, checkpoint.size, path) != checkpoint.root:
        raise ProofError("the message is not in the log of the checkpoint")
    return Checked(checkpoint, seq, message)


def _check_consistency(proof: Mapping[str, Any], known: Checkpoint | None) -> Checked:
    old, new = parse_note(_text(proof, "older")), parse_note(_text(proof, "checkpoint"))
    if known is not None and known.body != old.body:
        raise ProofError("the proof starts at another checkpoint than the one you know")
    if old.origin != new.origin:
        raise ProofError(f"two logs: {old.origin!r} and {new.origin!r}")
    check_growth(old, new, _path(proof))
    return Checked(new, older=old)


# -- reading what anyone can have written ---------------------------------------------------------


def visible(text: str) -> str:
    """Text for a terminal: what would control it, or change how it is read, is escaped."""
    return "".join(
        c if c.isprintable() else f"\\u{ord(c):04x}" if c < "\U00010000" else f"\\U{ord(c):08x}"
        for c in text
    )


def _object(text: str, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise ProofError(f"{what} is not JSON") from error
    if not isinstance(found, dict):
        raise ProofError(f"{what} is not a JSON object")
    level: list[Any] = [found]
    for _ in range(_DEPTH_MAX):
        inner = [one.values() if isinstance(one, dict) else one for one in level]
        level = [part for one in inner for part in one if isinstance(part, (dict, list))]
    if level:  # Python could not write it out
        raise ProofError(f"{what} is nested more than {_DEPTH_MAX} deep")
    return found


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not _is_unicode(value):
        raise ProofError(f"the proof is incomplete: {name} is not a text")
    return value


def _number(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name)
    if type(value) is not int or not 0 <= value < _SIZE_MAX:
        raise ProofError(f"the proof is incomplete: {name} is not a number of messages or tokens")
    return value


def _path(proof: Mapping[str, Any]) -> list[bytes]:
    path = proof.get("path")
    if not isinstance(path, list) or len(path) > _PATH_MAX:
        raise ProofError(f"the path is not a list of at most {_PATH_MAX} hashes")
    return [_bytes(node, 32) for node in path]


def _bytes(text: object, size: int | None = None) -> bytes:
    if not isinstance(text, str):
        raise ProofError("a hash is not a text")
    try:
        found = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ProofError(f"{text[:80]!a} is not base64") from error
    if size is not None and len(found) != size:
        raise ProofError(f"{text[:80]!a}: expected {size} bytes, got {len(found)}")
    return found


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)


def _is_size(text: str) -> bool:
    plain = text.isascii() and text.isdecimal() and len(text) < 20  # noqa: PLR2004
    return plain and str(int(text)) == text


# -- Ed25519 (RFC 8032), checking only -----------------------------------------------------------

_P = 2**255 - 19
_Q = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)
_Point = tuple[int, int, int, int]
_ZERO: _Point = (0, 1, 1, 0)


def is_signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether this is an Ed25519 signature of the message."""
    if len(signature) != 64 or len(public) != 32:  # noqa: PLR2004
        return False
    point, commitment = _point(public), _point(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if point is None or commitment is None or scalar >= _Q:
        return False
    digest = hashlib.sha512(signature[:32] + public + message).digest()
    challenge = int.from_bytes(digest, "little") % _Q
    negative = (_P - point[0], point[1], 1, _P - point[3])
    x, y, z, _ = _sum_of_products(scalar, challenge, negative)
    return (x - commitment[0] * z) % _P == 0 and (y - commitment[1] * z) % _P == 0


def _sum_of_products(scalar: int, other: int, point: _Point) -> _Point:
    """`scalar` times the base point plus `other` times `point`, bit by bit together."""
    both = _add(_BASE, point)
    total = _ZERO
    for bit in range(max(scalar.bit_length(), other.bit_length()) - 1, -1, -1):
        total = _add(total, total)
        choice = (scalar >> bit & 1, other >> bit & 1)
        if choice != (0, 0):
            total = _add(total, both if choice == (1, 1) else _BASE if choice[0] else point)
    return total


def _add(left: _Point, right: _Point) -> _Point:
    a = (left[1] - left[0]) * (right[1] - right[0]) % _P
    b = (left[1] + left[0]) * (right[1] + right[0]) % _P
    c = 2 * left[3] * right[3] * _D % _P
    d = 2 * left[2] * right[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _point(encoded: bytes) -> _Point | None:
    """The point of 32 bytes, or None if there is no such point."""
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT % _P
    if (x * x - square) % _P or (not x and sign):
        return None
    if x & 1 != sign:
        x = _P - x
    return x, y, 1, x * y % _P


_BASE_Y = 4 * pow(5, -1, _P) % _P
_BASE: _Point = _point(_BASE_Y.to_bytes(32, "little")) or _ZERO


# -- the program ------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Check one proof; returns 0 if it holds, else 1."""
    parser = argparse.ArgumentParser(description="Check a proof of Firnline.")
    parser.add_argument("proof", type=_read, help="the file with the proof")
    parser.add_argument("--key", help="the public key that must have signed: NAME+ID+BASE64")
    parser.add_argument(
        "--checkpoint", type=_read, help="the file with a checkpoint that you have from elsewhere"
    )
    options = parser.parse_args(arguments)
    try:
        known = None if options.checkpoint is None else parse_note(options.checkpoint)
        found = str(check_proof(options.proof, key=options.key, known=known))
    except ProofError as error:
        _print(visible(f"does not hold: {error}"))
        return 1
    _print(found)
    if options.key is None and known is None:
        _print("checked without a key and a known checkpoint: anyone can have made it")
    return 0


def _print(text: str) -> None:
    encoding = sys.stdout.encoding or "ascii"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def _read(name: str) -> str:
    try:
        with Path(name).open("rb") as file:
            return file.read(_BYTES_MAX).decode()
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"cannot read {name}: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
