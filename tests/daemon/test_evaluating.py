"""The alerts over scenes, in simulated time: clocks that are set, restarts, defects, and what it costs."""

import time
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from pinchpoint.alerting import ALERTS, Alert, Severity
from pinchpoint.alerting.state import State, States
from pinchpoint.daemon.evaluating import OUTAGE_TOLERANCE_SECONDS, WARM_UP_SECONDS, Evaluation, Evaluator
from pinchpoint.daemon.wording import Wording
from pinchpoint.outputs.scene import Scene
from tests.outputs.exposition.scenes import full_scene

UNIX = 1_750_000_000.0
INTERVAL = 15.0
FULL = "PinchpointKVCacheHigh"
WORDS: dict[str, Any] = {"severity": Severity.WARNING, "summary": "s", "description": "{{ $value }}"}


def scene(usage: float | None, offset: float = UNIX) -> Scene:
    """One engine whose KV cache is so full; ``None``: it is not read."""
    whole = full_scene()
    engines = tuple(
        replace(e, replicas=tuple(replace(r, kv_cache_usage_ratio=usage) for r in e.replicas))
        for e in whole.snapshot.engines
    )
    snapshot = replace(whole.snapshot, engines=engines if usage is not None else ())
    return replace(whole, snapshot=snapshot, unix_offset_seconds=offset)


class Node:
    """Evaluates every 15 s on a private clock; ``offset`` is what the system's clock is ahead of it."""

    def __init__(self, alerts: tuple[Alert, ...] = ALERTS, at: float = 1000.0) -> None:
        self.evaluator = Evaluator(alerts, {"job": "pinchpoint", "instance": "node"})
        self.at, self.offset = at, UNIX
        self.last: Evaluation | None = None

    def go(self, usage: float | None, times: int = 1) -> "Node":
        for _ in range(times):
            self.last = self.evaluator.evaluate(scene(usage, self.offset), self.at, INTERVAL)
            self.at += INTERVAL
        return self

    def state(self, name: str = FULL) -> State | None:
        assert self.last is not None
        states = [each.state for alert, _, each in self.last.states.each() if alert == name]
        return states[0] if states else None

    def restarted(self, after_seconds: float) -> "Node":
        """The next process, on a private clock of its own."""
        assert self.last is not None
        unix = self.at + self.offset - INTERVAL + after_seconds
        new = Node(at=5.0)
        new.offset = unix - new.at
        new.evaluator.recall(self.last.states, unix)
        return new


def test_a_full_kv_cache_waits_five_minutes_fires_and_ends_five_minutes_after_it() -> None:
    node = Node().go(0.95, 20)
    assert node.state() is State.PENDING
    assert node.go(0.95).state() is State.FIRING
    assert node.go(0.5, 20).state() is State.FIRING
    assert node.go(0.5).state() is State.RESOLVED


@pytest.mark.parametrize("hour", [3600.0, -3600.0])
def test_a_clock_that_is_set_by_an_hour_neither_pages_nor_ends_a_page_nor_blinds(hour: float) -> None:
    node = Node().go(0.95, 5)
    node.offset += hour
    with capture_logs() as lines:
        assert node.go(0.95, 15).state() is State.PENDING
        assert node.go(0.95).state() is State.FIRING
        node.offset -= hour
        assert node.go(0.95).state() is State.FIRING
    assert sum("clock was set" in line["event"] for line in lines) == 2
    assert not any(each.after is State.RESOLVED for each in node.last.transitions)  # type: ignore[union-attr]


def test_an_increase_looks_over_a_clock_that_was_set() -> None:
    grows = Alert(name="Grows", expr="increase(pinchpoint_job_runs_total[2m]) > 7", **WORDS)
    node = Node((grows,))
    for run in range(30):
        if run == 20:
            node.offset += 3600
        report = replace(full_scene().self_report, jobs=(replace(full_scene().self_report.jobs[0], runs_total=run),))
        told = replace(scene(0.5, node.offset), self_report=report)
        node.last = node.evaluator.evaluate(told, node.at, INTERVAL)
        node.at += INTERVAL
        assert (node.state("Grows") is State.FIRING) == (run >= 8), run


def test_a_restart_keeps_the_page_until_there_is_data_and_ends_it_when_there_is() -> None:
    node = Node().go(0.95, 21).restarted(after_seconds=40)
    assert node.go(None, int(WARM_UP_SECONDS / INTERVAL)).state() is State.FIRING  # not found yet
    assert node.last is not None
    assert node.last.transitions == () or all(each.alert != FULL for each in node.last.transitions)
    assert node.go(0.95, 30).state() is State.FIRING
    assert node.go(0.5, 22).state() is State.RESOLVED


def test_a_restart_keeps_the_clock_of_what_waits() -> None:
    node = Node().go(0.95, 11).restarted(after_seconds=30)  # 150 s of 300
    assert node.go(None, 2).state() is State.PENDING
    assert node.go(0.95, 8).state() is State.PENDING
    assert node.go(0.95, 3).state() is State.FIRING


def test_what_is_older_than_an_hour_is_forgotten_and_so_are_alerts_that_are_no_more() -> None:
    node = Node().go(0.95, 21).restarted(after_seconds=OUTAGE_TOLERANCE_SECONDS + 1)
    assert node.go(0.95).state() is State.PENDING
    old = Evaluator((Alert(name="Old", expr="vector(1)", **WORDS),), {})
    states = old.evaluate(scene(0.5), 1000.0, INTERVAL).states
    new = Node()
    new.evaluator.recall(states, UNIX + 1000)
    assert new.go(0.5).state("Old") is None


def test_an_expression_that_fails_costs_its_own_alert_alone_and_two_lines() -> None:
    two = "pinchpoint_gpu_up + on () pinchpoint_gpu_up"  # many to many
    broken = Alert(name="Broken", expr=f"pinchpoint_engine_up == 1 or ({two})", **WORDS)
    node = Node((broken, *ALERTS))
    with capture_logs() as lines:
        node.go(0.95, 3)
        assert node.last is not None
        assert node.last.failures.keys() == {"Broken"}
        assert node.state() is State.PENDING
        assert node.state("PinchpointWatchdog") is State.FIRING
    assert [(line["log_level"], line["alert"]) for line in lines] == [("error", "Broken")]


def test_alerts_that_only_somebody_outside_can_see_are_left_out() -> None:
    names = Evaluator(ALERTS, {}).alerts.keys()
    assert "PinchpointTargetAbsent" not in names
    assert "PinchpointWatchdog" in names
    assert len(names) >= len(ALERTS) - 2


def test_labels_are_those_of_a_scrape_and_the_texts_are_rendered() -> None:
    node = Node().go(0.95, 21)
    assert node.last is not None
    wording = Wording(
        alerts=node.evaluator.alerts,
        labels={"cluster": "lab", "job": "pinchpoint", "instance": "node"},
        grafana_url="https://grafana.example/",
        runbook_url="https://wiki.example/runbooks/",
    )
    told = {notice.labels["alertname"]: notice for notice in wording.notices(node.last.states)}
    page, watchdog = told[FULL], told["PinchpointWatchdog"]
    expected = {"severity": "critical", "source": "pinchpoint", "cluster": "lab", "engine": "chat", "instance": "node"}
    assert expected.items() <= page.labels.items()
    assert watchdog.labels["instance"] == "node"
    assert "95%" in page.annotations["description"]
    assert page.annotations["runbook_url"] == f"https://wiki.example/runbooks/{FULL}.md"
    assert page.annotations["dashboard_url"].startswith("https://grafana.example/d/")
    assert "{{" not in page.annotations["dashboard_url"]
    assert page.starts_at == pytest.approx(UNIX + 1000 + 20 * INTERVAL)
    reports = wording.reports(node.last.states)
    assert reports[0].alert != "PinchpointWatchdog"
    assert [each.state for each in reports] == sorted(each.state for each in reports)


def test_the_whole_catalogue_over_a_large_node_takes_milliseconds() -> None:
    """16 engines and 8 GPUs, an hour of history. The limit is loose: two busy cores share everything."""
    evaluator = Evaluator(ALERTS, {"job": "pinchpoint", "instance": "node"})
    big = replace(full_scene(gpus=7, engines=16), unix_offset_seconds=UNIX)
    cpu = []
    for number in range(240):
        began = time.thread_time()
        evaluation = evaluator.evaluate(big, 1000 + number * INTERVAL, INTERVAL)
        cpu.append(time.thread_time() - began)
    assert evaluation.refused_series == 0
    assert sorted(cpu[-20:])[10] < 0.1


def test_states_of_nothing_are_nothing() -> None:
    node = Node()
    node.evaluator.recall(States(), UNIX)
    assert node.go(0.5).state() is None
