"""A log that was rewritten in the store: no proof says that it continues an older checkpoint."""

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline import Memory, Message
from firnline.engine.signer import Signer, new_key
from firnline.errors import StoreCorrupt
from firnline.log.entry import Key, Record, genesis, next_hash
from firnline.log.proof_check import ProofError, check_proof, parse_note
from firnline.store.ram import RamStore

pytestmark = pytest.mark.promise("proof-for-strangers")
KEY = new_key("example.com/log")
PUBLIC = Signer.of(KEY).public
LONGEST = 800


class OpenStore(RamStore):
    """A store whose log anyone can write: `log` is what its database holds of "c"."""

    log = ()

    async def records(self, key, first_seq, limit):
        return [record for record in self.log if record.seq >= first_seq][:limit]

    async def head(self, key):
        last, head = self.log[-1], await super().head(key)
        return replace(head, seq=last.seq, tokens=last.total, hash=last.hash)


def chained(bodies, hashes=()):
    """The records of these bodies: the first ones with the given hashes, the others honest."""
    records, previous = [], genesis(Key("default", "c"))
    for seq, body in enumerate(bodies):
        given_hash = hashes[seq] if seq < len(hashes) else ""
        previous = given_hash or next_hash(previous, body, 1, "o200k_base")
        records.append(Record(seq, body, 1, seq + 1, previous, "o200k_base"))
    return records


BODIES = [b'{"content":"message %d","role":"user"}' % seq for seq in range(LONGEST)]
HONEST = chained(BODIES)


def rewritten(size, change, at, rehashed):
    """The log of `size` entries after one change of the entry `at`."""
    bodies, hashes = BODIES[:size], [record.hash for record in HONEST[:size]]
    if change == "edit":
        bodies[at] = bodies[at].replace(b"message", b"forgery")
    elif change == "delete":
        del bodies[at], hashes[at]
    elif change == "insert":
        bodies.insert(at, b'{"content":"forgery","role":"user"}')
        hashes.insert(at, hashes[at])
    elif change == "swap":
        other = (at + 1) % size
        bodies[at], bodies[other] = bodies[other], bodies[at]
        if not rehashed:
            hashes[at], hashes[other] = hashes[other], hashes[at]
        at = min(at, other)
    else:
        del bodies[at:], hashes[at:]
    return at, chained(bodies, hashes[:at] if rehashed else hashes)


async def checkpoints(memory, sizes):
    """The checkpoints of the honest log at each size."""
    notes = []
    for size in sizes:
        memory.store.log = HONEST[:size]
        notes.append(parse_note(await memory.checkpoint("c")))
    return notes


async def proves_nothing(memory, known, seq):
    """No proof leads from these checkpoints to the forged log, nor from its message to them."""
    for older in known:
        with pytest.raises(StoreCorrupt):
            await memory.prove_growth("c", older.note)
        with suppress(StoreCorrupt):
            proof = await memory.prove("c", seq)
            with pytest.raises(ProofError):
                check_proof(proof, known=older)


async def scenario(sizes, change, at, *, rehashed, dropped, grown, signer=KEY):
    size = sizes[-1]
    async with Memory(OpenStore(), signer=signer, embedder=None, background=False) as memory:
        await memory.append("c", Message.user("so that there is a conversation"))
        notes = await checkpoints(memory, sizes)
        memory.store.log = HONEST[:size]
        await memory.prove("c", at)  # so that every node that can be stored is
        first, forged = rewritten(size, change, at, rehashed)
        for kind in dropped:
            await memory.cards.drop(kind, prefix="")
        bodies = [record.body for record in forged] + [b'{"content":"on","role":"user"}'] * grown
        memory.store.log = chained(bodies, [record.hash for record in forged])
        if not memory.store.log:
            return
        if "checkpoint" not in dropped:
            with pytest.raises(StoreCorrupt):
                await memory.checkpoint("c")
        covering = [note for note in notes if note.size > first]
        await proves_nothing(memory, covering, min(at, len(bodies) - 1))
        if rehashed and "checkpoint" in dropped:  # a history that was never shown to anyone else
            for older in set(notes) - set(covering):
                if older.size <= len(bodies):
                    check_proof(await memory.prove_growth("c", older.note), known=older)


@given(data=st.data(), size=st.integers(1, LONGEST) | st.sampled_from([255, 256, 257, 512, 513]))
def test_no_proof_leads_from_an_older_checkpoint_to_a_rewritten_log(data, size):
    sizes = data.draw(st.sets(st.integers(1, size), max_size=3)) | {size}
    change = data.draw(st.sampled_from(["edit", "delete", "insert", "swap", "truncate"]))
    if change == "swap" and size == 1:
        change = "edit"
    run = scenario(
        sorted(sizes),
        change,
        data.draw(st.integers(0, size - 1)),
        rehashed=data.draw(st.booleans()),
        dropped=data.draw(st.sampled_from([[], ["tree"], ["checkpoint"], ["tree", "checkpoint"]])),
        grown=data.draw(st.sampled_from([0, 1, 300])),
        signer=data.draw(st.sampled_from([KEY, None])),
    )
    asyncio.run(run)


@pytest.mark.parametrize("size", [256, 512, 700])
def test_stored_nodes_of_the_honest_log_do_not_help(size):
    """All hashes are rewritten, and the nodes of the tree are left as they were."""
    run = scenario([size], "edit", 5, rehashed=True, dropped=["checkpoint"], grown=1)
    asyncio.run(run)


def test_a_checkpoint_of_another_log_with_the_same_key_vouches_for_nothing():
    """Its records, its nodes and its signed checkpoint are copied into the log's place."""

    async def copied():
        async with Memory(OpenStore(), signer=KEY, embedder=None, background=False) as memory:
            await memory.append("c", Message.user("so that there is a conversation"))
            await checkpoints(memory, [300])
            (card,) = await memory.cards.find("checkpoint")
            other = parse_note(card.body.decode())._replace(origin="firnline/default/other")
            signed = Signer.of(KEY).sign(other)
            await memory.store.put_cards([replace(card, body=signed.note.encode())])
            checked = check_proof(await memory.prove("c", 5), key=PUBLIC)
            assert checked.checkpoint.origin == "firnline/default/c"

    asyncio.run(copied())
