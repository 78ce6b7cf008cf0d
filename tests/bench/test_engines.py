"""The benchmark of many engines runs and prints rows that make sense. How fast anything is isn't asked."""

import json
import subprocess
import sys

from bench.engine_body import SERIES, Body
from pinchpoint.snapshot import EngineTarget
from pinchpoint.sources.engine import reading_from_body


def test_the_quick_run_prints_sane_tables():
    ended = subprocess.run(
        [sys.executable, "bench/engines.py", "--quick", "--json", "--engines", "20"],
        check=False,
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert ended.returncode == 0, ended.stderr
    scraping, telling, parsing = json.loads(ended.stdout)
    assert list(scraping["exporters"]) == ["pinchpoint", "vmagent"]
    assert list(parsing["exporters"]) == ["pinchpoint", "prometheus_client"]
    figures = {figure["what"]: figure["exporters"] for figure in scraping["figures"]}
    for exporter in scraping["exporters"]:
        assert figures["memory (RSS)"][exporter]["value"] > 1
        assert 1 < figures["longest time between two scrapes of an engine"][exporter]["value"] < 10
    told = {figure["what"]: figure["exporters"]["pinchpoint"]["value"] for figure in telling["figures"]}
    assert told["samples"] > 20 * 100, "twenty engines, a hundred samples of each at the least"
    assert told["body, OpenMetrics, gzip"] < told["body, text"]
    for figure in parsing["figures"]:
        assert all(0 < each["low"] <= each["value"] <= each["high"] for each in figure["exporters"].values())


def test_an_engine_of_the_benchmark_is_a_vllm_whose_every_number_moves_and_no_histogram_breaks():
    body, target = Body(7), EngineTarget(engine="chat", url="http://127.0.0.1")
    one, other = body.answer(), body.answer()
    lines = [[line for line in answer.decode().splitlines() if not line.startswith("#")] for answer in (one, other)]
    assert len(lines[0]) == len(lines[1]) == SERIES
    moved = sum(before != after for before, after in zip(*lines, strict=True))
    standing = sum("_created" in line for line in lines[0])
    assert moved > 0.95 * (SERIES - standing) - 20
    before, after = (reading_from_body(target, answer, None, 1.0) for answer in (one, other))
    assert after.warnings == ()
    assert after.replicas[0].ttft_seconds.since(before.replicas[0].ttft_seconds).count > 0
