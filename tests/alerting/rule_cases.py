"""The promtool cases that are shipped beside the rules, and running them over rules that somebody changed."""

import copy
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from pinchpoint.alerting import ALERTS, Alert, rules_file

FOLDER = Path("alerts")
RULES = FOLDER / "pinchpoint.rules.yml"
TESTS = sorted((FOLDER / "tests").glob("*.test.yml"))
BY_NAME = {alert.name: alert for alert in ALERTS}
FILES = [yaml.safe_load(path.read_text()) for path in TESTS]
CASES = [case for file in FILES for case in file["tests"]]


def promtool(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = ["/usr/bin/promtool", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def named(expectation: Mapping[str, Any]) -> str:
    """The alert that an expectation is about; "" where it is about all of them."""
    if "alertname" in expectation:
        return str(expectation["alertname"])
    found = re.search(r'alertname="(\w+)"', expectation["expr"])
    return found.group(1) if found else ""


def expectations_of(alert: str) -> list[Mapping[str, Any]]:
    """What the cases expect of this alert, each firing or not."""
    every = (one for case in CASES for key in _KEYS for one in case.get(key, []))
    return [one for one in every if named(one) == alert]


def is_silence(expectation: Mapping[str, Any]) -> bool:
    return not (expectation.get("exp_samples") or expectation.get("exp_alerts"))


def cases_of(alert: str) -> list[dict[str, Any]]:
    """The cases with what they expect of this alert alone."""
    found = []
    for case in copy.deepcopy(CASES):
        for key in _KEYS:
            case[key] = [one for one in case.get(key, []) if named(one) == alert]
        if any(case[key] for key in _KEYS):
            found.append(case)
    return found


def survivors(folder: Path, wrong: Sequence[Alert]) -> list[Alert]:
    """Those of the changed alerts with which every case of theirs still passes."""
    files = []
    for number, alert in enumerate(wrong):
        place = folder / f"{number:04}"
        place.mkdir()
        (place / RULES.name).write_text(rules_file({"g": [alert]}))
        tests = {**_times_of(alert.name), "rule_files": [RULES.name], "tests": cases_of(alert.name)}
        files.append(place / "cases.test.yml")
        files[-1].write_text(yaml.safe_dump(tests))
    return [alert for alert, passed in zip(wrong, _passed(files), strict=True) if passed]


def _times_of(alert: str) -> dict[str, str]:
    """How often the rules are evaluated in the file of the alert's cases."""
    (every,) = {file["evaluation_interval"] for file in FILES if f'"{alert}"' in str(file["tests"])}
    return {"evaluation_interval": every}


def _passed(files: Iterable[Path]) -> list[bool]:
    done = promtool("test", "rules", *files)
    blocks = re.split(r"^Unit Testing:", done.stdout, flags=re.MULTILINE)[1:]
    return ["SUCCESS" in block for block in blocks]


_KEYS = ("alert_rule_test", "promql_expr_test")
