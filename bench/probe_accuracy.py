"""How true a probe's numbers are: pinchpoint's prober against a server that knows, and servebench against the same.

Prints a table, or JSON with --json; progress goes to stderr. Judges nothing: exit code 0 when it could measure.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a file

from rich.console import Console
from rich.table import Table

from bench import probe_clients as clients
from bench import subjects
from bench.figures import Figure, Spread, p99
from bench.probe_clients import Sample
from bench.report import machine
from bench.timed_server import TPOT_SECONDS, TTFT_SECONDS

STALL_SECONDS = (
    0.050  # a server that misses a moment by more was stalled: such a run measures the machine, not a client
)
ATTEMPTS = 5
BIAS_AIMS_MS = {1: 1.0, 20: 2.0, 100: 5.0}  # by concurrency
TPOT_AIM_PERCENT, LAG_AIM_MS = 0.5, 5.0

Client = Callable[[str, int, int], list[Sample]]


@dataclass(slots=True)
class Rounds:
    """The valid runs of one client at one concurrency, and how many were thrown away since the server had stalled."""

    runs: list[list[Sample]]
    thrown_away: int = 0


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def timed_server() -> Iterator[str]:
    """Its URL. It has a core of its own where there are two, and whatever runs here the others."""
    cores = sorted(os.sched_getaffinity(0))
    command = [sys.executable, str(Path(__file__).with_name("timed_server.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        if len(cores) > 1:
            os.sched_setaffinity(server.pid, cores[:1])
            os.sched_setaffinity(0, cores[1:])
        try:
            yield url
        finally:
            os.sched_setaffinity(0, cores)


def measure(url: str, measured: dict[str, Client], concurrency: int, requests: int, repeats: int) -> dict[str, Rounds]:
    """The clients take turns, so that a noisy time meets them all."""
    rounds = {name: Rounds([]) for name in measured}
    for repeat in range(repeats):
        for name, client in measured.items():
            for _ in range(ATTEMPTS):
                progress(f"{concurrency} at once, {name}, {repeat + 1} of {repeats}")
                clients.take_truths(url)
                samples = client(url, concurrency, requests)
                if max(sample.truth.latest for sample in samples) <= STALL_SECONDS:
                    rounds[name].runs.append(samples)
                    break
                rounds[name].thrown_away += 1
    return rounds


def figures(rounds: dict[str, Rounds], concurrency: int) -> Iterator[Figure]:
    """What the valid runs say. Only pinchpoint tells when each chunk came, so only it has their lags."""

    def by_client(read: Callable[[Sample], Iterable[float | None]]) -> dict[str, list[list[float]]]:
        return {
            name: [[value for sample in run for value in read(sample) if value is not None] for run in r.runs]
            for name, r in rounds.items()
        }

    def ms(seconds: float | None) -> float | None:
        return None if seconds is None else 1e3 * seconds

    def bias(s: Sample) -> float | None:
        return None if s.ttft is None else 1e3 * (s.ttft - s.truth.ttft)

    def error(s: Sample) -> float | None:
        return None if s.tpot is None else 100 * (s.tpot / s.truth.tpot - 1)

    lags = by_client(lambda s: [1e3 * lag for lag in s.lags])
    aim = BIAS_AIMS_MS[concurrency]
    yield Figure(what="TTFT p50, server's truth", unit="ms", rounds=by_client(lambda s: [ms(s.truth.ttft)]))
    yield Figure(what="TTFT p50, client", unit="ms", rounds=by_client(lambda s: [ms(s.ttft)]))
    yield Figure(what="TTFT bias p50", unit="ms", rounds=by_client(lambda s: [bias(s)]), aim=aim)
    yield Figure(what="TTFT bias p99", unit="ms", rounds=by_client(lambda s: [bias(s)]), statistic=p99)
    yield Figure(what="TPOT p50, server's truth", unit="ms", rounds=by_client(lambda s: [ms(s.truth.tpot)]))
    yield Figure(what="TPOT p50, client", unit="ms", rounds=by_client(lambda s: [ms(s.tpot)]))
    yield Figure(what="TPOT error p50", unit="%", rounds=by_client(lambda s: [error(s)]), aim=TPOT_AIM_PERCENT)
    yield Figure(what="chunk lag p50", unit="ms", rounds=lags)
    yield Figure(what="chunk lag p99", unit="ms", rounds=lags, statistic=p99, aim=LAG_AIM_MS)


def counts(rounds: dict[str, Rounds]) -> dict[str, dict[str, int]]:
    """How many runs and requests there were, and what was not counted."""
    return {
        name: {
            "runs": len(r.runs),
            "runs_thrown_away": r.thrown_away,
            "requests": sum(map(len, r.runs)),
            "ttft_discarded": sum(sample.ttft is None for run in r.runs for sample in run),
        }
        for name, r in rounds.items()
    }


def spread(figure: Figure, client: str) -> Spread | None:
    """``None`` where the client has no such number."""
    return figure.of(client) if figure.rounds[client] and all(figure.rounds[client]) else None


def as_json(rounds: dict[str, Rounds], concurrency: int) -> dict[str, Any]:
    return {
        "concurrency": concurrency,
        "clients": counts(rounds),
        "figures": [
            {
                "what": figure.what,
                "unit": figure.unit,
                "aim": figure.aim,
                "clients": {name: asdict(s) for name in rounds if (s := spread(figure, name)) is not None},
            }
            for figure in figures(rounds, concurrency)
        ],
    }


def table(rounds: dict[str, Rounds], concurrency: int) -> Table:
    shown = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    shown.add_column(f"{concurrency} at once", min_width=26)
    for name in (*rounds, "aim"):
        shown.add_column(name, justify="right", min_width=26)
    for figure in figures(rounds, concurrency):
        cells = [_text(spread(figure, name)) for name in rounds]
        ours = spread(figure, next(iter(rounds)))
        shown.add_row(f"{figure.what}, {figure.unit}", *cells, _aim(figure.aim, ours))
    for what in next(iter(counts(rounds).values())):
        shown.add_row(what.replace("_", " "), *(str(found[what]) for found in counts(rounds).values()), "")
    return shown


def _text(found: Spread | None) -> str:
    if found is None:
        return "–"
    return (
        f"{found.value:.3g} ({found.low:.3g} to {found.high:.3g})" if found.low != found.high else f"{found.value:.3g}"
    )


def _aim(aim: float | None, ours: Spread | None) -> str:
    if aim is None or ours is None:
        return ""
    return f"[green]± {aim:g}: met[/]" if abs(ours.value) < aim else f"[red]± {aim:g}: missed[/]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a minute: to see that it runs, not to quote")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--no-peer", action="store_true", help="measure pinchpoint alone")
    arguments = parser.parse_args()
    repeats, requests = (1, {1: 8, 20: 60, 100: 200}) if arguments.quick else (3, {1: 20, 20: 200, 100: 600})
    measured: dict[str, Client] = {"pinchpoint": clients.pinchpoint}
    if not arguments.no_peer:
        peer = subjects.install_peer(clients.PEER_PACKAGE, clients.PEER_VERSION)
        if isinstance(peer, Path):
            measured[f"{clients.PEER_PACKAGE} {clients.PEER_VERSION}"] = partial(clients.servebench, peer)
        else:
            progress(peer)
    with timed_server() as url:
        rounds = {c: measure(url, measured, c, n, repeats) for c, n in requests.items()}
    setting = (
        f"{clients.TOKENS} tokens, the first due after {1e3 * TTFT_SECONDS:g} ms, each {1e3 * TPOT_SECONDS:g} ms after "
        "the one before; first wave left out" + (" (quick: not to quote)" if arguments.quick else "")
    )
    if arguments.json:
        levels = [as_json(found, concurrency) for concurrency, found in rounds.items()]
        print(json.dumps({"machine": machine(), "setting": setting, "levels": levels}, indent=2))
        return
    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    where = machine()
    console.print(
        f"{where['cpu']}, {where['cores']} cores, Linux {where['kernel']}, {where['python']}", setting, sep="\n"
    )
    for concurrency, found in rounds.items():
        console.print("", table(found, concurrency), sep="\n")
    console.print("\nValue of all requests (lowest to highest run).")


if __name__ == "__main__":
    main()
