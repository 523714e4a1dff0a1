"""Keys that sign checkpoints: Ed25519, written as those of signed notes (c2sp.org/signed-note)."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from firnline.engine.limits import SIGNER_NAME_CHARS_MAX
from firnline.errors import InputError
from firnline.log.proof_check import Checkpoint, key_id

_PREFIX: Final = "PRIVATE+KEY+"
_ED25519: Final = b"\x01"


def new_key(name: str) -> str:
    """A new private key with this name, such as ``example.com/support``: keep it secret."""
    if not name.isprintable() or not 0 < len(name) <= SIGNER_NAME_CHARS_MAX or {*" +"} & {*name}:
        raise InputError(
            f"name: 1 to {SIGNER_NAME_CHARS_MAX} printable characters without spaces and plus signs"
        )
    return Signer(name, Ed25519PrivateKey.generate()).private


class Signer:
    """A name and its private key."""

    def __init__(self, name: str, key: Ed25519PrivateKey) -> None:
        self._name, self._key = name, key
        self._public = key.public_key().public_bytes_raw()

    @classmethod
    def of(cls, private: str) -> Signer:
        """The signer of a key that `new_key` returned."""
        name, _, rest = private.strip().removeprefix(_PREFIX).partition("+")
        _, _, encoded = rest.partition("+")
        try:
            kind, seed = base64.b64decode(encoded, validate=True)[:1], base64.b64decode(encoded)[1:]
            signer = cls(name, Ed25519PrivateKey.from_private_bytes(seed))
        except (binascii.Error, ValueError) as error:
            raise InputError("not a signing key: expected PRIVATE+KEY+NAME+ID+BASE64") from error
        if kind != _ED25519 or signer.private != private.strip():
            raise InputError("not a signing key: its parts do not match")
        return signer

    @property
    def private(self) -> str:
        """The private key as text."""
        return _PREFIX + self._text(self._key.private_bytes_raw())

    @property
    def public(self) -> str:
        """The public key as text, by which anybody checks the signatures."""
        return self._text(self._public)

    def sign(self, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint with this signature."""
        signature = key_id(self._name, self._public) + self._key.sign(checkpoint.body.encode())
        return checkpoint._replace(signatures=((self._name, signature),))

    def _text(self, key: bytes) -> str:
        encoded = base64.b64encode(_ED25519 + key).decode()
        return f"{self._name}+{key_id(self._name, self._public).hex()}+{encoded}"
