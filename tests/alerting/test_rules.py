"""The rule files, judged by Prometheus' own promtool, and by what a tired person needs of an alert."""

import re
import textwrap

import pytest
import yaml

from pinchpoint.alerting import ALERTS, RECORDINGS, TOPICS, Alert, Links, Severity, recording_rules_file, rules_file
from pinchpoint.alerting.gpu_health_alerts import CRITICAL_XIDS, WARNING_XIDS
from pinchpoint.alerting.probe_alerts import MISCONFIGURED, REFUSED_FOR_GOOD, TURNED_AWAY, UNANSWERED, UNREACHABLE
from pinchpoint.diagnosis.card import SERIOUS_XIDS
from pinchpoint.snapshot import ProbeOutcome, Reason
from tests.alerting.docs_table import PAGE, with_table
from tests.alerting.rule_cases import BY_NAME, FOLDER, RULES, TESTS, expectations_of, is_silence, promtool

RECORDING_RULES = FOLDER / "pinchpoint.recording.rules.yml"


def rules_in(text: str) -> dict[str, dict]:
    return {rule["alert"]: rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]}


def rule_of(alert: Alert, links: Links | None = None) -> dict:
    return rules_in(rules_file({"g": [alert]}, links))[alert.name]


def test_the_committed_rules_are_the_generated_ones():
    assert RULES.read_text() == rules_file()
    assert RECORDING_RULES.read_text() == recording_rules_file()


@pytest.mark.parametrize("file", [RULES, RECORDING_RULES], ids=lambda file: file.name)
def test_promtool_takes_the_rules(file):
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", file)
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.name)
def test_the_alerts_fire_when_they_should_and_not_when_they_should_not(file):
    done = promtool("test", "rules", file)
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not(alert):
    silent = {is_silence(one) for one in expectations_of(alert.name)}
    assert silent == ({False} if alert.severity is Severity.NONE else {True, False})


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_tells_a_tired_person_what_is_wrong_and_what_to_do(alert):
    rule = rule_of(alert)
    assert set(rule["labels"]) == {"severity"}
    assert rule["annotations"].keys() == {"summary", "description", "runbook_url", "dashboard_url"}
    assert "{{" not in rule["annotations"]["summary"]
    assert rule["annotations"]["summary"].endswith(".")
    assert len(rule["annotations"]["description"]) > 80
    assert re.fullmatch(r"[A-Z0-9][^|\n{}]+\.", alert.why)


def test_the_documentation_has_every_alert_with_the_reason_of_its_threshold():
    text = PAGE.read_text()
    assert text == with_table(text)
    assert all(f"[{alert.name}](../alerts/runbooks/{alert.runbook})" in text for alert in ALERTS)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_a_dashboard_link_says_which_job_and_instance_are_meant(alert):
    """That the dashboard has what else it says is the dashboards' test."""
    whole_site = alert.needs_outside_view or alert.severity is Severity.NONE
    assert whole_site or {"job", "instance"} <= set(alert.panel_variables)


def test_names_are_unique_and_an_alert_is_in_one_topic():
    assert len(BY_NAME) == len(ALERTS) == sum(len(alerts) for alerts in TOPICS.values())


def test_an_xid_pages_or_warns_and_is_no_less_to_the_diagnosis():
    assert not set(CRITICAL_XIDS) & set(WARNING_XIDS)
    assert set(CRITICAL_XIDS) < set(SERIOUS_XIDS)


def test_a_reason_of_a_failing_probe_has_one_remedy_at_most():
    groups = [group.split("|") for group in (MISCONFIGURED, REFUSED_FOR_GOOD, UNREACHABLE, TURNED_AWAY, UNANSWERED)]
    reasons = [reason for group in groups for reason in group]
    assert len(reasons) == len(set(reasons))
    alone = {"ok", "not_streamed", "invalid_response", "empty_output", "internal"}  # PinchpointProbeFailing is enough
    assert set(reasons) | alone == set(ProbeOutcome)


def test_an_engine_without_statistics_is_told_by_reasons_that_exist():
    reasons = re.search(r'reason=~"([^"]+)"', BY_NAME["PinchpointEngineStatsMissing"].expr).group(1).split("|")
    assert set(reasons) <= set(Reason)


def test_the_page_for_a_full_kv_cache_is_as_it_was_promised():
    rule = rules_in(RULES.read_text())["PinchpointKVCacheHigh"]
    assert rule["expr"] == "pinchpoint_engine_kv_cache_usage_ratio > 0.90"
    assert (rule["for"], rule["labels"]) == ("5m", {"severity": "critical"})


def test_text_of_any_kind_survives_the_file():
    nasty = 'a: "b" \\ {{ $value }} # é\tπ'
    alert = Alert(name="A", expr='x{a="b"} > 1\n  and y', severity=Severity.INFO, summary=nasty, description=nasty)
    rule = rule_of(alert)
    assert rule["annotations"]["summary"] == rule["annotations"]["description"] == nasty
    assert rule["expr"] == alert.expr
    assert not {"for", "keep_firing_for"} & rule.keys()


@pytest.mark.parametrize(("seconds", "text"), [(60, "1m"), (90, "90s"), (3600, "60m")])
def test_durations_are_in_prometheus_units(seconds, text):
    alert = Alert(name="A", expr="x", severity=Severity.INFO, summary="s", description="d", for_seconds=seconds)
    assert rule_of(alert)["for"] == text


def test_links_lead_to_the_site_s_own_grafana_and_its_own_runbooks():
    links = Links(grafana_url="https://grafana.mysite.net/", runbook_url="https://wiki.mysite.net/runbooks/")
    told = rule_of(BY_NAME["PinchpointKVCacheHigh"], links)["annotations"]
    assert told["dashboard_url"].startswith("https://grafana.mysite.net/d/pinchpoint-engine?var-job={{ $labels.job }}&")
    assert told["runbook_url"] == "https://wiki.mysite.net/runbooks/PinchpointKVCacheHigh.md"


def test_recordings_are_named_level_metric_operation():
    assert all(re.fullmatch(r"(engine|gpu|target):pinchpoint_[a-z0-9_]+:[a-z0-9_]+", r.record) for r in RECORDINGS)
    assert len({recording.record for recording in RECORDINGS}) == len(RECORDINGS)


def test_what_is_recorded_is_what_was_so(tmp_path):
    """A share, a peak, a quantile, and none where nothing was observed."""
    labels = 'job="j", instance="a", engine="chat", replica="{}", model="m"'
    bucket = 'pinchpoint_engine_ttft_seconds_bucket{{{}, le="{}"}}'
    given = {
        f"pinchpoint_engine_kv_cache_usage_ratio{{{labels.format(0)}}}": "0.2x70 0.8 0.2x3",
        f"pinchpoint_engine_kv_cache_usage_ratio{{{labels.format(1)}}}": "0.4x80",
        'pinchpoint_bottleneck_class_seconds_total{job="j", instance="a", engine="chat", class="compute"}': "0+15x80",
        bucket.format(labels.format(0), "1"): "0+9x80",
        bucket.format(labels.format(0), "2"): "0+10x80",
        bucket.format(labels.format(0), "+Inf"): "0+10x80",
        f"pinchpoint_engine_ttft_seconds_count{{{labels.format(0)}}}": "0+10x80",
        bucket.format(labels.format(0).replace("chat", "idle"), "+Inf"): "7x80",
        f"pinchpoint_engine_ttft_seconds_count{{{labels.format(0).replace('chat', 'idle')}}}": "7x80",
    }
    engine = 'job="j", instance="a", engine="chat"'
    expected = {
        f"engine:pinchpoint_engine_kv_cache_usage_ratio:max5m{{{engine}}}": 0.8,
        f"engine:pinchpoint_engine_kv_cache_usage_ratio:p95_1h{{{engine}}}": 0.4,
        f'engine:pinchpoint_bottleneck_class:share1h{{{engine}, class="compute"}}': 0.25,
        f"engine:pinchpoint_engine_ttft_seconds:p95_5m{{{engine}}}": 1.5,
    }
    tests = [
        {"expr": series.split("{")[0], "eval_time": "72m", "exp_samples": [{"labels": series, "value": value}]}
        for series, value in expected.items()
    ]
    case = {"interval": "1m", "promql_expr_test": tests}
    case["input_series"] = [{"series": name, "values": values} for name, values in given.items()]
    (tmp_path / RECORDING_RULES.name).write_text(RECORDING_RULES.read_text())
    text = yaml.safe_dump({"rule_files": [RECORDING_RULES.name], "evaluation_interval": "1m", "tests": [case]})
    (tmp_path / "case.yml").write_text(text)
    done = promtool("test", "rules", tmp_path / "case.yml")
    assert done.returncode == 0, done.stderr + done.stdout


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
    for file in (RULES, RECORDING_RULES):
        (tmp_path / "rules" / file.name).write_text(file.read_text())
    (tmp_path / "prometheus.yml").write_text(textwrap.dedent(block))
    done = promtool("check", "config", tmp_path / "prometheus.yml")
    assert done.returncode == 0, done.stderr
    assert "2 rule files found" in done.stdout
    (job,) = yaml.safe_load(textwrap.dedent(block))["scrape_configs"]
    known = re.search(r'up\{job=~"(.+?)"\}', BY_NAME["PinchpointTargetAbsent"].expr).group(1)
    assert re.fullmatch(known, job["job_name"])
