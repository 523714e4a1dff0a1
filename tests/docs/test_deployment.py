"""Deployment files: every command, setting, path and port in them exists."""

import re
from pathlib import Path

import pytest
import yaml

from firnline import __version__
from firnline.cli.program import _parser
from firnline.server.health import router as health
from firnline.server.settings import Settings

ROOT = Path(__file__).parents[2]
PODS = [
    item["spec"]["template"]["spec"]
    for item in yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text())
    if item["kind"] == "Deployment"
]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
OURS = {
    name: service
    for name, service in COMPOSE.items()
    if service["image"].partition(":")[0] == "firnline"
}
SETTINGS = {f"FIRNLINE_{name.upper()}" for name in Settings.model_fields}


def commands():
    yield from (container["args"] for pod in PODS for container in pod["containers"])
    yield from (service["command"] for service in OURS.values())


def variables():
    for pod in PODS:
        yield from (entry["name"] for container in pod["containers"] for entry in container["env"])
    for service in OURS.values():
        yield from service["environment"]
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        yield from (word.split("=")[0] for word in line.split() if word.startswith("FIRNLINE_"))


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_every_command_exists(words):
    assert callable(_parser().parse_args(words).run)


@pytest.mark.parametrize("name", sorted(set(variables())))
def test_every_setting_exists(name):
    assert name in SETTINGS


def test_probes_ask_what_the_server_answers():
    server = next(pod for pod in PODS if pod["containers"][0]["args"] == ["serve"])["containers"][0]
    paths = {server[f"{kind}Probe"]["httpGet"]["path"] for kind in ("liveness", "readiness")}
    assert paths == {"/livez", "/readyz"}
    assert paths <= {route.path for route in health.routes}
    assert {port["containerPort"] for port in server["ports"]} == {8080}
    assert "EXPOSE 8080" in (ROOT / "Dockerfile").read_text()


def test_a_server_has_longer_to_stop_than_it_drains():
    for pod in PODS:
        settings = {entry["name"]: entry.get("value") for entry in pod["containers"][0]["env"]}
        drain = float(settings.get("FIRNLINE_DRAIN_SECONDS") or 0)
        assert pod["terminationGracePeriodSeconds"] > drain


def images():
    """Every image that a file for deployment names."""
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        words = line.split()
        yield from words[1:2] if line.startswith("FROM") else ()
        yield from (word[7:] for word in words if word.startswith("--from="))
    files = [ROOT / "compose.yaml", *(ROOT / "deploy").glob("*.y*ml")]
    for item in [item for file in files for item in yaml.safe_load_all(file.read_text())]:
        yield from images_in(item)


def images_in(item):
    if isinstance(item, list | dict):
        for name, value in item.items() if isinstance(item, dict) else enumerate(item):
            yield from [value] if name == "image" else images_in(value)


def test_no_image_changes_by_itself():
    """Ours have the version of this source, stages of the build a name, all others a digest."""
    named = set(re.findall(r" AS (\w+)", (ROOT / "Dockerfile").read_text()))
    found = [image for image in images() if image not in named]
    assert len(found) >= 6
    for image in found:
        pinned = re.fullmatch(r"[\w./-]+:\d+(\.\d+)+(-\w+)*@sha256:[0-9a-f]{64}", image)
        assert pinned or image == f"firnline:{__version__}", image
