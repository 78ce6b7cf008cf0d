"""What one machine's driver tells, and what asking costs: every GPU family, present or absent with its reason.

Run it on a machine with NVIDIA GPUs: ``.venv/bin/python bench/real_gpu.py > docs/gpu-$(hostname).txt``. It starts a
``pinchpoint run`` of its own on a free loopback port, waits until the slowest tier has been asked twice, and reads
``/metrics``.
"""

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console
from rich.table import Table

from bench.report import machine
from pinchpoint.outputs.catalog import CATALOG, PREFIX
from tests.fakes.daemon import RunningDaemon

TWO_SLOW_CYCLES_SECONDS = 130.0
CONFIG = "discovery: {loopback: false}\ngpu: {processes: true}\n"

Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=TWO_SLOW_CYCLES_SECONDS, help="how long to watch")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "pinchpoint.yaml"
        config.write_text(CONFIG)
        with RunningDaemon(Path(folder), "--config.file", str(config)) as daemon:
            print(f"watching for {options.seconds:.0f} s", file=sys.stderr)
            time.sleep(options.seconds)
            samples = daemon.samples()
    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    console.print(", ".join(machine().values()))
    for labels in samples.get(f"{PREFIX}gpu_info", {}):
        console.print(" ".join(f"{name}={value}" for name, value in labels if value), markup=False)
    console.print(_families(samples))
    console.print(_calls(samples))
    if not samples.get(f"{PREFIX}gpu_up"):
        console.print("no GPU answered; see the reasons above, and run this where nvidia-smi works")
        raise SystemExit(1)


def _families(samples: Samples) -> Table:
    reasons: dict[str, set[str]] = defaultdict(set)
    for labels in samples.get(f"{PREFIX}metric_unavailable", {}):
        told = dict(labels)
        if told["source"].startswith("gpu"):
            reasons[told.get("metric", "").partition(".")[0]].add(told["reason"])
    table = Table("family", "series", "an example", "why absent", box=None, pad_edge=False, header_style="bold")
    for metric in CATALOG:
        if not metric.name.startswith("gpu"):
            continue
        found = {key: value for name in metric.series_names for key, value in samples.get(name, {}).items()}
        example = f"{next(iter(found.values())):g}" if found else ""
        why = ", ".join(sorted(reasons.get(metric.name, ()))) if not found else ""
        table.add_row(metric.name, str(len(found)), example, why or ("" if found else "nothing to tell"))
    for reason in sorted(reasons.get("", ())):
        table.add_row("(all)", "0", "", reason)
    return table


def _calls(samples: Samples) -> Table:
    table = Table("NVML call", "calls", "mean, µs", box=None, pad_edge=False, header_style="bold")
    seconds = samples.get(f"{PREFIX}gpu_nvml_call_seconds_total", {})
    for labels, calls in sorted(samples.get(f"{PREFIX}gpu_nvml_calls_total", {}).items()):
        if calls:
            table.add_row(dict(labels)["call"], f"{calls:.0f}", f"{seconds.get(labels, 0.0) / calls * 1e6:.0f}")
    return table


if __name__ == "__main__":
    main()
