"""The benchmark runs and prints rows that make sense. How fast anything is depends on the machine and isn't asked."""

import json
import subprocess
import sys


def test_the_quick_run_prints_sane_rows():
    ended = subprocess.run(
        [sys.executable, "bench/scrape.py", "--quick", "--json", "--no-peer"],
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert list(report["exporters"]) == ["pinchpoint"]
    assert all(report["machine"].values())
    figures = {figure["what"]: figure for figure in report["figures"]}
    values = {what: figure["exporters"]["pinchpoint"] for what, figure in figures.items()}
    assert all(0 < value["low"] <= value["value"] <= value["high"] for value in values.values()), values
    for what, value in values.items():
        if what.startswith("p50"):
            assert value["value"] <= values[what.replace("p50", "p99")]["value"]
    assert values["samples"]["value"] > 1000, "eight GPUs and four engines"
    assert values["body, text, gzip"]["value"] < values["body, text"]["value"]
    for figure in figures.values():
        assert figure["met"] == (
            None if figure["aim"] is None else figure["exporters"]["pinchpoint"]["value"] <= figure["aim"]
        )
