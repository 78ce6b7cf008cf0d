"""The report of a machine's driver: every family is there, present or with the reason of its absence."""

import subprocess
import sys
from pathlib import Path

from pinchpoint.outputs.catalog import CATALOG
from tests.fakes.nvml import FakeNvml, scenarios


def test_every_family_is_told_with_a_value_or_a_reason(tmp_path: Path) -> None:
    fake = FakeNvml(tmp_path, gpus=8)
    scenarios.h100x8_nvswitch(fake)
    report = subprocess.run(
        [sys.executable, "bench/real_gpu.py", "--seconds", "6"],
        env=fake.env(), capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    rows = {line.split()[0]: line.split()[1:] for line in report.splitlines() if line.strip()}
    for metric in CATALOG:
        if metric.name.startswith("gpu"):
            series, *rest = rows[metric.name]
            assert rest, f"{metric.name} has {series} series, and neither an example nor a reason"
    assert rows["gpu_up"][0] == "8"
    assert int(rows["nvmlDeviceGetMemoryInfo"][0]) > 0
