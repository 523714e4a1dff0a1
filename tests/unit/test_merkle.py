"""Trees of logs: every proof holds, and no other one does."""

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from firnline.engine.signer import Signer, new_key
from firnline.errors import InputError
from firnline.log.entry import next_hash
from firnline.log.merkle import (
    EMPTY,
    TILE,
    Blocks,
    Frontier,
    complete,
    folded,
    growth_path,
    hashes_of,
    inclusion_path,
    paired,
)
from firnline.log.proof_check import (
    INCLUSION,
    Checkpoint,
    ProofError,
    check_growth,
    check_proof,
    check_signature,
    included_root,
    is_signed,
    leaf_hash,
    node_hash,
    parse_note,
    public_key,
)

pytestmark = pytest.mark.promise("proof-for-strangers")
SIZE = 70


def _tree(leaves):
    """The definition in RFC 6962."""
    if len(leaves) < 2:
        return leaves[0] if leaves else EMPTY
    left = 1 << (len(leaves) - 1).bit_length() - 1
    return node_hash(_tree(leaves[:left]), _tree(leaves[left:]))


def _leaves(size, salt=""):
    return [leaf_hash(f"sha256:{salt}{n}") for n in range(size)]


def _hash_of(leaves):
    return lambda part: paired(leaves[part.place << part.level : part.place + 1 << part.level])


def test_roots_are_those_of_the_definition():
    leaves, frontier = _leaves(SIZE), Frontier()
    for size in range(SIZE + 1):
        root = _tree(leaves[:size])
        assert folded([_hash_of(leaves)(part) for part in complete(0, size)]) == root
        assert frontier.root() == root
        frontier.add(leaves[size % SIZE])


@given(st.integers(1, SIZE), st.data())
def test_an_inclusion_proof_holds_at_its_place_only(size, data):
    leaves = _leaves(SIZE)
    index = data.draw(st.integers(0, size - 1))
    path = hashes_of(inclusion_path(index, size), _hash_of(leaves))
    root = _tree(leaves[:size])
    assert included_root(leaves[index], index, size, path) == root
    other = data.draw(st.integers(0, SIZE))
    if other != index:
        assert not _holds(leaves[index], other, size, path, root)
    assert not _holds(leaf_hash("forged"), index, size, path, root)
    assert not _holds(leaves[index], index, size, [*path, EMPTY], root)
    assert not path or not _holds(leaves[index], index, size, path[:-1], root)


def _holds(leaf, index, size, path, root):
    try:
        return included_root(leaf, index, size, path) == root
    except ProofError:
        return False


@given(st.integers(0, SIZE), st.data())
def test_a_rewritten_log_does_not_continue_an_older_checkpoint(size, data):
    leaves = _leaves(size)
    old = data.draw(st.integers(0, size))
    older = Checkpoint("log", old, _tree(leaves[:old]))
    path = hashes_of(growth_path(old, size), _hash_of(leaves))
    check_growth(older, Checkpoint("log", size, _tree(leaves)), path)
    if not old:
        return
    leaves[data.draw(st.integers(0, old - 1))] = leaf_hash("rewritten")
    forged = Checkpoint("log", size, _tree(leaves))
    for tried in (path, hashes_of(growth_path(old, size), _hash_of(leaves)), []):
        with pytest.raises(ProofError):
            check_growth(older, forged, tried)
    with pytest.raises(ProofError):
        check_growth(older, Checkpoint("log", old - 1, _tree(leaves[: old - 1])), [])


@given(st.binary(max_size=200), st.integers(0, 511))
def test_signatures_are_checked_as_by_a_library(message, bit):
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    public, signature = key.public_key().public_bytes_raw(), key.sign(message)
    assert is_signed(public, message, signature)
    assert not is_signed(public, message + b"!", signature)
    changed = bytearray(signature)
    changed[bit // 8] ^= 1 << bit % 8
    assert not is_signed(public, message, bytes(changed))


def test_a_signature_has_one_form_only():
    """Otherwise the same signature could be shown as another one."""
    key = Ed25519PrivateKey.generate()
    public, signature = key.public_key().public_bytes_raw(), key.sign(b"m")
    order = 2**252 + 27742317777372353535851937790883648493
    more = int.from_bytes(signature[32:], "little") + order
    assert not is_signed(public, b"m", signature[:32] + more.to_bytes(32, "little"))
    for wrong in (b"", signature[:-1], signature + b"\0", b"\xff" * 64):
        assert not is_signed(public, b"m", wrong)
    assert not is_signed(b"\xff" * 32, b"m", signature)


def test_a_note_is_read_in_its_only_form():
    signer = Signer.of(new_key("example.com/log"))
    signed = signer.sign(Checkpoint("firnline/a/b", 7, leaf_hash("x")))
    assert parse_note(signed.note) == signed
    check_signature(signed, signer.public)
    note = signed.note
    for wrong in ("", note[:-1], note + "\n", note.replace("\n7\n", "\n07\n"), "\n" + note):
        with pytest.raises(ProofError):
            parse_note(wrong)
    with pytest.raises(ProofError, match="is wrong"):
        check_signature(signed._replace(size=8), signer.public)
    with pytest.raises(ProofError, match="not signed by"):
        check_signature(signed, Signer.of(new_key("example.com/other")).public)


def test_keys_are_written_as_those_of_signed_notes():
    """An example of golang.org/x/mod/sumdb/note."""
    shown = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    assert public_key(shown)[0] == "PeterNeumann"
    note = (
        "If you think cryptography is the answer to your problem,\n"
        "then you don't know what your problem is.\n"
    )
    signature = base64.b64decode(
        "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
    )
    assert is_signed(public_key(shown)[1], note.encode(), signature[4:])


@pytest.mark.parametrize(
    "wrong", ["", "x", "PRIVATE+KEY+a+00000000+AQ==", "PRIVATE+KEY+a+00000000+" + "A" * 44]
)
def test_what_is_no_key_is_an_error(wrong):
    with pytest.raises(InputError, match="not a signing key"):
        Signer.of(wrong)
    with pytest.raises(ProofError):
        public_key(wrong)
    with pytest.raises(InputError, match="name"):
        new_key("two words")


MILLION = 1_000_000


def _alike(leaf):
    """The nodes of a tree whose leaves are all this one: a million of them take 20 hashes."""
    levels = [leaf]
    for _ in range(MILLION.bit_length()):
        levels.append(node_hash(levels[-1], levels[-1]))
    return lambda part: levels[part.level]


@pytest.mark.parametrize("index", [0, 255, 256, 524_288, 700_000, MILLION - 1])
def test_the_proof_of_one_message_of_a_million_is_short(index):
    """At most 20 hashes: 2 KB with the checkpoint and its signature, besides the message."""
    body = '{"content":"Order 1138 never arrived.","role":"user"}'
    entry = {"seq": index, "previous": "sha256:" + "0" * 64, "tokens": 7, "tokenizer": "o200k_base"}
    stored = next_hash(entry["previous"], body.encode(), 7, "o200k_base")
    hash_of = _alike(leaf_hash(stored))
    (root,) = hashes_of([complete(0, MILLION)], hash_of)
    path = hashes_of(inclusion_path(index, MILLION), hash_of)
    assert len(path) <= 20
    signer = Signer.of(new_key("example.com/support"))
    proof = {
        "proof": INCLUSION,
        "entry": {**entry, "hash": stored, "body": body},
        "path": [base64.b64encode(node).decode() for node in path],
        "checkpoint": signer.sign(Checkpoint("firnline/default/ticket-42", MILLION, root)).note,
    }
    text = json.dumps(proof, indent=1)
    assert check_proof(text, key=signer.public).seq == index
    assert len(text) - len(body) < 2_000


@pytest.mark.parametrize("older", [1, 256, 524_288, 700_001, MILLION - 1])
def test_the_proof_that_a_log_grew_to_a_million_is_short(older):
    hash_of = _alike(leaf_hash("sha256:0"))
    old, new = hashes_of([complete(0, older), complete(0, MILLION)], hash_of)
    path = hashes_of(growth_path(older, MILLION), hash_of)
    check_growth(Checkpoint("log", older, old), Checkpoint("log", MILLION, new), path)
    assert len(path) <= 21


@given(st.lists(st.integers(0, 700), max_size=4), st.lists(st.integers(0, 300), max_size=4))
def test_blocks_have_the_roots_of_the_definition(sizes, steps):
    leaves = _leaves(sum(steps))
    tree, at = Blocks(sizes), 0
    for step in steps:
        tree.extend(leaves[at : at + step])
        at += step
    assert tree.roots == {n: _tree(leaves[:n]) for n in {0, *sizes} if n <= len(leaves)}
    ends = range(TILE, len(leaves) + 1, TILE)
    assert tree.nodes == [_tree(leaves[end - TILE : end]) for end in ends]
