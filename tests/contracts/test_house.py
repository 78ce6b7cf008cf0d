"""The import contract holds the house: it fails when somebody builds where nothing should stand."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LINT = Path(sys.executable).with_name("lint-imports")


def lint(folder: Path, name: str, content: str) -> subprocess.CompletedProcess[str]:
    """Runs the contracts over a copy of the house with one more file in it."""
    shutil.copytree("src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy("pyproject.toml", folder)
    (folder / "src/pinchpoint" / name).write_text(content)
    return subprocess.run(
        [LINT, "--no-cache"],
        cwd=folder, env={"PYTHONPATH": str(folder / "src")}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "broken"),
    [
        ("utils.py", "", "Imports point down"),
        ("snapshot/up.py", "import pinchpoint.diagnosis", "Imports point down"),
        ("diagnosis/clock.py", "import time", "Decisions are pure"),
        ("sources/host/driver.py", "import pynvml", "NVML has one door"),
        ("daemon/jobs.py", "import apscheduler", "APScheduler has one door"),
        ("sources/engine/friend.py", "import pinchpoint.sources.gpu", "Sources don't know each other"),
        ("sources/pods/friend.py", "import pinchpoint.sources.gpu", "Sources don't know each other"),
        ("outputs/web/friend.py", "import pinchpoint.outputs.exposition", "Outputs don't know each other"),
        ("outputs/web/asks.py", "import pinchpoint.sources.http", "Imports point down"),
        ("outputs/alertmanager/peek.py", "import pinchpoint.sources.engine", "Imports point down"),
        ("simulator/peek.py", "import pinchpoint.diagnosis", "The simulator judges the diagnosis"),
    ],
)
def test_a_stray_file_breaks_its_contract(tmp_path: Path, name: str, content: str, broken: str) -> None:
    result = lint(tmp_path, name, content)
    assert result.returncode != 0, result.stdout
    assert re.search(rf"{re.escape(broken)}[^\n]* BROKEN", result.stdout), result.stdout + result.stderr
