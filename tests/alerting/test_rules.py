"""The rules, judged by Prometheus' own promtool and amtool."""

import re
import subprocess
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from pinchpoint.alerting import ALERTS, Alert, Severity, rules_file
from pinchpoint.alerting.gpu_alerts import CRITICAL_XIDS, WARNING_XIDS
from pinchpoint.diagnosis.card import SERIOUS_XIDS

FOLDER = Path("alerts")
RULES = FOLDER / "pinchpoint.rules.yml"
TESTS = FOLDER / "pinchpoint.rules.test.yml"


def promtool(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = ["/usr/bin/promtool", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rules_in(text: str) -> dict[str, dict]:
    (group,) = yaml.safe_load(text)["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def test_the_committed_rules_are_the_generated_ones():
    assert RULES.read_text() == rules_file(ALERTS)


def test_promtool_takes_the_rules():
    done = promtool("check", "rules", RULES)
    assert done.returncode == 0, done.stderr + done.stdout


def test_the_alerts_fire_when_they_should_and_not_when_they_should_not():
    done = promtool("test", "rules", TESTS)
    assert done.returncode == 0, done.stderr + done.stdout


BY_NAME = {alert.name: alert for alert in ALERTS}
WRONG_EXPRESSIONS = [
    ("PinchpointKVCacheHigh", "> 0.90", ">= 0.90"),
    ("PinchpointKVCacheHigh", "> 0.90", "> 0.96"),
    ("PinchpointEngineDown", "== 0", "== 1"),
    ("PinchpointGPULost", "== 0", "== 1"),
    ("PinchpointGPUsMissing", "<", "<="),
    ("PinchpointGPUHardwareSlowdown", "hw_thermal_slowdown|", "hw_thermal_slowdown|sw_power_cap|"),
    ("PinchpointGPUHardwareSlowdown", "|hw_power_brake", ""),
    ("PinchpointXid", "79|", ""),
    ("PinchpointXid", "48|", "48|31|"),
    ("PinchpointXid", "< 1800", "< 180000"),
    ("PinchpointXid", "< 1800", "< 60"),
    ("PinchpointXid", "max without (source) ", ""),
    ("PinchpointXidMemory", "92|94", "92"),
    ("PinchpointXidMemory", "92|94", "92|94|79"),
    ("PinchpointGPUMemoryErrors", '"uncorrectable"', '"correctable"'),
    ("PinchpointGPUMemoryErrors", "> 0", "> 1"),
    ("PinchpointGPURowRemapFailure", "failure", "failure|pending"),
    ("PinchpointGPURowRemapFailure", "failure", "pending"),
    ("PinchpointGPUMemoryRepairPending", "\nor", "\nand"),
    ("PinchpointGPURecoveryNeeded", "none|", ""),
    ("PinchpointGPURecoveryNeeded", "|drain_.*", ""),
    ("PinchpointGPUDrainAdvised", "drain_.*", ".*"),
    ("PinchpointGPUPCIeDegraded", "<", "<="),
    ("PinchpointGPUPCIeDegraded", "unified", "framebuffer"),
    ("PinchpointGPUPaused", "== 1", "== 0"),
    ("PinchpointProbeFailing", "> 0.5", ">= 0.4"),
    ("PinchpointProbeFailing", "[10m]) >= 3", "[10m]) >= 1"),
    ("PinchpointProbeFailing", "failures) >= 3", "failures) >= 2"),
    ("PinchpointProbeFailing", "failures) >= 3", "failures) >= 4"),
    ("PinchpointProbeFailing", "sum without (reason)", "sum without (placement)"),
    ("PinchpointProbeFailing", "max without (reason)", "max without (placement)"),
    ("PinchpointProbeFailing", "auth|quota", "auth"),
    ("PinchpointProbeFailing", "auth|quota", ".*"),
    ("PinchpointBottleneckPersistent", "> 1440", "> 600"),
    ("PinchpointBottleneckPersistent", "unknown|no_data|idle|healthy", "unknown|no_data|idle"),
    ("PinchpointConfigReloadFailed", "== 0", "== 1"),
    ("PinchpointTargetAbsent", " unless on ()", " or on ()"),
    ("PinchpointTargetAbsent", 'up{job=~".*pinchpoint.*"} == 0\n', 'up{job=~".*nothing.*"} == 0\n'),
    ("PinchpointTargetAbsent", "absent(pinchpoint_build_info)", "absent(up)"),
]
WRONG = [
    *[
        replace(BY_NAME[name], expr=BY_NAME[name].expr.replace(right, wrong))
        for name, right, wrong in WRONG_EXPRESSIONS
    ],
    *[replace(a, for_seconds=factor * a.for_seconds) for a in ALERTS if a.for_seconds for factor in (0, 4)],
    *[replace(alert, keep_firing_for_seconds=0) for alert in ALERTS if alert.keep_firing_for_seconds],
    *[replace(alert, severity=Severity.WARNING) for alert in ALERTS if alert.severity is Severity.CRITICAL],
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong.name}-{wrong.expr}-{wrong.for_seconds}")
def test_a_wrong_rule_does_not_pass_its_cases(tmp_path, wrong):
    assert wrong != BY_NAME[wrong.name]
    cases = yaml.safe_load(TESTS.read_text())
    cases["tests"] = [case for case in cases["tests"] if wrong.name in str(case)]
    (tmp_path / TESTS.name).write_text(yaml.safe_dump(cases))
    (tmp_path / RULES.name).write_text(rules_file([wrong]))
    assert promtool("check", "rules", tmp_path / RULES.name).returncode == 0
    done = promtool("test", "rules", tmp_path / TESTS.name)
    assert done.returncode == 1
    assert "FAILED" in done.stdout + done.stderr


def test_amtool_takes_the_example_and_it_routes_by_severity():
    example = FOLDER / "alertmanager.example.yml"
    check = subprocess.run(["/usr/bin/amtool", "check-config", example], capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stderr
    for labels, receiver in {
        ("severity=critical", "alertname=PinchpointKVCacheHigh"): "pager",
        ("severity=warning", "alertname=PinchpointProbeFailing"): "tickets",
        ("severity=info", "alertname=PinchpointBottleneckPersistent"): "chat",
        ("severity=none", "alertname=PinchpointWatchdog"): "heartbeat",
    }.items():
        command = ["/usr/bin/amtool", "config", "routes", "test", f"--config.file={example}", *labels]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.stdout.strip() == receiver


def test_every_inhibition_says_what_must_be_equal():
    rules = yaml.safe_load((FOLDER / "alertmanager.example.yml").read_text())["inhibit_rules"]
    assert rules
    assert all({"job", "instance"} <= set(rule["equal"]) for rule in rules)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_tells_a_tired_person_what_is_wrong_and_what_to_do(alert):
    rule = rules_in(rules_file([alert]))[alert.name]
    assert set(rule["labels"]) == {"severity"}
    assert rule["annotations"].keys() == {"summary", "description", "runbook_url", "dashboard_url"}
    assert "{{" not in rule["annotations"]["summary"]
    assert rule["annotations"]["summary"].endswith(".")
    assert len(rule["annotations"]["description"]) > 80


def test_an_xid_pages_or_warns_and_is_no_less_to_the_diagnosis():
    assert not set(CRITICAL_XIDS) & set(WARNING_XIDS)
    assert set(CRITICAL_XIDS) < set(SERIOUS_XIDS)


def test_the_page_for_a_full_kv_cache_is_as_it_was_promised():
    rule = rules_in(RULES.read_text())["PinchpointKVCacheHigh"]
    assert rule["expr"] == "pinchpoint_engine_kv_cache_usage_ratio > 0.90"
    assert (rule["for"], rule["labels"]) == ("5m", {"severity": "critical"})


PROBES = 'job="j", instance="a", target="hosted 1", placement="hosted"'
FAILING = {
    "lately by auth. That is this target's own key, account, model or URL: mend the configuration.": {
        f'pinchpoint_probe_consecutive_failures{{{PROBES}, reason="auth"}}': "1x20"
    },
    "lately by stalled. Users see the same: look at the engine's log": {
        f'pinchpoint_probe_consecutive_failures{{{PROBES}, reason="stalled"}}': "3x20"
    },
    "lately by overloaded. There is too much load, from us or from others:": {  # the last one went well
        f"pinchpoint_probe_requests_total{{{PROBES}}}": "0+10x20",
        f'pinchpoint_probe_failures_total{{{PROBES}, reason="reset"}}': "0+1x20",
        f'pinchpoint_probe_failures_total{{{PROBES}, reason="overloaded"}}': "0+8x20",
    },
}


@pytest.mark.parametrize(("words", "series"), FAILING.items())
def test_the_text_of_failing_probes_names_the_reason_and_what_to_do(tmp_path, words, series):
    case = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        # None is expected, so that promtool prints the one that there is.
        "alert_rule_test": [{"alertname": "PinchpointProbeFailing", "eval_time": "15m", "exp_alerts": []}],
    }
    (tmp_path / RULES.name).write_text(rules_file([BY_NAME["PinchpointProbeFailing"]]))
    (tmp_path / "case.yml").write_text(yaml.safe_dump({"rule_files": [RULES.name], "tests": [case]}))
    done = promtool("test", "rules", tmp_path / "case.yml")
    assert f"Probes of hosted 1 (hosted) keep failing, {words}" in (done.stdout + done.stderr).replace('\\"', '"')


def test_text_of_any_kind_survives_the_file():
    nasty = 'a: "b" \\ {{ $value }} # é\tπ'
    alert = Alert(name="A", expr='x{a="b"} > 1\n  and y', severity=Severity.INFO, summary=nasty, description=nasty)
    rule = rules_in(rules_file([alert]))["A"]
    assert rule["annotations"]["summary"] == rule["annotations"]["description"] == nasty
    assert rule["expr"] == alert.expr
    assert not {"for", "keep_firing_for"} & rule.keys()


@pytest.mark.parametrize(("seconds", "text"), [(60, "1m"), (90, "90s"), (3600, "60m")])
def test_durations_are_in_prometheus_units(seconds, text):
    alert = Alert(name="A", expr="x", severity=Severity.INFO, summary="s", description="d", for_seconds=seconds)
    assert rules_in(rules_file([alert]))["A"]["for"] == text


def test_links_lead_to_the_site_s_own_grafana_and_its_own_runbooks():
    text = rules_file(ALERTS, "https://grafana.mysite.net/", "https://wiki.mysite.net/runbooks/")
    links = rules_in(text)["PinchpointKVCacheHigh"]["annotations"]
    assert links["dashboard_url"].startswith(
        "https://grafana.mysite.net/d/pinchpoint-overview?var-instance={{ $labels.instance }}"
    )
    assert links["runbook_url"] == "https://wiki.mysite.net/runbooks/PinchpointKVCacheHigh.md"


def test_a_full_cache_that_nobody_waits_for_is_told_apart_from_one_that_is_the_bottleneck(tmp_path):
    """The runbook's first query, over one engine of each kind and one whose cache has room."""
    runbook = (FOLDER / "runbooks" / BY_NAME["PinchpointKVCacheHigh"].runbook).read_text()
    query = re.search(r"```promql\n\s*(.+)\n", runbook).group(1)
    series = {"waited_for": (0.99, 1), "nobody_waits": (0.95, 0), "has_room": (0.5, 0)}
    labels = 'job="j", instance="a", engine="{}"'
    given = [
        {"series": f"{metric}{{{labels.format(engine)}, {more}}}", "values": f"{value}x4"}
        for engine, values in series.items()
        for metric, more, value in (
            ("pinchpoint_engine_kv_cache_usage_ratio", 'replica="0", model="m"', values[0]),
            ("pinchpoint_bottleneck", 'class="kv_capacity"', values[1]),
        )
    ]
    expected = [
        {"labels": f'pinchpoint_bottleneck{{{labels.format(engine)}, class="kv_capacity"}}', "value": value}
        for engine, value in (("waited_for", 1), ("nobody_waits", 0))
    ]
    case = {"interval": "1m", "input_series": given}
    case["promql_expr_test"] = [{"expr": query, "eval_time": "2m", "exp_samples": expected}]
    (tmp_path / "case.yml").write_text(yaml.safe_dump({"tests": [case]}))
    done = promtool("test", "rules", tmp_path / "case.yml")
    assert done.returncode == 0, done.stderr + done.stdout


def test_the_prometheus_configuration_of_the_readme_is_one_and_its_job_is_the_one_that_the_alerts_know(tmp_path):
    block = re.search(r"```yaml\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL).group(1)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / RULES.name).write_text(RULES.read_text())
    (tmp_path / "prometheus.yml").write_text(textwrap.dedent(block))
    done = promtool("check", "config", tmp_path / "prometheus.yml")
    assert done.returncode == 0, done.stderr
    assert "1 rule files found" in done.stdout
    (job,) = yaml.safe_load(textwrap.dedent(block))["scrape_configs"]
    assert re.fullmatch(
        re.search(r'up\{job=~"(.+?)"\}', BY_NAME["PinchpointTargetAbsent"].expr).group(1), job["job_name"]
    )
