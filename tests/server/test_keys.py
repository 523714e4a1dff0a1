"""API keys: what they allow, how they expire, and that a stolen store gives no access."""

import hmac
import json
import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from firnline.cli import main
from firnline.errors import InputError, StoreCorrupt
from firnline.log.entry import Card
from firnline.memory import Memory
from firnline.server import keys as module
from firnline.server.keys import NO_TENANT, Keys
from firnline.store import open_store
from firnline.store.cards import TenantCards
from support.damage import damage_rows
from support.interleave import meanwhile
from support.live_server import running
from support.rest_client import Api

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


class Clock:
    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
async def store(url):
    store = open_store(url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def keys(store, clock, monkeypatch):
    monkeypatch.setattr(module, "KEY_CACHE_SECONDS", 0.0)  # nothing is remembered
    return Keys(TenantCards(store, NO_TENANT), clock=clock)


async def test_a_key_opens_its_own_tenant_with_its_scopes(keys):
    key, token = await keys.create("ann", name="app", scopes=["write"])
    assert re.fullmatch(r"fl_[0-9a-f]{16}_[0-9a-f]{64}", token)
    grant = await keys.check(token)
    assert (grant.tenant, grant.id, grant.name) == ("ann", key.id, "app")
    assert grant.scopes == {"read", "write"}
    _, ruler = await keys.create("ann", scopes=["admin"])
    assert (await keys.check(ruler)).scopes == {"read", "write", "admin", "metrics"}
    _, scraper = await keys.create("ann", scopes=["metrics"])
    assert (await keys.check(scraper)).scopes == {"metrics"}
    _, reader = await keys.create("ann", scopes=["read"])
    assert (await keys.check(reader)).scopes == {"read"}


async def test_what_is_almost_a_key_is_none(keys):
    key, token = await keys.create("ann")
    _, other = await keys.create("bob")
    secret = token.rsplit("_", 1)[1]
    wrong = [
        "",
        "fl",
        "fl__",
        f"fl_{key.id}",
        f"fl_{key.id}_",
        f"fl_{key.id}_{secret[:-1]}",
        f"fl_{key.id}_{secret}0",
        f"fl_{key.id}_{secret.upper()}",
        f"fl_{key.id}_{other.rsplit('_', 1)[1]}",
        f"xx_{key.id}_{secret}",
        f"fl_{'0' * 16}_{secret}",
        f" {token}",
        token.replace("_", "__"),
        f"fl_{key.id}_\ud800",
        "fl_" + "x" * 100_000 + "_y",
    ]
    assert [await keys.check(token) for token in wrong] == [None] * len(wrong)
    assert await keys.check(token)


async def test_a_key_runs_out(keys, clock):
    _, token = await keys.create("ann", expires_in=timedelta(days=90))
    clock.now += timedelta(days=90) - timedelta(seconds=1)
    assert await keys.check(token)
    clock.now += timedelta(seconds=1)
    assert await keys.check(token) is None
    (key,) = await keys.all()
    assert key.state(clock()) == "expired"


async def test_a_revoked_key_is_rejected_permanently(keys, clock):
    key, token = await keys.create("ann")
    revoked = await keys.revoke(key.id)
    assert await keys.check(token) is None
    assert (await keys.revoke(key.id)).revoked_at == revoked.revoked_at, "once is enough"
    assert [k.state(clock()) for k in await keys.all()] == ["revoked"]
    with pytest.raises(InputError, match="no key"):
        await keys.revoke("nobody")


@pytest.mark.promise("tamper-evident")
async def test_a_key_whose_revocation_is_gone_is_not_valid_again(tmp_path):
    """Neither before a repair nor after it; other keys work all the time."""
    path = tmp_path / "store.db"
    async with Memory.open(f"sqlite:///{path}") as memory:
        keys = Keys(TenantCards(memory.store, NO_TENANT))
        key, token = await keys.create("ann")
        _, other = await keys.create("bob")
        await keys.revoke(key.id)
    damage_rows(path, "DELETE FROM card WHERE kind = 'key-revoked'")
    async with Memory.open(f"sqlite:///{path}") as memory:
        keys = Keys(TenantCards(memory.store, NO_TENANT))
        for named in (keys.check(token), keys.all()):
            with pytest.raises(StoreCorrupt, match="key-revoked"):
                await named
        assert await keys.check(other)
        assert "key-revoked" in str(list(await memory.check(thorough=True)))
        assert "removed" in str(await memory.repair())
        keys = Keys(TenantCards(memory.store, NO_TENANT))
        assert (await keys.check(token), len(await keys.all())) == (None, 1)


async def test_a_key_revoked_elsewhere_stops_working_within_a_second(store, monkeypatch):
    now = 1_000.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    here, elsewhere = Keys(TenantCards(store, NO_TENANT)), Keys(TenantCards(store, NO_TENANT))
    key, token = await here.create("ann")
    assert await here.check(token)
    await elsewhere.revoke(key.id)
    assert await here.check(token), "what was just looked up is not looked up again"
    now += 1.0
    assert await here.check(token) is None


async def test_a_key_is_rotated_with_an_overlap(keys, clock):
    old, first = await keys.create("ann", name="app", scopes=["read"], expires_in=timedelta(days=9))
    new, second = await keys.rotate(old.id, overlap=timedelta(hours=1))
    assert (new.tenant, new.name, new.scopes) == ("ann", "app", ("read",))
    assert new.expires_at == old.expires_at
    assert await keys.check(first)
    assert await keys.check(second)
    clock.now += timedelta(hours=1)
    assert await keys.check(first) is None
    assert await keys.check(second)
    with pytest.raises(InputError, match="expired"):
        await keys.rotate(old.id, overlap=timedelta(hours=1))


async def test_rotation_never_makes_a_key_last_longer(keys, clock):
    old, token = await keys.create("ann", expires_in=timedelta(minutes=5))
    await keys.rotate(old.id, overlap=timedelta(days=365))
    clock.now += timedelta(minutes=5)
    assert await keys.check(token) is None


async def test_keys_are_listed_by_tenant_oldest_first(keys, clock):
    for number, tenant in enumerate(["ann", "bob", "ann"]):
        clock.now = NOW + timedelta(minutes=number)
        await keys.create(tenant, name=str(number))
    assert [key.name for key in await keys.all()] == ["0", "1", "2"]
    assert [key.name for key in await keys.all("ann")] == ["0", "2"]
    assert await keys.all("carl") == []


@pytest.mark.parametrize("wrong", [{"scopes": ["root"]}, {"scopes": []}, {"scopes": "read"}])
async def test_invalid_options_of_a_key_are_rejected(keys, wrong):
    with pytest.raises(InputError, match="scopes"):
        await keys.create("ann", **wrong)
    with pytest.raises(InputError):
        await keys.create("ann", expires_in=timedelta())
    with pytest.raises(InputError):
        await keys.create(" ")
    assert await keys.all() == []


async def test_a_damaged_key_is_an_error_and_not_a_way_in(store, keys):
    await store.put_cards([Card(tenant="", kind="key", name="0" * 16, body=b"{}")])
    with pytest.raises(StoreCorrupt):
        await keys.check(f"fl_{'0' * 16}_x")


# -- what is stored ---------------------------------------------------------------------------


@pytest.mark.parametrize("pepper", [None, b"a secret of the server's own"])
async def test_the_store_holds_nothing_that_opens_anything(tmp_path, pepper):
    """Every byte of every file of the store is looked at."""
    store = open_store(f"sqlite:///{tmp_path}/store.db")
    await store.open()
    keys = Keys(TenantCards(store, NO_TENANT), secret=pepper)
    tokens = [(await keys.create("ann", name=f"key {number}"))[1] for number in range(5)]
    assert all([await keys.check(token) for token in tokens])
    await store.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for token in tokens:
        _, key_id, secret = token.split("_")
        assert key_id.encode() in stored, "the scan sees what is there"
        assert secret.encode() not in stored
        assert bytes.fromhex(secret) not in stored
        assert token.encode() not in stored
    if pepper:
        assert pepper not in stored
        other = open_store(f"sqlite:///{tmp_path}/store.db")
        await other.open()
        assert await Keys(TenantCards(other, NO_TENANT), secret=b"another").check(tokens[0]) is None
        assert await Keys(TenantCards(other, NO_TENANT), secret=pepper).check(tokens[0])
        await other.close()


async def test_secrets_are_compared_in_constant_time_known_or_not(keys, monkeypatch):
    compared, same = [], hmac.compare_digest

    def compare(a, b):
        compared.append((len(a), len(b)))
        return same(a, b)

    _, token = await keys.create("ann")
    monkeypatch.setattr(module.hmac, "compare_digest", compare)
    for asked in (token, token[:-1] + "x", f"fl_{'0' * 16}_{'0' * 64}", "nonsense"):
        await keys.check(asked)
    assert compared == [(64, 64)] * 4, "as much work for a key that is there as for one that is not"


# -- the command ------------------------------------------------------------------------------


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Run `firnline keys` in a separate folder; returns its exit code and output."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main(["keys", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_keys_are_made_listed_rotated_and_revoked(command):
    code, out, err = command("create", "--name", "my app", "--scopes", "read", "--expires", "90d")
    assert code == 0
    token = out.strip()
    assert re.fullmatch(r"fl_[0-9a-f]{16}_[0-9a-f]{64}", token), "a script can take it"
    assert "shown only once" in err
    assert token not in err
    code, out, _ = command("list")
    key_id = token.split("_")[1]
    row = out.splitlines()[2]
    assert row.split()[:4] == [key_id, "default", "my", "app"]
    assert "active" in row
    assert token.rsplit("_", 1)[1] not in out
    code, out, err = command("rotate", key_id, "--overlap", "1h")
    assert code == 0
    assert out.strip() != token
    assert f"{key_id} stays valid until" in err
    code, out, _ = command("revoke", key_id)
    assert (code, out.strip()) == (0, f"key {key_id} of tenant default is revoked")
    _, out, _ = command("list")
    assert [line.split()[5] for line in out.splitlines()[2:]] == ["revoked", "active"]


def test_keys_for_machines(command):
    _, out, _ = command("create", "--tenant", "ann", "--json")
    made = json.loads(out)
    assert (made["tenant"], made["scopes"], made["state"]) == ("ann", ["read", "write"], "active")
    assert made["key"].startswith(f"fl_{made['id']}_")
    command("create", "--tenant", "bob")
    _, out, _ = command("list", "--tenant", "ann", "--json")
    (listed,) = [json.loads(line) for line in out.splitlines()]
    assert listed == {name: value for name, value in made.items() if name != "key"}
    assert "digest" not in listed
    _, out, _ = command("revoke", made["id"], "--json")
    assert json.loads(out)["state"] == "revoked"


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("revoke", "0" * 16),
        ("create", "--expires", "soon"),
        ("create", "--expires", "0d"),
        ("create", "--expires", "999999999w"),
        ("create", "--scopes", "root"),
        ("create", "--scopes", ""),
        ("create", "--tenant", " "),
        ("create", "--config", "nowhere.toml"),
    ],
)
def test_errors_are_reported(command, arguments):
    code, out, err = command(*arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("firnline: ")


def test_nothing_is_listed_where_there_is_nothing(command):
    _, out, _ = command("create", "--json")
    command("revoke", json.loads(out)["id"])
    _, out, _ = command("list", "--tenant", "nobody")
    assert out.startswith("No keys yet")


@pytest.mark.parametrize("where", ["environment", "file"])
def test_the_command_makes_keys_that_the_server_takes(command, tmp_path, monkeypatch, where):
    """With the same store and the same secret, wherever those are set."""
    url = f"sqlite:///{tmp_path}/mine.db"
    if where == "environment":
        monkeypatch.setenv("FIRNLINE_STORE", url)
        monkeypatch.setenv("FIRNLINE_SECRET", "a secret of the server's own")
    else:
        text = f'store = "{url}"\nsecret = "a secret of the server\'s own"\n'
        (tmp_path / "firnline.toml").write_text(text)
    _, out, _ = command("create", "--tenant", "ann")
    settings = {"store": url, "secret": "a secret of the server's own", "auth": "required"}
    with running(**settings) as server, Api(server.url, out.strip()) as api:
        assert api.get("/me")["tenant"] == "ann"
    other = {**settings, "secret": "another"}
    with running(**other) as server, Api(server.url, out.strip()) as api:
        assert api.refused("GET", "/me")["status"] == 401


async def test_a_key_that_is_revoked_while_it_is_rotated_stays_revoked(keys, store):
    key, token = await keys.create("ann")
    with meanwhile(store, "put_cards", lambda: keys.revoke(key.id), call=2):
        await keys.rotate(key.id, overlap=timedelta(hours=1))
    assert await keys.check(token) is None
    assert [known.id for known in await keys.all() if known.revoked_at] == [key.id]
    with pytest.raises(InputError, match="revoked"):
        await keys.rotate(key.id, overlap=timedelta())
