"""The Alertmanager example, judged by amtool, and by a real Alertmanager that says whom it would tell of what."""

import asyncio
import re
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from pinchpoint.alerting import ALERTS, Severity
from tests.alerting.promql_shape import labels_of, promql
from tests.e2e.stack import Alertmanager, WebhookSink

EXAMPLE = Path("alerts/alertmanager.example.yml")
CONFIG: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
RECEIVER_BY_SEVERITY = {
    Severity.CRITICAL: "pager",
    Severity.WARNING: "tickets",
    Severity.INFO: "chat",
    Severity.NONE: "heartbeat",
}
NODE = {"job": "pinchpoint", "instance": "a:10770"}


def amtool(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = ["/usr/bin/amtool", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def uncommented() -> dict[str, Any]:
    """The example with the receivers that it shows in comments."""
    routes, receivers = EXAMPLE.read_text().split("\nreceivers:\n")
    shown = re.sub(r"^    # (  +\S.*|\w+_configs:)$", r"    \1", receivers, flags=re.MULTILINE)
    return yaml.safe_load(f"{routes}\nreceivers:\n{shown}")


def test_amtool_takes_the_example():
    done = amtool("check-config", EXAMPLE)
    assert done.returncode == 0, done.stderr


def test_the_receivers_that_it_shows_are_ones_that_alertmanager_takes(tmp_path):
    config = uncommented()
    kinds = {kind for receiver in config["receivers"] for kind in receiver if kind != "name"}
    assert kinds == {"webhook_configs", "pagerduty_configs", "slack_configs"}
    chat = next(receiver for receiver in config["receivers"] if receiver["name"] == "chat")
    assert len(chat["webhook_configs"]) == 3
    (tmp_path / "alertmanager.yml").write_text(yaml.safe_dump(config))
    done = amtool("check-config", tmp_path / "alertmanager.yml")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("severity", Severity)
def test_it_routes_by_severity(severity):
    labels = [[f"severity={severity}", f"alertname={alert.name}"] for alert in ALERTS if alert.severity is severity]
    command = ("config", "routes", "test", f"--config.file={EXAMPLE}")
    assert {amtool(*command, *each).stdout.strip() for each in labels[:2]} == {RECEIVER_BY_SEVERITY[severity]}


def names_meant_by(matchers: list[str]) -> set[str]:
    """The alerts whose name one of the matchers is about."""
    for matcher in matchers:
        label, operator, value = re.fullmatch(r'\s*(\w+)\s*(=~|!=|=)\s*"?([^"]*)"?\s*', matcher).groups()
        if label == "alertname":
            pattern = value if operator == "=~" else re.escape(value)
            return {alert.name for alert in ALERTS if re.fullmatch(pattern, alert.name)}
    return {alert.name for alert in ALERTS}


@pytest.mark.parametrize("rule", CONFIG["inhibit_rules"], ids=str)
def test_an_inhibition_says_what_must_be_equal_and_speaks_of_alerts_that_exist(rule):
    sources, targets = names_meant_by(rule["source_matchers"]), names_meant_by(rule["target_matchers"])
    assert sources
    assert targets
    assert {"job", "instance"} <= set(rule["equal"]) or "alertname" in rule["equal"]
    text = " ".join(rule["source_matchers"] + rule["target_matchers"])
    names = [name for group in re.findall(r"Pinchpoint(\w+)", text) for name in [f"Pinchpoint{group}"]]
    assert all(any(alert.name.startswith(name) for alert in ALERTS) for name in names)


@pytest.mark.parametrize("rule", CONFIG["inhibit_rules"][2:], ids=str)
def test_what_must_be_equal_is_a_label_that_the_cause_has(rule):
    """Else it is equal to what every target lacks, or to none."""
    by_name = {alert.name: alert for alert in ALERTS}
    for name in names_meant_by(rule["source_matchers"]):
        assert set(rule["equal"]) <= labels_of(promql.parse(by_name[name].expr))


def test_what_silences_a_page_is_a_page_or_stands_beside_one():
    by_name = {alert.name: alert for alert in ALERTS}
    sources = [
        names_meant_by(rule["source_matchers"])
        for rule in CONFIG["inhibit_rules"][1:]
        if any(by_name[name].severity is Severity.CRITICAL for name in names_meant_by(rule["target_matchers"]))
    ]
    assert sources
    quiet = {name for names in sources for name in names if by_name[name].severity is not Severity.CRITICAL}
    assert quiet == {"PinchpointEngineGPULost"}  # beside PinchpointGPULost


def alert(name: str, **labels: str) -> dict[str, Any]:
    (severity,) = [str(each.severity) for each in ALERTS if each.name == name]
    until = datetime.now(UTC) + timedelta(minutes=4)
    return {"labels": {"alertname": name, "severity": severity, **NODE, **labels}, "endsAt": until.isoformat()}


GIVEN = [
    alert("PinchpointEngineDown", engine="chat"),
    alert("PinchpointKVCacheHigh", engine="chat", replica="0"),
    alert("PinchpointKVCacheHigh", engine="edge", replica="0"),  # another engine: told
    alert("PinchpointGPULost", gpu="3", uuid="GPU-3", instance="b:10770"),
    alert("PinchpointXid", gpu="3", uuid="GPU-3", xid="79", instance="b:10770"),
    alert("PinchpointEngineGPULost", engine="code", gpu="3", instance="b:10770"),
    alert("PinchpointEngineStalled", engine="code", instance="b:10770"),
    alert("PinchpointEngineStalled", engine="other", instance="b:10770"),  # on other GPUs: told
    alert("PinchpointGPUThermalSlowdown", gpu="4", uuid="GPU-4", instance="b:10770"),  # another GPU: told
    alert("PinchpointProbeMisconfigured", target="tao", placement="hosted"),
    alert("PinchpointProbeFailing", target="tao", placement="hosted"),
    alert("PinchpointProbeFailing", target="local", placement="local"),
    # The daemon itself has seen the same, and something that Prometheus has not.
    alert("PinchpointKVCacheHigh", engine="edge", replica="0", source="pinchpoint"),
    alert("PinchpointGPUPowerBrake", gpu="5", source="pinchpoint"),
]
MUTED = {
    ("PinchpointKVCacheHigh", "chat", None),
    ("PinchpointXid", None, None),
    ("PinchpointEngineStalled", "code", None),
    ("PinchpointProbeFailing", None, "tao"),
}


def told(given: dict[str, Any]) -> tuple[str, str | None, str | None]:
    labels = given["labels"]
    return labels["alertname"], labels.get("engine"), labels.get("target")


async def muted_by(alertmanager: Alertmanager) -> list[dict[str, Any]]:
    """The alerts that are inhibited, as soon as there are as many as expected."""
    deadline = time.monotonic() + 20
    while True:
        every = await alertmanager.alerts()
        muted = [each for each in every if each["status"]["inhibitedBy"]]
        if len(muted) >= len(MUTED) + 1 or time.monotonic() > deadline:
            return muted
        await asyncio.sleep(0.2)


async def test_a_real_alertmanager_tells_the_cause_and_not_its_symptoms(tmp_path):
    async with WebhookSink() as human:
        quick = {"group_wait": "1s", "group_interval": "1s", "repeat_interval": "1h"}
        receivers = [{"name": r["name"], "webhook_configs": [{"url": human.url}]} for r in CONFIG["receivers"]]
        routes = [each | quick for each in CONFIG["route"]["routes"]]
        config = CONFIG | {"route": CONFIG["route"] | quick | {"routes": routes}, "receivers": receivers}
        async with Alertmanager(tmp_path, human.url, config=config) as alertmanager:
            await alertmanager.post(*GIVEN)
            muted = await muted_by(alertmanager)
            copies = [each for each in muted if each["labels"].get("source") == "pinchpoint"]
            assert [told(each) for each in copies] == [("PinchpointKVCacheHigh", "edge", None)]
            assert {told(each) for each in muted if each not in copies} == MUTED
            for name in (
                "GPUPowerBrake",
                "EngineDown",
                "GPUThermalSlowdown",
                "GPULost",
                "KVCacheHigh",
                "EngineStalled",
            ):
                await human.wait_for(f"Pinchpoint{name}", "firing")
            pages = [payload for payload in human.payloads if payload["receiver"] == "pager"]
            paged = {(told(each)[:2], each["labels"].get("source")) for page in pages for each in page["alerts"]}
            assert paged == {
                (("PinchpointEngineDown", "chat"), None),
                (("PinchpointKVCacheHigh", "edge"), None),
                (("PinchpointGPULost", None), None),
                (("PinchpointEngineStalled", "other"), None),
            }
