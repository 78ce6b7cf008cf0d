"""``pinchpoint rules`` and ``pinchpoint dashboards`` write what is committed."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from pinchpoint.cli.dashboards import dashboards
from pinchpoint.cli.rules import rules

COMMANDS = [
    (rules, "pinchpoint.rules.yml", Path("alerts")),
    (dashboards, "pinchpoint-fleet.json", Path("grafana/dashboards")),
]


def run(command, *arguments: object):
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize(("command", "file", "committed"), COMMANDS)
def test_the_file_is_written_where_it_is_asked_for_and_its_path_is_the_answer(tmp_path, command, file, committed):
    target = tmp_path / "new" / "folder"
    result = run(command, target)
    assert result.exit_code == 0
    assert str(target / file) in result.stdout.splitlines()
    assert (target / file).read_text() == (committed / file).read_text()


@pytest.mark.parametrize(("command", "file", "committed"), COMMANDS)
def test_a_folder_that_can_t_be_is_one_line_and_exit_code_2(tmp_path, command, file, committed):
    (tmp_path / "taken").write_text("")
    result = run(command, tmp_path / "taken" / "folder")
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert file in line
    assert "name a folder that you may write to" in line


@pytest.mark.parametrize("option", ["--grafana-url", "--runbook-url"])
def test_a_link_that_no_pager_can_open_is_refused_and_nothing_is_written(tmp_path, option):
    result = run(rules, tmp_path, option, "grafana.mysite.net")
    assert (result.exit_code, result.stdout, list(tmp_path.iterdir())) == (2, "", [])
    assert f"{option} grafana.mysite.net: is no URL that a pager can open" in result.stderr
