"""The dashboard and the alerts ask for metrics and labels that exist."""

import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from firnline.server.metrics import Metrics

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana.json").read_text())
RULES = [
    rule
    for group in yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
QUERIES = {
    **{
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in DASHBOARD["panels"]
        for target in panel["targets"]
    },
    **{rule["alert"]: rule["expr"] for rule in RULES},
}
SELECTED = re.compile(r"\b((?:firnline|process)_\w+)(?:\{([^}]*)\})?")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
OF_PROMETHEUS = {"instance", "job", "le"}


@pytest.fixture(scope="module")
def known():
    """The labels of each name that /metrics has; those of the process have none."""
    metrics = Metrics()
    shown = text_string_to_metric_families(metrics.render().decode())
    return {sample.name: set() for family in shown for sample in family.samples} | {
        name: set(getattr(collector, "_labelnames", ()))
        for collector, names in metrics.registry._collector_to_names.items()
        for name in names
    }


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_query_names_what_there_is(query, known):
    found = SELECTED.findall(query)
    assert found
    labels = set()
    for name, chosen in found:
        assert name in known, name
        assert set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", chosen)) <= known[name] | OF_PROMETHEUS
        labels |= known[name]
    for group in GROUPED.findall(query):
        assert set(re.findall(r"\w+", group)) <= labels | OF_PROMETHEUS
    assert all(query.count(opened) == query.count(closed) for opened, closed in ("()", "{}", "[]"))


def test_the_dashboard_draws_each_panel_in_its_own_place():
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    cells = [
        (x, y)
        for at in places
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(places)


def test_an_alert_says_what_is_wrong_and_what_to_do():
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert re.fullmatch(r"\d+m", rule["for"])
