"""What is read at night is right: causes that exist, classes that can be named, commands that work."""

import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from pinchpoint.alerting import ALERTS, runbook_skeleton
from pinchpoint.cli import app
from pinchpoint.diagnosis.rules import AT_ONCE, OVER_TIME
from pinchpoint.diagnosis.upkeep import RECOVERY
from pinchpoint.diagnosis.verdict import Bottleneck
from pinchpoint.snapshot import GpuState, ProbeOutcome, ProbeSkip, Reason, ThrottleReason
from pinchpoint.sources.probe.remedy import REMEDY

ALERTING = Path("alerts")
RUNBOOKS = sorted((ALERTING / "runbooks").glob("*.md"))
CODES = {*Reason, *GpuState, *ProbeOutcome, *ProbeSkip, *ThrottleReason, *Bottleneck, *RECOVERY}
COMMANDS = typer.main.get_command(app).commands
every_runbook = pytest.mark.parametrize("page", RUNBOOKS, ids=lambda page: page.stem)


def commands() -> list[str]:
    """Each ``pinchpoint …`` that somebody is told to type, on one line."""
    texts = [page.read_text() for page in (ALERTING / "README.md", *RUNBOOKS)]
    texts += [re.sub(r"\{\{.*?}}", "TARGET", alert.description) for alert in ALERTS]
    told = [told for text in texts for told in re.findall(r"`(pinchpoint [a-z][^`…]+)`", text)]
    return told + [line.strip() for text in texts for line in re.findall(r"^ *(pinchpoint .+)$", text, re.MULTILINE)]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_has_a_runbook_that_says_what_it_means_how_to_see_what_to_do_and_what_not(alert):
    text = (ALERTING / "runbooks" / alert.runbook).read_text()
    assert text.startswith(f"# {alert.name}\n")
    parts = ("**Meaning.**", "**Impact.**", "## Check", "## Mend", "## Don't")
    assert [text.count(part) for part in parts] == [1] * len(parts)
    assert sorted(parts, key=text.index) == list(parts)
    assert re.search(r"```promql\n", text)
    assert "TODO" not in text


def test_there_is_no_runbook_without_an_alert():
    assert {page.name for page in RUNBOOKS} == {alert.runbook for alert in ALERTS}


@every_runbook
def test_a_cause_that_a_runbook_mends_is_one_that_pinchpoint_names(page):
    text = page.read_text()
    mended = re.findall(r"^(?:- |\| )((?:`\w+`(?:, )?)+)", text, re.MULTILINE)
    codes = [code for causes in mended for code in re.findall(r"`(\w+)`", causes)]
    codes += re.findall(r"[(,] ?`([a-z]+_[a-z_]+)`[),]", text)
    assert set(codes) <= CODES


def test_the_levers_are_those_of_the_classes_that_have_a_rule_and_can_persist():
    (expr,) = (alert.expr for alert in ALERTS if alert.name == "PinchpointBottleneckPersistent")
    quiet = re.search(r'class!~"([^"]+)"', expr).group(1).split("|")
    named = {rule.__name__ for rule in (*AT_ONCE, *OVER_TIME)} - set(quiet)
    text = (ALERTING / "runbooks" / "PinchpointBottleneckPersistent.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == named
    assert named <= set(Bottleneck)


def test_the_remedies_of_failing_probes_are_those_that_the_probe_gives():
    text = (ALERTING / "runbooks" / "PinchpointProbeFailing.md").read_text()
    told = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.MULTILINE))
    assert told == {outcome.value: line for outcome, line in REMEDY.items() if line}


def test_every_kind_of_command_is_found():
    assert {command.split()[1] for command in commands()} == {"diagnose", "probe", "check-config", "rules", "gpu"}


@pytest.mark.parametrize("command", sorted(set(commands())))
def test_a_command_that_somebody_is_told_to_type_is_one_that_the_program_takes(command):
    _, name, *arguments = shlex.split(command)
    COMMANDS[name].make_context(name, arguments)  # parses and refuses, runs nothing
    if name == "probe":  # a target's name means nothing without the configuration that has it
        assert "://" in command or "--config.file" in command


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_a_new_alert_s_runbook_begins_with_the_parts_that_it_needs(alert):
    text = runbook_skeleton(alert)
    assert text.startswith(f"# {alert.name}\n")
    parts = ("**Meaning.**", "**Impact.**", "## Check", "## Mend", "## Don't")
    assert sorted(parts, key=text.index) == list(parts)
    assert alert.expr.splitlines()[0] in text


def test_runbooks_that_are_missing_are_begun_and_those_that_are_there_stay(tmp_path):
    kept = tmp_path / "runbooks" / ALERTS[0].runbook
    kept.parent.mkdir()
    kept.write_text("mine")
    result = CliRunner().invoke(app, ["rules", str(tmp_path), "--runbook-skeletons"])
    assert result.exit_code == 0
    assert kept.read_text() == "mine"
    assert {page.name for page in kept.parent.iterdir()} == {alert.runbook for alert in ALERTS}
