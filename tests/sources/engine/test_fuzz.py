"""No body of bytes breaks the reading of an exposition.

``PINCHPOINT_FUZZ_INPUTS`` makes it longer than a test run should be (``make fuzz``: a million). A failure names its
seed, with which ``python -m tests.sources.engine.fuzzing 1 SEED`` shows it again.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

INPUTS = int(os.environ.get("PINCHPOINT_FUZZ_INPUTS", "10000"))
SLACK_BYTES = 32_000_000  # the parser's bounded caches fill


@pytest.mark.timeout(120 + INPUTS // 200)
def test_no_exception_escapes_no_body_hangs_and_memory_stays_over_many_broken_bodies() -> None:
    command = [sys.executable, "-m", "tests.sources.engine.fuzzing", str(INPUTS), "0"]
    run = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-4000:]
    rounds = [json.loads(line) for line in run.stdout.splitlines()]
    assert rounds[-1]["inputs"] == INPUTS
    # Most inputs are a few lines, so both sides of the parser are met.
    assert rounds[-1]["outcomes"]["reading"] > INPUTS // 20
    assert {"not_exposition", "truncated", "metrics_missing"} <= rounds[-1]["outcomes"].keys()
    assert rounds[-1]["rss_bytes"] - rounds[1]["rss_bytes"] < SLACK_BYTES, [at["rss_bytes"] for at in rounds]
