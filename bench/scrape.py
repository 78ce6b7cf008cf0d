"""What a scrape of pinchpoint takes and what the daemon costs, beside nvitop-exporter on the same fake driver.

Prints a table, or JSON with --json; progress goes to stderr. Judges nothing: exit code 0 when it could measure.
"""

import argparse
import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a file; the fakes are the tests'

from bench import report, subjects
from bench.measure import measure_bodies, measure_costs, measure_latencies

WINDOW_SECONDS = 300.0  # pinchpoint's history: memory grows until it is full


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about 20 s: to see that it runs, not to quote")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--no-peer", action="store_true", help="measure pinchpoint alone")
    arguments = parser.parse_args()
    warm_up, repeats, stretch, rounds, scrapes = (
        (3, 1, 3, 2, 20) if arguments.quick else (WINDOW_SECONDS, 5, 15, 10, 100)
    )
    peer = None if arguments.no_peer else subjects.install_peer()
    if isinstance(peer, str):
        progress(peer)
    with tempfile.TemporaryDirectory(prefix="pinchpoint-bench-") as name, contextlib.ExitStack() as running:
        folder = Path(name)
        environment = running.enter_context(subjects.Driver(folder)).environment
        measured = [running.enter_context(subjects.pinchpoint(folder, environment))]
        if isinstance(peer, Path):
            measured.append(running.enter_context(subjects.peer(folder, environment, peer)))
        progress(f"warming up for {warm_up:g} s")
        time.sleep(warm_up)
        figures = [
            *measure_latencies(measured, rounds, scrapes, progress),
            *measure_bodies(measured),
            *measure_costs(measured, repeats, stretch, progress),
        ]
    setting = (
        f"{subjects.GPUS} fake GPUs, {subjects.ENGINES} simulated engines, {subjects.PROBES} probe targets, default "
        f"intervals, {warm_up:g} s after the start" + (" (quick: not to quote)" if arguments.quick else "")
    )
    if arguments.json:
        print(json.dumps(report.as_json(figures, measured, setting), indent=2))
    else:
        report.print_table(figures, measured, setting)


if __name__ == "__main__":
    main()
