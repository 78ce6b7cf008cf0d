"""Nothing grows, however often everything goes wrong.

``PINCHPOINT_SOAK_CYCLES`` makes it longer than a test run should be: ``make soak``.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CYCLES = int(os.environ.get("PINCHPOINT_SOAK_CYCLES", "6000"))
WARM_UP_ROUNDS = 2  # allocators and caches fill
SLACK_BYTES = 1_500_000
SLACK_OBJECTS = 1000  # a worker may be anywhere in its cycle


@pytest.mark.timeout(90 + CYCLES // 20)
def test_memory_threads_and_files_stay_where_they_are_over_many_cycles_of_every_scenario(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.sources.gpu.soak", str(tmp_path), str(CYCLES)]
    with (tmp_path / "log").open("w") as log:
        soak = subprocess.run(
            command, cwd=Path(__file__).parents[3], stdout=subprocess.PIPE, stderr=log, text=True, check=False
        )
    assert soak.returncode == 0, (tmp_path / "log").read_text()[-4000:]
    rounds = [json.loads(line) for line in soak.stdout.splitlines() if line.startswith('{"cycles"')]
    warm, last = rounds[WARM_UP_ROUNDS], rounds[-1]
    assert len(rounds) > WARM_UP_ROUNDS + 1
    assert last["cycles"] >= CYCLES
    for what in ("threads", "files", "samples", "event_sets", "inits"):
        assert {at[what] for at in rounds} == {rounds[0][what]}, f"{what}: {[at[what] for at in rounds]}"
    assert last["rss_bytes"] - warm["rss_bytes"] < SLACK_BYTES, [at["rss_bytes"] for at in rounds]
    assert last["objects"] - warm["objects"] < SLACK_OBJECTS, [at["objects"] for at in rounds]
