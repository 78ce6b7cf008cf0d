"""``diagnose --compare``: recordings of a simulated node before a change and after it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pinchpoint.cli import app
from pinchpoint.simulator import write_recording


def compare(before: Path, after: Path, *more: str) -> Result:
    return CliRunner().invoke(app, ["diagnose", "--compare", str(before), str(after), *more], catch_exceptions=False)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same load on a card that is held back by heat, on well ones, and another load."""
    folder = tmp_path_factory.mktemp("played")
    for scenario in ("throttled_gpu", "healthy", "memory_wall", "idle"):
        write_recording(folder / scenario, scenario, seconds=60.0, seed=3)
    return folder


def test_a_mended_card_worked(played: Path) -> None:
    told = json.loads((result := compare(played / "throttled_gpu", played / "healthy", "--json")).stdout)
    assert (told["worked"], told["comparable"], result.exit_code) == (True, True, 0)
    assert (told["before"]["class"], told["after"]["class"]) == ("hardware", "healthy")
    assert told["before"]["tpot_seconds"] > 1.5 * told["after"]["tpot_seconds"]
    assert any("no longer hardware" in lesson for lesson in told["lessons"])


def test_the_way_back_did_not_and_says_what_is_next(played: Path) -> None:
    result = compare(played / "healthy", played / "throttled_gpu")
    assert result.exit_code == 1
    assert result.stdout.startswith("It did not work\n")
    assert "it is now hardware; next: Check airflow" in result.stdout


def test_another_load_is_not_comparable_and_says_why(played: Path) -> None:
    result = compare(played / "healthy", played / "memory_wall")
    assert result.exit_code == 2
    assert result.stdout.startswith("Not comparable\n")
    assert len(result.stderr.splitlines()) == 1
    assert "answers have" in result.stderr


@pytest.mark.parametrize("which", ["idle", "nowhere"])
def test_nothing_to_compare_is_one_line_and_exit_2(played: Path, which: str) -> None:
    result = compare(played / "healthy", played / which)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert which in result.stderr


def test_compare_stands_alone(played: Path) -> None:
    result = compare(played / "healthy", played / "healthy", "--replay", str(played / "idle"))
    assert result.exit_code == 2
    assert "nothing else" in result.stderr
