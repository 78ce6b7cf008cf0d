"""Every query of every dashboard, asked of a real Prometheus and VictoriaMetrics over all scenarios of the simulator.

The past is played in virtual time and given to both databases, so that an hour takes a minute.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pinchpoint.simulator.scenarios import SCENARIOS
from tests.contracts.dashboard_queries import VALUES, choices, dashboards, marks, panels, substituted
from tests.e2e.backfilled import BackfilledPrometheus, BackfilledVictoria, write_openmetrics
from tests.e2e.history import PlayedNode
from tests.e2e.sickness import SICK_NODE, SILENT_ENGINE
from tests.e2e.stack import Prometheus

pytestmark = pytest.mark.timeout(600)

BEGIN = 1_700_000_000.0
CHAPTER_SECONDS, SCRAPE_SECONDS = 120.0, 10.0
ALL = (*SCENARIOS, SICK_NODE)
AT_EASE = {"healthy", "idle", "asleep"}
LLAMA = "meta-llama.+"
DATABASES = ("prometheus", "victoria-metrics")

# Panels that have data in some scenarios only, and in which they must. All others must have some in every scenario.
WHEN = {
    ("pinchpoint-fleet", "Firing alerts"): {"memory_wall", SICK_NODE},
    ("pinchpoint-fleet", "Advice"): set(SCENARIOS) - AT_EASE,
    ("pinchpoint-engine", "Advice"): set(SCENARIOS) - AT_EASE,
    ("pinchpoint-engine", "Held down by"): {"throttled_gpu"},
    ("pinchpoint-gpu", "Held down by"): {"throttled_gpu"},
    ("pinchpoint-gpu", "Time held down"): {"throttled_gpu"},
    **{
        ("pinchpoint-gpu", title): {SICK_NODE}
        for title in (
            "Xid errors",
            "Recovery",
            "Repaired memory",
            "Memory errors",
            "Processes",
            "NVLinks down",
            "NVLink errors",
            "PCIe replays",
            "MIG: memory in use",
            "MIG: SM activity",
        )
    },
    **{
        ("pinchpoint-self", title): {SICK_NODE}
        for title in (
            "NVML call that hangs",
            "Discovered engines",
            "Jobs in trouble",
            "Alertmanagers",
            "Alerts yet to be told",
            "Notifications that failed",
            "Age of the evaluation",
            "Time of an evaluation",
            "Alerts that can't be judged",
        )
    },
    ("pinchpoint-self", "Probes that failed"): {"buffering_gateway"},
    ("pinchpoint-self", "Probes left out"): {SICK_NODE},
}
# Tables join many queries, some of which have nothing to say: one that has is data. So has this panel: its second
# query is about probes that our own event loop spoilt, and nobody's loop lags in virtual time.
ANY_QUERY = {("pinchpoint-self", "Probes left out")}
NEVER = {("pinchpoint-self", "Probes left out", "B")}


@dataclass
class Asked:
    """Answers by database, scenario, dashboard, panel and letter; what was refused; what the choices offer."""

    answers: dict[tuple[str, str, str, str, str], list[dict[str, Any]]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    offered: dict[tuple[str, ...], set[str]] = field(default_factory=dict)  # by database, scenario, model, variable

    def panel(self, database: str, scenario: str, uid: str, title: str) -> list[list[dict[str, Any]]]:
        return [a for (*key, _), a in self.answers.items() if key == [database, scenario, uid, title]]

    def value(self, scenario: str, uid: str, title: str) -> float:
        ((sample,),) = self.panel("prometheus", scenario, uid, title)
        return float(sample["value"][1])


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    folder = tmp_path_factory.mktemp("past")
    node = PlayedNode(BEGIN)
    scrapes = (s for scenario in ALL for s in node.scrapes(scenario, CHAPTER_SECONDS, SCRAPE_SECONDS))
    write_openmetrics(folder / "past.om", scrapes)
    return asyncio.run(_asked(folder, {c.scenario: c.end - 1 for c in node.chapters}))


async def _asked(folder: Path, ends: dict[str, float]) -> Asked:
    asked, past = Asked(), folder / "past.om"
    async with BackfilledPrometheus(folder, past) as prometheus, BackfilledVictoria(folder, past) as victoria:
        for database in (prometheus, victoria):
            for scenario, end in ends.items():
                for key, expr in _queries():
                    try:
                        answer = await database.get("/api/v1/query", query=expr, time=f"{end}")
                    except AssertionError as error:
                        asked.refused.append(f"{key}: {error}")
                    else:
                        asked.answers[(database.binary, scenario, *key)] = answer["data"]["result"]
                await _choose(asked, database, scenario, end)
    return asked


def _queries() -> Iterator[tuple[tuple[str, str, str], str]]:
    values = {**VALUES, "__range": f"{CHAPTER_SECONDS:.0f}s"}
    for uid, dashboard in dashboards().items():
        for panel in panels(dashboard):
            for target in panel["targets"]:
                yield (uid, panel["title"], target["refId"]), substituted(target["expr"], values)
        for name, expr in marks(dashboard):
            yield (uid, f"mark: {name}", "A"), expr


async def _choose(asked: Asked, database: Prometheus, scenario: str, end: float) -> None:
    """What Grafana would offer, with everything chosen and with one model."""
    for uid, model in (("pinchpoint-engine", ".*"), ("pinchpoint-engine", LLAMA), ("pinchpoint-gpu", ".*")):
        for name, query in choices(dashboards()[uid]).items():
            values = {**VALUES, "__range": f"{CHAPTER_SECONDS:.0f}s", "model": model}
            if found := re.fullmatch(rf"label_values\((.+), {name}\)", query):
                span = {"start": f"{end - CHAPTER_SECONDS}", "end": f"{end}"}
                match = {"match[]": substituted(found[1], values)}
                offer = set((await database.get(f"/api/v1/label/{name}/values", **match, **span))["data"])
            else:
                expr = substituted(re.fullmatch(r"query_result\((.+)\)", query)[1], values)
                result = (await database.get("/api/v1/query", query=expr, time=f"{end}"))["data"]["result"]
                offer = {sample["metric"][name] for sample in result}
            asked.offered[(database.binary, scenario, model, name)] = offer


def test_no_query_is_refused(asked: Asked) -> None:
    assert asked.refused == []


def test_no_answer_is_nan(asked: Asked) -> None:
    assert [k for k, a in asked.answers.items() if any("NaN" in sample["value"][1] for sample in a)] == []


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("scenario", ALL)
def test_every_panel_has_data_where_the_scenario_gives_it(asked: Asked, scenario: str, database: str) -> None:
    empty = []
    for uid, dashboard in dashboards().items():
        for panel in panels(dashboard):
            where = (uid, panel["title"])
            enough = any if panel["type"] == "table" or where in ANY_QUERY else all
            if scenario in WHEN.get(where, ALL) and not enough(asked.panel(database, scenario, *where)):
                empty.append(where)
    assert empty == []


def test_every_query_has_data_in_some_scenario(asked: Asked) -> None:
    silent = {key for key, _ in _queries() if "restarts" not in key[1]}
    silent -= {tuple(key[2:]) for key, answer in asked.answers.items() if answer}
    assert silent == NEVER


def test_victoria_has_an_answer_where_prometheus_has_one(asked: Asked) -> None:
    seen = defaultdict(set)
    for (database, *key), answer in asked.answers.items():
        if answer:
            seen[database].add(tuple(key))
    assert seen["prometheus"] == seen["victoria-metrics"]


def test_every_answer_bears_the_labels_that_its_legend_names(asked: Asked) -> None:
    legends = {
        (uid, panel["title"], target["refId"]): set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        for uid, dashboard in dashboards().items()
        for panel in panels(dashboard)
        for target in panel["targets"]
    }
    for (_, _, *key), answer in asked.answers.items():
        for sample in answer:
            assert legends.get(tuple(key), set()) <= sample["metric"].keys(), key


@pytest.mark.parametrize("scenario", ALL)
def test_the_fleet_counts_an_engine_in_trouble_where_there_is_one(asked: Asked, scenario: str) -> None:
    trouble = asked.value(scenario, "pinchpoint-fleet", "Engines in trouble")
    assert trouble == 0 if scenario in AT_EASE else trouble >= 1


def test_what_is_down_is_counted_where_it_is(asked: Asked) -> None:
    for title in ("Engines down", "GPUs down"):
        assert {s for s in ALL if asked.value(s, "pinchpoint-fleet", title) > 0} == {SICK_NODE}, title


@pytest.mark.parametrize("database", DATABASES)
def test_a_model_narrows_the_engines_and_all_of_them_holds_one_that_is_down(asked: Asked, database: str) -> None:
    every = asked.offered[database, SICK_NODE, ".*", "engine"]
    assert len(every) == 4
    assert SILENT_ENGINE in every
    llama = asked.offered[database, "healthy", LLAMA, "engine"]
    assert llama == {"chat-llama3.3-70b", "code-llama3.1-8b"}


@pytest.mark.parametrize("database", DATABASES)
def test_every_choice_has_something_to_offer(asked: Asked, database: str) -> None:
    assert asked.offered[database, "healthy", ".*", "job"] == {"pinchpoint"}
    assert asked.offered[database, "healthy", ".*", "instance"] == {"gpu-node-1:10770"}
    assert asked.offered[database, "healthy", ".*", "gpu"] == set("01234567")
    assert len(asked.offered[database, "healthy", ".*", "model"]) == 3
