"""The benchmark of an explanation runs and prints rows that make sense. How fast anything is isn't asked."""

import json
import subprocess
import sys


def test_the_quick_run_prints_sane_figures():
    ended = subprocess.run(
        [sys.executable, "bench/replay.py", "--quick", "--json"],
        check=False,
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert "quick: not to quote" in told["setting"]
    values = {figure["what"]: figure["exporters"]["pinchpoint"]["value"] for figure in told["figures"]}
    assert len(values) == 4
    assert all(value > 0 for value in values.values())
    replay, cpu = (value for what, value in values.items() if "--replay" in what)
    assert cpu < 1.5 * replay, "one process, one thread"
