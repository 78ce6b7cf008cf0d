"""pinchpoint with nothing but GPUs to watch, and nvitop-exporter, in turns on one fake driver.

What a scrape carries and costs, and what each shows when one GPU hangs and when one is lost. Prints tables, or JSON
with --json; progress goes to stderr. Judges nothing: exit code 0 when it could measure.
"""

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a file; the fakes are the tests'

from bench import faults, report, subjects
from bench.figures import Figure
from bench.measure import measure_bodies, measure_costs, measure_latencies

WINDOW_SECONDS = 300.0  # pinchpoint's history: memory grows until it is full


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def per_series(figures: Sequence[Figure]) -> Figure:
    """CPU by what there is to show for it."""
    by_name = {figure.what: figure for figure in figures}
    cpu = next(figure for what, figure in by_name.items() if what.startswith("CPU, scraped"))
    series = by_name["samples"]
    rounds = {
        exporter: [[1e3 * seconds / series.of(exporter).value for seconds in samples] for samples in repetitions]
        for exporter, repetitions in cpu.rounds.items()
    }
    return Figure(what="CPU per series, scraped", unit="ms/min", rounds=rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under a minute: to see that it runs, not to quote")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--no-peer", action="store_true", help="measure pinchpoint alone")
    arguments = parser.parse_args()
    warm_up, repeats, stretch, rounds, scrapes, watch, patience = (
        (3, 1, 3, 2, 10, 8, 4) if arguments.quick else (WINDOW_SECONDS, 5, 15, 10, 100, 15, 60)
    )
    peer = None if arguments.no_peer else subjects.install_peer()
    if isinstance(peer, str):
        progress(peer)
    with tempfile.TemporaryDirectory(prefix="pinchpoint-bench-") as name, contextlib.ExitStack() as running:
        folder = Path(name)
        driver = running.enter_context(subjects.Driver(folder))
        measured = [running.enter_context(subjects.pinchpoint_alone(folder, driver.environment))]
        if isinstance(peer, Path):
            measured.append(running.enter_context(subjects.peer(folder, driver.environment, peer)))
        progress(f"warming up for {warm_up:g} s")
        time.sleep(warm_up)
        figures = [
            *measure_bodies(measured),
            *measure_latencies(measured, rounds, scrapes, progress),
            *measure_costs(measured, repeats, stretch, progress),
        ]
        figures.append(per_series(figures))
        facts = []
        for fault in faults.FAULTS:
            progress(f"one GPU {fault}")
            facts += faults.observe(measured, driver, fault, watch_seconds=watch, patience_seconds=patience)
    setting = (
        f"{subjects.GPUS} fake GPUs and nothing else to watch, default intervals, {warm_up:g} s after the start"
        + (" (quick: not to quote)" if arguments.quick else "")
    )
    if arguments.json:
        print(json.dumps(report.as_json(figures, measured, setting) | {"faults": [asdict(f) for f in facts]}, indent=2))
    else:
        report.print_table(figures, measured, setting)
        report.print_facts(facts, measured)


if __name__ == "__main__":
    main()
