"""Damage on the disk: verify finds it, and no reader ever gets altered text."""

from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest
from cells import cells, leaf_pages
from torture_kit import TORTURE, memory_at, soon

from firnline.errors import StoreCorrupt, StoreError
from firnline.log.entry import Card
from firnline.log.message import Message, ToolCall
from firnline.store.cards import card_query
from firnline.store.sqlite import cards

LIVE = 6
WRONG_SHOWN = 20
CONVERSATIONS = ("glacier", "valley")
AT = datetime(2026, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC)


def messages():
    """Of every shape: plain, named, with a tool call, with metadata, in several scripts."""
    call = ToolCall.of("call-1", "measure", {"what": "depth"})
    return [
        Message.user("How deep is the firn?", created_at=AT),
        Message.assistant(None, tool_calls=[call], created_at=AT),
        Message.tool("42 m", tool_call_id="call-1", created_at=AT),
        Message.assistant("Forty-two metres.", name="driller", created_at=AT),
        Message.user("万年雪は深い 🧊", metadata={"mood": "glücklich"}, created_at=AT),
        Message.user("x", created_at=AT),
    ]


@pytest.fixture
def tmp_path():
    """In memory, if there is room: what is damaged here was never in the middle of a write."""
    with TemporaryDirectory(prefix="firnline-torture-") as folder:
        yield Path(folder)


@pytest.fixture
async def intact(database):
    """A closed database with two archived segments and live entries; returns path and texts."""
    async with memory_at(database) as memory:
        for _ in range(2):
            await memory.append("glacier", messages())
            await memory.archive("glacier", keep=0)
        for conversation in CONVERSATIONS:
            await memory.append(conversation, messages())
        await memory.recall(None, "firn")  # so that everything is indexed
        truth = {name: await memory.read(name) for name in CONVERSATIONS}
    assert [entry.archived for entry in truth["glacier"]] == [True] * 12 + [False] * LIVE
    return database, {
        name: [entry.message.text for entry in entries] for name, entries in truth.items()
    }


class Examination:
    """What a damaged copy looks like to its readers."""

    def __init__(self, path, truth):
        self._truth = truth
        self._path = path
        self.noticed = False
        self.wrong = []

    async def run(self):
        try:
            async with memory_at(self._path, read_only=True) as memory:
                # What is damaged has to be noticed where it is, and may be served anywhere.
                for name in CONVERSATIONS if TORTURE else CONVERSATIONS[:1]:
                    await self._look(self._verify, memory, name)
                    await self._look(self._newest, memory, name)
                for name in CONVERSATIONS:
                    await self._look(self._read, memory, name)
                await self._look(self._recall, memory, None)
        except StoreCorrupt:
            self.noticed = True
        return self

    async def _look(self, how, memory, name):
        try:
            await soon(how(memory, name))
        except StoreError as error:  # the search index may be damaged without the log being so
            self.noticed |= how == self._verify
            if how != self._recall and not isinstance(error, StoreCorrupt):
                self.wrong.append(f"{how.__name__[1:]} raised {error!r:.90}")
        except Exception as error:  # noqa: BLE001 - any other kind is what is looked for
            self.wrong.append(f"{how.__name__[1:]} raised {error!r:.90}")

    async def _verify(self, memory, name):
        self.noticed |= not (await memory.verify(name)).ok

    async def _read(self, memory, name):
        texts = [entry.message.text for entry in await memory.read(name)]
        if texts != self._truth[name]:
            self.wrong.append(f"read returned {texts}")

    async def _newest(self, memory, name):
        for entry in await memory.newest(name, tokens=60):
            self._compare("newest", name, entry)

    async def _recall(self, memory, _):
        for hit in await memory.recall(None, "firn metres 万年雪 x"):
            self._compare("recall", hit.conversation, hit.entry)

    def _compare(self, how, name, entry):
        if self._truth.get(name, ())[entry.seq : entry.seq + 1] != [entry.message.text]:
            self.wrong.append(f"{how} returned {entry.message.text!r} as {name} {entry.seq}")


class Copies:
    """Copies of a database with one byte changed each, examined one after the other."""

    def __init__(self, intact, folder):
        self.path, self._truth = intact
        self._data = self.path.read_bytes()
        self._copy = folder / "damaged.db"

    async def flip(self, at, mask):
        damaged = bytearray(self._data)
        damaged[at] ^= mask
        for side in ("-wal", "-shm"):
            self._copy.with_name(self._copy.name + side).unlink(missing_ok=True)
        self._copy.write_bytes(damaged)
        return await Examination(self._copy, self._truth).run()


def masks(rng):
    return [1 << bit for bit in range(8)] if TORTURE else [1 << rng.randrange(8)]


async def flip_cells(copies, chosen, rng, *, verified=True):
    """Whatever goes unnoticed, or is served wrong, of every byte; plain runs try half of them."""
    wrong, step = [], 1 if TORTURE else 2
    for cell in chosen:
        for at in range(cell.start + rng.randrange(step), cell.end, step):
            for mask in masks(rng):
                found = await copies.flip(at, mask)
                if verified and not found.noticed and at != cell.unused:
                    found.wrong.append("verify did not notice")
                if found.wrong:
                    place = f"{cell.table} {cell.rowid:#x}, byte {at - cell.start} ^ {mask:#04x}"
                    wrong.append(f"{place}: {'; '.join(found.wrong)}")
    assert not wrong, f"{len(wrong)} flips:\n" + "\n".join(wrong[:WRONG_SHOWN])


@pytest.mark.promise("tamper-evident")
async def test_every_flipped_byte_of_a_live_entry_is_found(intact, tmp_path, rng):
    chosen = cells(intact[0], "entry")[:LIVE]
    assert len(chosen) == LIVE
    await flip_cells(Copies(intact, tmp_path), chosen if TORTURE else chosen[::2], rng)


@pytest.mark.promise("tamper-evident")
async def test_every_flipped_byte_of_a_segment_is_found(intact, tmp_path, rng):
    chosen = cells(intact[0], "segment")
    assert len(chosen) == 2
    await flip_cells(Copies(intact, tmp_path), chosen, rng)


@pytest.mark.promise("byte-exact")
async def test_no_flipped_byte_of_a_conversation_is_served(intact, tmp_path, rng):
    """Its row has the owner and the end of the entries: a flip neither loses nor moves any."""
    chosen = cells(intact[0], "conversation")
    assert len(chosen) == len(CONVERSATIONS)
    await flip_cells(Copies(intact, tmp_path), chosen, rng, verified=False)


@pytest.mark.promise("typed-failure")
async def test_a_damaged_note_of_what_is_indexed_is_a_typed_error(intact):
    path, _ = intact
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("UPDATE conversation SET indexed = -122")
    async with memory_at(path, read_only=True) as memory:
        with pytest.raises(StoreCorrupt):
            await memory.recall(None, "firn")


@pytest.mark.promise("byte-exact")
@pytest.mark.parametrize("table", ["entry", "segment", "search_data"])
async def test_no_flipped_byte_of_a_page_is_served(intact, tmp_path, rng, table):
    """The gaps between rows too: there, a flip may go unnoticed, because it changes nothing."""
    copies, wrong = Copies(intact, tmp_path), []
    for offset, size in leaf_pages(intact[0], table):
        everywhere = range(offset, offset + size)
        for at in everywhere if TORTURE else rng.sample(everywhere, 30):
            found = await copies.flip(at, 1 << rng.randrange(8))
            wrong.extend(f"byte {at - offset} of the page at {offset}: {w}" for w in found.wrong)
    assert not wrong, f"{len(wrong)} problems:\n" + "\n".join(wrong[:WRONG_SHOWN])


@pytest.fixture
async def carded(database):
    """A closed database with cards: of a conversation and of none, of a tenant and of none."""
    about = [("", "key", None), ("default", "key", None), ("default", "draft", "glacier")]
    given = [
        Card(tenant=tenant, kind=kind, name=f"{i}{kind}", body=b"firn %d" % i, conversation=of)
        for i, (tenant, kind, of) in enumerate(about * 2)
    ]
    async with memory_at(database) as memory:
        await memory.append("glacier", messages()[0])
        assert await memory.store.put_cards(given) == len(given)
        truth = {kind: await memory.store.cards(kind) for kind in ("key", "draft")}
    return database, truth


async def cards_of(path, truth):
    """Whether the damage is noticed by the thorough check, and what is served that is not true."""
    noticed, wrong = False, []
    try:
        async with memory_at(path, read_only=True) as memory:
            for kind, kept in truth.items():
                try:
                    found = await soon(memory.store.cards(kind))
                    wrong += [f"{card} was served" for card in found if card not in kept]
                except StoreCorrupt:
                    noticed = True
            checked = await memory.check(thorough=True)
            noticed |= any(finding.state == "broken" for finding in checked)
    except StoreCorrupt:
        noticed = True
    return noticed, wrong


@pytest.mark.promise("byte-exact")
@pytest.mark.promise("tamper-evident")
async def test_every_flipped_byte_of_a_card_is_found(carded, tmp_path, rng):
    path, truth = carded
    assert await cards_of(path, truth) == (False, [])
    ((offset, size),) = leaf_pages(path, "card")
    data, copy, wrong = path.read_bytes(), tmp_path / "damaged.db", []
    start = offset + int.from_bytes(data[offset + 5 : offset + 7], "big")  # where its rows begin
    step = 1 if TORTURE else 2
    for at in range(start + rng.randrange(step), offset + size, step):
        # By the lowest bit, a text becomes other bytes.
        for mask in {1, *masks(rng)}:
            copy.write_bytes(data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :])
            noticed, served = await cards_of(copy, truth)
            if served or not noticed:
                wrong.append(f"byte {at - offset} ^ {mask:#04x}: {served or 'not noticed'}")
    assert not wrong, f"{len(wrong)} flips:\n" + "\n".join(wrong[:WRONG_SHOWN])


@pytest.mark.promise("tenants-apart")
async def test_no_flipped_byte_lets_another_card_be_dropped(carded, tmp_path):
    path, _ = carded
    ((offset, size),) = leaf_pages(path, "card")
    data, copy = path.read_bytes(), tmp_path / "damaged.db"
    others = "SELECT count(*) FROM card WHERE +kind != 'key' OR +tenant != 'default'"
    counted = 0
    start = offset + int.from_bytes(data[offset + 5 : offset + 7], "big")
    for at in range(start, offset + size):
        copy.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with closing(apsw.Connection(str(copy))) as connection, suppress(apsw.Error):
            connection.execute("BEGIN")  # and never commit: it would only be slower
            before = connection.execute(others).get
            cards.drop_cards(connection, card_query("key", "default", None, ""))
            assert connection.execute(others).get == before, f"byte {at - offset}"
            counted += 1
    assert counted > (offset + size - start) // 2


@pytest.mark.promise("tamper-evident")
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE card SET body = 'firm'",
        "UPDATE card SET kind = 'key' WHERE kind = 'draft'",
        "UPDATE card SET tenant = 'evil' WHERE tenant = 'default'",
        "UPDATE card SET name = name || 'x'",
        "UPDATE card SET updated_at = updated_at + 1",
        "UPDATE card SET updated_at = 1 << 62",
        "UPDATE card SET conversation = 99 WHERE kind = 'draft'",
        "UPDATE card SET conversation = NULL WHERE kind = 'draft'",
        "UPDATE card SET conversation = 1 WHERE kind = 'key'",
        "UPDATE card SET checksum = x''",
        "UPDATE conversation SET name = 'valley'",
        "UPDATE card SET body = (SELECT body FROM card WHERE name = '0key') WHERE name = '1key'",
    ],
)
async def test_a_changed_card_is_not_served(carded, change):
    path, truth = carded
    async with memory_at(path) as memory:
        await memory.store._write(lambda con: con.execute(change.replace("'firm'", "x'00'")).get)
        raised = []
        for kind in truth:
            try:
                await memory.store.cards(kind)
            except StoreCorrupt as error:
                raised.append(error)
        assert raised
        (about,) = [item for item in await memory.check(thorough=True) if item.what == "cards"]
        assert about.state == "broken"
        (quick,) = [item for item in await memory.check() if item.what == "cards"]
        assert (quick.state, quick.detail) == ("ok", "6")
