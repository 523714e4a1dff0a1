"""Deployment files: every command, setting, path and port in them exists."""

import asyncio
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from firnline import __version__
from firnline.cli import main
from firnline.cli.program import _parser
from firnline.errors import InputError
from firnline.server.health import router as health
from firnline.server.serve import check
from firnline.server.settings import Settings, load

ROOT = Path(__file__).parents[2]
KUBERNETES = (ROOT / "deploy" / "kubernetes.yaml").read_text()
MANIFESTS = list(yaml.safe_load_all(KUBERNETES))
PODS = [item["spec"]["template"]["spec"] for item in MANIFESTS if item["kind"] == "Deployment"]
CHART = ROOT / "deploy" / "helm"
HELM = shutil.which("helm", path=Path(sys.executable).parent) or shutil.which("helm")
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
        yield from (
            entry["name"] for container in pod["containers"] for entry in container.get("env", ())
        )
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
        settings = {
            entry["name"]: entry.get("value") for entry in pod["containers"][0].get("env", ())
        }
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


# -- Kubernetes -------------------------------------------------------------------------------


def test_the_steps_work_in_the_order_in_which_they_are_given(postgres, capsys):
    """Servers do not start without a key, so the first one is created where no key is needed."""
    steps = re.findall(r"^#   kubectl (.*)$", KUBERNETES, re.MULTILINE)
    assert [step.split()[0] for step in steps] == ["create", "apply", "exec"]
    _, name, command = re.fullmatch(r"exec (\w+)/(\S+) -- firnline (.*)", steps[-1]).groups()
    pod = next(item for item in MANIFESTS if item["metadata"]["name"] == name)
    args = pod["spec"]["template"]["spec"]["containers"][0]["args"]
    store = ["--store", postgres.url]
    settings = load(store=postgres.url, host="0.0.0.0")
    with pytest.raises(InputError, match="requires an API key"):
        asyncio.run(check(settings))
    assert main([*args, "--once", *store]) == 0  # the pod that the key is created in
    assert main([*command.split(), *store]) == 0
    asyncio.run(check(settings))


def test_variables_of_kubernetes_are_not_taken_for_settings(monkeypatch):
    """A service "firnline" gives each pod FIRNLINE_PORT=tcp://..., unless it does not want that."""
    monkeypatch.setenv("FIRNLINE_PORT", "tcp://10.0.0.1:80")
    with pytest.raises(InputError):
        load()
    assert all(pod["enableServiceLinks"] is False for pod in PODS)


needs_helm = pytest.mark.skipif(HELM is None, reason="needs helm")


def render(*values, name="firnline"):
    """The manifests of the chart, by kind and name."""
    chosen = [word for value in values for word in ("--set", value)]
    done = subprocess.run(
        [HELM, "template", name, CHART, *chosen], capture_output=True, text=True, check=True
    )
    found = [item for item in yaml.safe_load_all(done.stdout) if item]
    return {(item["kind"], item["metadata"]["name"]): item for item in found}


@needs_helm
def test_the_chart_is_well_and_by_default_what_the_plain_manifests_are():
    subprocess.run([HELM, "lint", "--strict", CHART], check=True, capture_output=True)
    rendered = render()
    plain = {(item["kind"], item["metadata"]["name"]): item for item in MANIFESTS}
    plain["Service", "firnline"]["spec"]["type"] = "ClusterIP"  # the default of Kubernetes
    assert {key: without_labels(item) for key, item in rendered.items()} == {
        key: without_labels(item) for key, item in plain.items()
    }


def without_labels(item):
    return {**item, "metadata": {"name": item["metadata"]["name"]}}


@needs_helm
def test_what_a_chart_can_do_more_refers_to_what_is_there():
    rendered = render(
        "ingress.enabled=true",
        "ingress.tlsSecret=tls",
        "metrics.enabled=true",
        "settings.FIRNLINE_STRATEGY=progressive",
        "image.tag=9.9.9",
        name="memory",
    )
    kinds = {kind for kind, _ in rendered}
    assert kinds >= {"ConfigMap", "Ingress", "ServiceMonitor"}
    assert set(rendered["ConfigMap", "memory"]["data"]) <= SETTINGS
    service = rendered["Service", "memory"]
    (rule,) = rendered["Ingress", "memory"]["spec"]["rules"]
    backend = rule["http"]["paths"][0]["backend"]["service"]
    ports = {port["name"] for port in service["spec"]["ports"]}
    assert (backend["name"], {backend["port"]["name"]}) == ("memory", ports)
    (endpoint,) = rendered["ServiceMonitor", "memory"]["spec"]["endpoints"]
    assert {endpoint["port"]} == ports
    server = rendered["Deployment", "memory"]["spec"]["template"]
    assert service["spec"]["selector"].items() <= server["metadata"]["labels"].items()
    for name in ("memory", "memory-worker"):
        pod = rendered["Deployment", name]["spec"]["template"]["spec"]
        assert pod["containers"][0]["image"] == "firnline:9.9.9"
        assert {"configMapRef": {"name": "memory"}} in pod["containers"][0]["envFrom"]
