"""`firnline doctor` checks what a server's settings name."""

import json
import os

import pytest

from firnline.cli import main
from firnline.testing import ModelServer


@pytest.fixture
def doctor(tmp_path, monkeypatch, capsys):
    """The findings of the command and its exit code, with these settings."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("FIRNLINE_")]:
        monkeypatch.delenv(name)
    assert main(["append", "c", "Hello."]) == 0

    def doctor(**settings):
        for name, value in settings.items():
            monkeypatch.setenv(f"FIRNLINE_{name.upper()}", value)
        capsys.readouterr()
        code = main(["doctor", "--quick", "--json"])
        rows = json.loads(capsys.readouterr().out)
        return code, {row["what"]: (row["state"], row["detail"]) for row in rows}

    return doctor


def test_without_settings_nothing_is_missed(doctor):
    code, found = doctor()
    assert code == 0
    assert {found[what][0] for what in ("server", "model", "upstream")} == {"ok"}


def test_an_endpoint_that_answers_is_well_and_one_that_does_not_is_named(doctor):
    with ModelServer() as server:
        listed = {"data": [{"id": server.model}]}
        server.list_models = lambda: (200, listed)
        code, found = doctor(upstream=server.url, model=server.model, model_url=server.url)
        assert (code, found["upstream"]) == (0, ("ok", f"{server.url} answers"))
        assert found["model"] == ("ok", f"{server.url} answers")
        _, found = doctor(model="another-model")
        assert found["model"][0] == "warning"
        assert "does not list another-model" in found["model"][1]
    code, found = doctor()
    gone = f"{server.url} cannot be reached: Connection refused"
    assert (code, found["upstream"]) == (1, ("broken", gone))


def test_a_key_that_is_rejected_is_found_and_not_shown(doctor):
    with ModelServer() as server:
        server.list_models = lambda: (401, {"error": {"message": "wrong key"}})
        code, found = doctor(upstream=server.url, upstream_key="sk-secret-secret")
        assert (code, found["upstream"][0]) == (1, "broken")
        assert found["upstream"][1] == f"{server.url} rejects the key with 401"
        _, found = doctor(upstream_key="")
        assert found["upstream"] == ("ok", f"{server.url} answers; clients send keys of their own")


def test_settings_that_are_not_valid_are_named(doctor):
    code, found = doctor(modal="x")
    assert (code, found["server"]) == (0, ("warning", "not a setting: FIRNLINE_MODAL"))
    code, found = doctor(port="many")
    assert (code, found["server"][0]) == (1, "broken")
    assert "FIRNLINE_PORT" in found["server"][1]
