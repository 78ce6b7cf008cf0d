"""Real Prometheus' rules over the samples of scenes, in virtual time: what would have fired at each evaluation.

By ``promtool test rules``, which evaluates with Prometheus' own engine. Its expectations are ours: it says where they
differ.
"""

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from pinchpoint.outputs.exposition import SeriesSample

RULES = Path("alerts/pinchpoint.rules.yml")
_RANGE = re.compile(r"\[(\d+)([smh])\]")
_MILLISECONDS = {"s": 1000, "m": 60_000, "h": 3_600_000}

Batch = Mapping[str, float]  # a series in PromQL's words, and its value
Firing = Mapping[str, Sequence[Mapping[str, str]]]  # the labels of what fires, by the alert's name


def batch_of(samples: Sequence[SeriesSample], target: Mapping[str, str]) -> Batch:
    """The samples of one scrape, of each series the first."""
    found: dict[str, float] = {}
    for name, labels, values, value in samples:
        every = {**dict(zip(labels, values, strict=True)), **target}
        found.setdefault(
            f"{name}{{{','.join(f'{key}={_quoted(text)}' for key, text in every.items() if text)}}}", value
        )
    return found


def disagreement(
    folder: Path, interval_seconds: int, batches: Sequence[Batch], expected: Sequence[Firing], left_out: set[str]
) -> str:
    """What promtool says where the shipped rules fire otherwise than ``expected``, evaluation by evaluation; empty
    where they agree. ``left_out`` are alerts that nothing is expected of."""
    document = yaml.safe_load(RULES.read_text())
    rules = [rule for group in document["groups"] for rule in group["rules"] if "alert" in rule]
    for rule in rules:
        del rule["annotations"]  # texts have their own parity
        rule["expr"] = _RANGE.sub(_without_its_left_end, rule["expr"])
    (folder / "rules.yml").write_text(yaml.safe_dump(document))
    interval = f"{interval_seconds}s"
    checks = [
        {
            "eval_time": f"{number * interval_seconds}s",
            "alertname": rule["alert"],
            "exp_alerts": [{"exp_labels": dict(labels)} for labels in firing.get(rule["alert"], ())],
        }
        for number, firing in enumerate(expected)
        for rule in rules
        if rule["alert"] not in left_out
    ]
    test: dict[str, Any] = {
        "rule_files": [str((folder / "rules.yml").absolute())],
        "evaluation_interval": interval,
        "tests": [{"interval": interval, "input_series": _input(batches), "alert_rule_test": checks}],
    }
    (folder / "test.yml").write_text(yaml.dump(test, Dumper=yaml.CSafeDumper))
    ran = subprocess.run(
        ["promtool", "test", "rules", str(folder / "test.yml")],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return "" if ran.returncode == 0 else (ran.stdout + ran.stderr)[-4000:]


def _input(batches: Sequence[Batch]) -> list[dict[str, str]]:
    names = dict.fromkeys(name for batch in batches for name in batch)
    return [{"series": name, "values": " ".join(_values(name, batches))} for name in names]


def _values(name: str, batches: Sequence[Batch]) -> list[str]:
    """A series that is missing in a scrape is stale from then on."""
    found: list[str] = []
    for batch in batches:
        if name in batch:
            found.append(repr(batch[name]))
        else:
            found.append("stale" if found and found[-1] not in ("stale", "_") else "_")
    return found


def _without_its_left_end(found: re.Match[str]) -> str:
    """Prometheus 2 counts the sample at the left end of a range, Prometheus 3 (and pinchpoint) does not."""
    return f"[{int(found[1]) * _MILLISECONDS[found[2]] - 1}ms]"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", r"\\").replace('"', r"\"")
    return f'"{escaped}"'
