"""Proofs for strangers: what was in a log cannot be denied or rewritten unnoticed."""

import json
from dataclasses import replace
from unittest import mock

import pytest

from firnline import Memory, Message
from firnline.cli import main
from firnline.engine.log_tree import TREE, LogTree
from firnline.engine.signer import Signer, new_key
from firnline.errors import InputError, StoreCorrupt, UnknownConversation
from firnline.log.entry import Card
from firnline.log.proof_check import ProofError, check_proof, parse_note
from firnline.store import open_store
from firnline.transfer.migrate import move

pytestmark = pytest.mark.promise("proof-for-strangers")
KEY = new_key("example.com/support")
PUBLIC = Signer.of(KEY).public


@pytest.fixture
async def signing(url):
    async with Memory.open(url, signer=KEY) as memory:
        yield memory


async def _fill(memory, count, *, start=0):
    texts = (f"message {n} ☃" for n in range(start, start + count))
    await memory.append("c", [Message.user(text) for text in texts])


async def test_every_entry_can_be_proven(signing):
    await _fill(signing, 600)
    noted = parse_note(await signing.checkpoint("c"))
    for seq in (0, 1, 255, 256, 511, 512, 598, 599):
        proof = await signing.prove("c", seq)
        checked = check_proof(proof, key=PUBLIC, known=noted)
        assert (checked.seq, checked.message["content"]) == (seq, f"message {seq} ☃")
        assert len(proof.encode()) < 2_048
    with pytest.raises(InputError, match="no message 600"):
        await signing.prove("c", 600)
    with pytest.raises(UnknownConversation):
        await signing.checkpoint("other")


async def test_growth_can_be_proven(signing):
    notes = []
    for n in range(5):
        await _fill(signing, 130, start=130 * n)
        notes.append(await signing.checkpoint("c"))
    for older in notes:
        proof = await signing.prove_growth("c", older)
        checked = check_proof(proof, key=PUBLIC, known=parse_note(older))
        assert (checked.older.size, checked.checkpoint.size) == (parse_note(older).size, 650)
    with pytest.raises(InputError, match="not a checkpoint"):
        await signing.prove_growth("c", "nonsense")
    with pytest.raises(InputError, match=r"not of firnline/default/d"):
        await signing.append("d", Message.user("a"))
        await signing.prove_growth("d", notes[0])


async def test_a_changed_proof_does_not_hold(signing):
    await _fill(signing, 300)
    proof = json.loads(await signing.prove("c", 40))
    for path, value in (
        (("entry", "seq"), 41),
        (("entry", "tokens"), 1),
        (("entry", "tokens"), "7"),
        (("entry", "body"), proof["entry"]["body"].replace("40", "41")),
        (("entry", "hash"), "sha256:" + "0" * 64),
        (("path",), proof["path"][1:]),
        (("path",), proof["path"][::-1]),
        (("checkpoint",), proof["checkpoint"].replace("\n300\n", "\n301\n")),
        (("checkpoint",), proof["checkpoint"].replace("default", "another")),
    ):
        changed = json.loads(json.dumps(proof))
        place = changed
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value
        with pytest.raises(ProofError):
            check_proof(json.dumps(changed), key=PUBLIC)


async def test_a_replaced_log_does_not_continue_its_checkpoint(signing):
    await _fill(signing, 300)
    noted = await signing.checkpoint("c")
    await signing.erase("c")
    await _fill(signing, 310, start=1)
    assert await signing.verify("c")
    with pytest.raises(StoreCorrupt, match="rewritten"):
        await signing.prove_growth("c", noted)
    with pytest.raises(ProofError, match="another checkpoint"):
        check_proof(await signing.prove("c", 3), key=PUBLIC, known=parse_note(noted))


async def test_erased_messages_are_proven_without_their_text(signing):
    await _fill(signing, 300)
    noted = await signing.checkpoint("c")
    await signing.erase_messages("c", 40)
    checked = check_proof(await signing.prove("c", 40), key=PUBLIC, known=parse_note(noted))
    assert checked.message is None
    assert check_proof(await signing.prove("c", 41), key=PUBLIC).message is not None
    assert "message 40" not in await signing.prove("c", 41)
    assert await signing.verify("c")


async def test_checkpoints_survive_archive_backup_and_migration(signing, url, tmp_path):
    await _fill(signing, 300)
    noted = await signing.checkpoint("c")
    await signing.archive("c", keep=10)
    assert await signing.checkpoint("c") == noted
    await signing.restore("c")
    async with Memory.open(f"sqlite:///{tmp_path / 'moved.db'}", signer=KEY) as moved:
        await move(signing.store, moved.store)
        await _fill(moved, 5)
        assert await moved.verify("c")
        check_proof(await moved.prove_growth("c", noted), key=PUBLIC, known=parse_note(noted))
    if url.startswith("sqlite"):
        await signing.backup(tmp_path / "copy.db")
        async with Memory.open(f"sqlite:///{tmp_path / 'copy.db'}", signer=KEY) as copied:
            assert await copied.checkpoint("c") == noted


async def test_verify_finds_what_the_checkpoint_does_not_match(signing):
    """A store in which the log, its hashes and its head were all written again."""
    await _fill(signing, 20)
    wrong = parse_note(await signing.checkpoint("c"))._replace(root=bytes(32))
    (card,) = await signing.cards.find("checkpoint")
    fields = {"kind": card.kind, "name": card.name, "conversation": "c"}
    await signing.cards.put(Card(tenant="default", body=wrong.note.encode(), **fields))
    found = await signing.verify("c")
    assert "checkpoint of 20 messages" in str(found)
    with pytest.raises(StoreCorrupt, match="rewritten"):
        await signing.checkpoint("c")
    await signing.cards.put(Card(tenant="default", body=b"\xff", **fields))
    assert "is damaged" in str(await signing.verify("c"))


async def test_stored_nodes_are_only_a_view(signing):
    await _fill(signing, 700)
    proof = await signing.prove("c", 3)
    (card,) = await signing.cards.find(TREE)
    assert len(card.body) == 64
    for damaged in (bytes(64), card.body[:40], b""):
        await signing.cards.put(replace(card, body=damaged, updated_at=None))
        assert await signing.prove("c", 3) == proof
        assert check_proof(await signing.prove("c", 600), key=PUBLIC).seq == 600
    await signing.cards.drop(TREE, prefix="")
    assert await signing.prove("c", 3) == proof
    await signing.erase("c")
    assert await signing.cards.find(TREE) == []


async def test_a_message_is_proven_without_reading_the_log_again(signing):
    """By the last signed checkpoint, or by a new one if the message came after it."""
    await _fill(signing, 700)
    noted = await signing.checkpoint("c")
    await _fill(signing, 1, start=700)
    with mock.patch.object(LogTree, "read", side_effect=AssertionError("it was read")):
        for seq in (0, 300, 699):
            checked = check_proof(await signing.prove("c", seq), key=PUBLIC)
            assert (checked.seq, checked.checkpoint.note) == (seq, noted)
    newer = check_proof(await signing.prove("c", 700), key=PUBLIC).checkpoint
    assert newer.size == 701
    assert check_proof(await signing.prove("c", 300), key=PUBLIC).checkpoint == newer


async def test_an_unsigned_checkpoint_is_trusted_by_the_memory_that_made_it(memory):
    await _fill(memory, 300)
    noted = parse_note(await memory.checkpoint("c"))
    await _fill(memory, 1, start=300)
    with mock.patch.object(LogTree, "read", side_effect=AssertionError("it was read")):
        assert check_proof(await memory.prove("c", 3), known=noted).seq == 3
        with pytest.raises(AssertionError, match="it was read"):
            await Memory(memory.store, embedder=None).prove("c", 3)
    await memory.erase("c")
    await _fill(memory, 310, start=1)
    assert check_proof(await memory.prove("c", 3)).message["content"] == "message 4 ☃"


async def test_two_checkpoints_at_the_same_time_leave_the_newer_one(signing):
    await _fill(signing, 10)
    put_cards, first = signing.store.put_cards, True

    async def late(cards, **options):
        nonlocal first
        if first and [card.kind for card in cards] == ["checkpoint"]:
            first = False
            await _fill(signing, 1, start=10)
            assert parse_note(await signing.checkpoint("c")).size == 11
        return await put_cards(cards, **options)

    with mock.patch.object(signing.store, "put_cards", late):
        assert parse_note(await signing.checkpoint("c")).size == 10
    kept = [parse_note(card.body.decode()) for card in await signing.cards.find("checkpoint")]
    assert max(checkpoint.size for checkpoint in kept) == 11
    await signing.checkpoint("c")
    assert len(await signing.cards.find("checkpoint")) == 1


async def test_a_checkpoint_that_came_while_the_log_is_verified_is_no_problem(signing):
    await _fill(signing, 10)
    await signing.checkpoint("c")
    head, first = signing.store.head, True

    async def late(key):
        nonlocal first
        found, was_first, first = await head(key), first, False
        if was_first:
            await _fill(signing, 1, start=10)
            await signing.checkpoint("c")
        return found

    for verb in (signing.verify, signing.checkpoint, lambda name: signing.prove(name, 0)):
        first = True
        with mock.patch.object(signing.store, "head", late):
            assert await verb("c")


async def test_an_unsigned_checkpoint_does_not_replace_a_signed_one(signing, url):
    await _fill(signing, 10)
    noted = await signing.checkpoint("c")
    unsigned = Memory(signing.store, embedder=None)
    assert parse_note(await unsigned.checkpoint("c")).signatures == ()
    assert [card.body.decode() for card in await signing.cards.find("checkpoint")] == [noted]


async def test_what_is_no_older_checkpoint_is_an_error(signing):
    await _fill(signing, 1)
    for older in (None, 5, b"x", ["x"], "\ud800", ""):
        with pytest.raises(InputError, match="older"):
            await signing.prove_growth("c", older)


async def test_logs_of_two_operators_have_different_names(signing):
    await _fill(signing, 3)
    named = Memory(signing.store, signer=KEY, log_origin="example.com/memory/", embedder=None)
    noted = await named.checkpoint("c")
    assert noted.startswith("example.com/memory/default/c\n3\n")
    assert (await signing.checkpoint("c")).startswith("firnline/default/c\n3\n")
    for memory in (named, signing):  # the last checkpoint has one name
        assert check_proof(await memory.prove("c", 0), key=PUBLIC).seq == 0
    with pytest.raises(InputError, match="not of firnline/default/c"):
        await signing.prove_growth("c", noted)
    for wrong in ("", "two words", "https://example.com", "a\nb", "a" * 201, None):
        with pytest.raises(InputError, match="log_origin"):
            Memory(signing.store, log_origin=wrong)


async def test_an_unsigned_checkpoint_is_for_those_who_keep_it(memory):
    await _fill(memory, 3)
    noted = parse_note(await memory.checkpoint("c"))
    assert noted.signatures == ()
    proof = await memory.prove("c", 1)
    assert check_proof(proof, known=noted).seq == 1
    with pytest.raises(ProofError, match="not signed by"):
        check_proof(proof, key=PUBLIC)


def test_the_commands(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = ["--store", "sqlite:///x.db"]
    assert main(["append", "c", "hello", *store]) == 0
    assert main(["signing-key", "key", "--name", "example.com/x"]) == 0
    public = capsys.readouterr().out.splitlines()[-1]
    assert main(["signing-key", "key", "--name", "example.com/x"]) == 2
    assert (tmp_path / "key").stat().st_mode & 0o077 == 0
    capsys.readouterr()
    sign = ["--sign-with", "key", *store]
    assert main(["checkpoint", "c", *sign]) == 0
    (tmp_path / "note").write_text(capsys.readouterr().out)
    assert main(["append", "c", "more", *store]) == 0
    capsys.readouterr()
    for what in (["0"], ["--since", "note"]):
        assert main(["prove", "c", *what, *sign]) == 0
        (tmp_path / "proof").write_text(capsys.readouterr().out)
        assert main(["check-proof", "proof", "--key", public]) == 0
        assert capsys.readouterr().out.startswith("holds: ")
    assert main(["check-proof", "proof", "--checkpoint", "note"]) == 0
    assert main(["check-proof", "note", "--key", public]) == 1
    assert main(["prove", "c", *sign]) == 2
    capsys.readouterr()
    assert main(["checkpoint", "c", "--origin", "example.com/x", *sign]) == 0
    assert capsys.readouterr().out.startswith("example.com/x/default/c\n2\n")
    assert main(["checkpoint", "c", "--origin", "two words", *sign]) == 2
    assert main(["checkpoint", "c", "--sign-with", "note", *store]) == 2


async def test_a_key_that_is_none_is_an_error():
    with pytest.raises(InputError, match="not a signing key"):
        Memory(open_store("memory:"), signer="secret")
