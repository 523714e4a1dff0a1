"""The commands of proofs: checkpoint, prove, check-proof, and signing-key."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from firnline.cli.arguments import Command, count
from firnline.cli.open import needs_extra, open_memory
from firnline.cli.terminal import plain
from firnline.engine.prover import ORIGIN
from firnline.errors import InputError
from firnline.log.proof_check import ProofError, check_proof, parse_note
from firnline.store.files import source_path
from firnline.sync import Memory

_BYTES_MAX: Final = 64 << 20
_KEY_MODE: Final = 0o600


def _checkpoint(options: argparse.Namespace) -> None:
    with _signing_memory(options) as memory:
        print(memory.checkpoint(options.conversation), end="")


def _prove(options: argparse.Namespace) -> None:
    if (options.seq is None) == (options.since is None):
        raise InputError("name a message, or use --since with an older checkpoint")
    with _signing_memory(options) as memory:
        if options.since is None:
            proof = memory.prove(options.conversation, options.seq)
        else:
            proof = memory.prove_growth(options.conversation, _text(options.since))
    print(proof, end="")


def _check_proof(options: argparse.Namespace) -> int:
    try:
        known = parse_note(_text(options.checkpoint)) if options.checkpoint else None
        checked = check_proof(_text(options.proof), key=options.key, known=known)
    except ProofError as error:
        print(plain(f"does not hold: {error}"))
        return 1
    print(plain(str(checked)))
    if options.key is None and known is None:
        print("checked without --key and --checkpoint: anyone can have made it", file=sys.stderr)
    return 0


def _signing_key(options: argparse.Namespace) -> None:
    with needs_extra("signing", "proof"):
        from firnline.engine.signer import Signer, new_key  # noqa: PLC0415 - an optional extra
    path, key = Path(options.file), new_key(options.name)
    try:
        path.touch(_KEY_MODE, exist_ok=False)
        path.write_text(key + "\n", encoding="utf-8")
    except FileExistsError as error:
        raise InputError(f"{path} exists; a key is never replaced") from error
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    print(Signer.of(key).public)
    print(
        f"{path} holds the private key: keep it secret, and publish the line above", file=sys.stderr
    )


def _signing_memory(options: argparse.Namespace) -> Memory:
    key = _text(options.sign_with) if options.sign_with else None
    return open_memory(options, signer=key, log_origin=options.origin)


def _text(name: str) -> str:
    path = "standard input" if name == "-" else source_path(name)
    try:
        with sys.stdin.buffer if isinstance(path, str) else path.open("rb") as file:
            return file.read(_BYTES_MAX).decode()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path} is not a text") from error


def add(command: Command) -> None:
    """Add these commands to the parser."""
    checkpoint = command(
        "checkpoint",
        _checkpoint,
        "Print the state of a log as a note: keep it elsewhere, and a rewritten log shows.",
    )
    prove = command(
        "prove", _prove, "Prove that a message is in the log, or that the log only grew."
    )
    for added in (checkpoint, prove):
        added.add_argument("conversation")
        added.add_argument("--sign-with", metavar="FILE", help="a key of `firnline signing-key`")
        added.add_argument(
            "--origin",
            default=ORIGIN,
            help="how the names of logs begin: your URL without its scheme (default: firnline)",
        )
    prove.add_argument("seq", nargs="?", type=count, help="the message to prove")
    prove.add_argument("--since", metavar="FILE", help="prove the growth since this checkpoint")
    check = command("check-proof", _check_proof, "Check a proof, without any store.", store=False)
    check.add_argument("proof", help="the file; - is standard input")
    check.add_argument("--key", help="the public key that must have signed: NAME+ID+BASE64")
    check.add_argument("--checkpoint", metavar="FILE", help="a checkpoint that you have kept")
    key = command("signing-key", _signing_key, "Create a key that signs checkpoints.", store=False)
    key.add_argument("file", help="where to write the private key")
    key.add_argument("--name", required=True, help="whose key it is, such as example.com/support")
    for added in (check, key):
        added.set_defaults(json=False)
