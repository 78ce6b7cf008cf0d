"""A text is what Prometheus would make of it, letter by letter; what is outside the subset is refused in one line."""

import re
import subprocess

import pytest
import yaml

from pinchpoint.alerting import ALERTS
from pinchpoint.alerting.template import TemplateError, compile_template, render

WHOLE = "0 1 -1 12 60 1000 1023 1024 1025 86399 90061 -3700 1e5 999999 1000000 1234567 123456789 1e9 1e18 100"
PARTS = "0.5 0.95 0.9512345 59.9 61.5 999.99 1234.5678 1.5e12 0.1 0.00123 0.0001 0.00001234 1e-7 5e-10 -0.0042"
VALUES = (*WHOLE.split(), *PARTS.split(), "0.30000000000000004", "7.03125", "NaN", "Inf", "-Inf")
TEMPLATES = (
    "plain text, 90 %",
    "{{ $value }}",
    "{{$value}}",
    "{{ $labels.name }} of {{ $labels.missing }}.",
    "{{ $value | humanize }}",
    "{{ $value | humanize1024 }}",
    "{{ $value | humanizePercentage }}",
    "{{ $value | humanizeDuration }}",
    "{{ humanize $value }}B",
    '{{ printf "%.2f" $value }}',
    '{{ $value | printf "%.3g tokens" }}',
    '{{ $labels.name | printf "engine %v" }} {{ printf "%v" $value }}',
    '{{ $value | printf "%.1e" | printf "about %v" }}',
)
NAMES = ('a"b', "ce", "line\\of", "π <&>")


def test_prometheus_makes_the_same_text_of_every_template_and_value(tmp_path):
    rules = [{"alert": f"T{n}", "expr": "x", "annotations": {"text": text}} for n, text in enumerate(TEMPLATES)]
    given = [({"name": name, "i": f"{i}-{n}"}, value) for i, value in enumerate(VALUES) for n, name in enumerate(NAMES)]
    series = [
        {"series": "x{" + ", ".join(f"{k}={yaml_text(v)}" for k, v in labels.items()) + "}", "values": value}
        for labels, value in given
    ]
    expected = [
        {
            "alertname": f"T{n}",
            "eval_time": "0m",
            "exp_alerts": [
                {"exp_labels": labels, "exp_annotations": {"text": render(text, labels, float(value))}}
                for labels, value in given
            ],
        }
        for n, text in enumerate(TEMPLATES)
    ]
    verdict(tmp_path, rules, series, expected)


def test_prometheus_makes_the_same_text_of_every_alert_of_the_catalogue(tmp_path):
    labels = {name: f"the {name}" for name in ("instance", "engine", "replica", "gpu", "uuid", "xid", "target")}
    texts = [text for alert in ALERTS for text in (alert.summary, alert.description) if "with query" not in text]
    rules = [{"alert": f"T{n}", "expr": "x", "annotations": {"text": text}} for n, text in enumerate(texts)]
    series = [{"series": "x{" + ", ".join(f'{k}="{v}"' for k, v in labels.items()) + "}", "values": "0.93"}]
    expected = [
        {
            "alertname": f"T{n}",
            "eval_time": "0m",
            "exp_alerts": [{"exp_labels": labels, "exp_annotations": {"text": render(text, labels, 0.93)}}],
        }
        for n, text in enumerate(texts)
    ]
    verdict(tmp_path, rules, series, expected)


def verdict(folder, rules, series, expected):
    (folder / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": rules}]}))
    case = {"interval": "1m", "input_series": series, "alert_rule_test": expected}
    (folder / "case.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yml"], "tests": [case]}))
    command = ["promtool", "test", "rules", "case.yml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    told = re.findall(r'Labels:(\{.*?\})\n\s+Annotations:\{text="(.*)"\}', done.stdout + done.stderr)
    texts: dict[str, list[str]] = {}  # of each alert, what was expected and what Prometheus made
    for labels, text in told:
        texts.setdefault(labels, []).append(text)
    assert {labels: both for labels, both in texts.items() if len(set(both)) > 1} == {}
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def yaml_text(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@pytest.mark.parametrize(
    "action",
    [
        "query `up` | first",
        "range $x",
        "$reason := 1",
        "$value | ",
        "$value $value",
        "humanize",
        "humanizeTimestamp $value",
        "if $value",
        "end",
        "",
        "- $value",
        'printf "%d" $value',
        'printf "%5.1f" $value',
        'printf "%g" $value',
        'printf "%.1f %.1f" $value $value',
        "$externalURL",
    ],
)
def test_what_is_outside_the_subset_is_refused_before_it_is_needed(action):
    with pytest.raises(TemplateError, match="is outside the subset") as refused:
        compile_template(f"a {{{{ {action} }}}} b")
    assert "\n" not in str(refused.value)


def test_a_template_that_does_not_end_is_refused():
    with pytest.raises(TemplateError, match=r"{{ without }}"):
        compile_template("a {{ $value }} b {{ $value")


@pytest.mark.parametrize("action", ["$labels.a | humanize", 'printf "%.1f" $labels.a', "$value | humanize | humanize"])
def test_a_text_is_no_number(action):
    with pytest.raises(TemplateError, match="is a text and no number"):
        render(f"{{{{ {action} }}}}", {"a": "text"}, 1.0)
