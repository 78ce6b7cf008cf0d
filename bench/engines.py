"""Many engines watched by one pinchpoint, beside vmagent that makes the same scrapes at the same time.

Prints tables, or JSON with --json; progress goes to stderr. Judges nothing: exit code 0 when it could measure.
"""

import argparse
import contextlib
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a file; the fakes are the tests'

from bench import fleet, report
from bench.client import PROMETHEUS, WAYS, Client, Way
from bench.engine_body import SERIES
from bench.figures import Figure
from bench.measure import Progress
from bench.parsing import PARSERS, measure_parsing
from bench.process import cpu_seconds, rss_bytes
from bench.subjects import Subject

WINDOW_SECONDS = 300.0  # pinchpoint's history: memory grows until it is full
CORE_SHARE, MEGABYTES = 50.0, 400.0  # the aims
PAGES = (Way("status page", "text/html", "gzip", path="/"), Way("status JSON", "*/*", "gzip", path="/api/v1/status"))


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="half a minute, 50 engines: to see that it runs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--no-peer", action="store_true", help="measure pinchpoint alone")
    parser.add_argument("--engines", type=int, help="how many engines; default 500")
    parser.add_argument("--warm-up", type=float, help="seconds; default 300, which fills the history")
    arguments = parser.parse_args()
    engines, interval, warm_up, repeats, bodies = (50, 2.0, 3, 1, 20) if arguments.quick else (500, 15.0, 300, 5, 200)
    engines = arguments.engines or engines
    warm_up = arguments.warm_up or warm_up
    program = None if arguments.no_peer else fleet.find_vmagent()
    if program is None and not arguments.no_peer:
        progress(f"no vmagent here: install the Debian package {fleet.VMAGENT_PACKAGE}")
    parsing = list(measure_parsing(bodies, repeats, progress))
    with tempfile.TemporaryDirectory(prefix="pinchpoint-bench-") as name, contextlib.ExitStack() as running:
        folder = Path(name)
        farm = running.enter_context(fleet.Farm(engines))
        measured = [running.enter_context(fleet.pinchpoint(folder, farm.ports, interval))]
        if program:
            measured.append(running.enter_context(fleet.vmagent(folder, farm.ports, interval, program)))
        progress(f"warming up for {warm_up:g} s")
        time.sleep(warm_up)
        scraping = list(measure_scraping(measured, farm, interval, 2 * repeats, progress))
        telling = list(measure_telling(measured[0], interval, repeats, progress))
    setting = f"{engines} engines of {SERIES} series, scraped every {interval:g} s, {warm_up:g} s after the start" + (
        " (quick: not to quote)" if arguments.quick else ""
    )
    tables = [
        (setting, scraping, measured),
        (
            "pinchpoint scraped at the same interval as Prometheus would (OpenMetrics, gzip), and looked at",
            telling,
            measured[:1],
        ),
        (f"Reading one engine's answer of {SERIES} series, after the first", parsing, PARSERS),
    ]
    if arguments.json:
        print(json.dumps([report.as_json(figures, subjects, title) for title, figures, subjects in tables], indent=2))
    else:
        for title, figures, subjects in tables:
            report.print_table(figures, subjects, title)
            print()


def measure_scraping(
    subjects: Sequence[Subject], farm: fleet.Farm, interval: float, repeats: int, say: Progress
) -> Iterator[Figure]:
    """What it takes to scrape all engines, over the same intervals for all; nobody asks for the result."""
    cores: dict[str, list[list[float]]] = {s.name: [] for s in subjects}
    each: dict[str, list[list[float]]] = {s.name: [] for s in subjects}
    memory: dict[str, list[list[float]]] = {s.name: [] for s in subjects}
    longest: dict[str, list[list[float]]] = {s.name: [] for s in subjects}
    missed: dict[str, list[list[float]]] = {s.name: [] for s in subjects}
    farm.gaps()
    for repeat in range(repeats):
        say(f"scraping engines, {repeat + 1} of {repeats}")
        before, began = [cpu_seconds(s.pid) for s in subjects], time.monotonic()
        time.sleep(interval)
        spent, took = [cpu_seconds(s.pid) for s in subjects], time.monotonic() - began
        gaps = farm.gaps()
        for subject, start, end in zip(subjects, before, spent, strict=True):
            own = gaps.get(subject.name, [])
            cores[subject.name].append([100 * (end - start) / took])
            each[subject.name].append([1e3 * (end - start) / max(1, len(own))])
            memory[subject.name].append([rss_bytes(subject.pid) / 1e6])
            longest[subject.name].append([max(own, default=took)])
            missed[subject.name].append([float(sum(round(gap / interval) - 1 for gap in own if gap > 1.5 * interval))])
    yield Figure(what="CPU, % of a core", unit="", rounds=cores, aim=CORE_SHARE)
    yield Figure(what="CPU per scrape of an engine", unit="ms", rounds=each)
    yield Figure(what="memory (RSS)", unit="MB", rounds=memory, aim=MEGABYTES)
    yield Figure(what="longest time between two scrapes of an engine", unit="s", rounds=longest, statistic=max)
    yield Figure(what="intervals missed", unit="", rounds=missed, statistic=sum, aim=0)


def measure_telling(subject: Subject, interval: float, repeats: int, say: Progress) -> Iterator[Figure]:
    """What it costs to be scraped itself, and what a person waits for."""
    cores, memory, seconds = [], [], []
    sizes: dict[str, float] = {}
    with Client(subject.port, PROMETHEUS) as client:
        for repeat in range(repeats):
            say(f"being scraped, {repeat + 1} of {repeats}")
            before, began = cpu_seconds(subject.pid), time.monotonic()
            seconds.append([1e3 * s for s in client.scrapes(1)])
            time.sleep(max(0.0, began + interval - time.monotonic()))
            cores.append([100 * (cpu_seconds(subject.pid) - before) / (time.monotonic() - began)])
            memory.append([rss_bytes(subject.pid) / 1e6])
        sizes["body, OpenMetrics, gzip"] = len(client.scrape()) / 1e6
    with Client(subject.port, WAYS[0]) as client:
        body = client.scrape()
        sizes["body, text"] = len(body) / 1e6
    yield Figure(what="CPU, % of a core", unit="", rounds={subject.name: cores}, aim=CORE_SHARE)
    yield Figure(what="memory (RSS)", unit="MB", rounds={subject.name: memory}, aim=MEGABYTES)
    yield Figure(what="a scrape", unit="ms", rounds={subject.name: seconds})
    samples = float(sum(not line.startswith(b"#") for line in body.splitlines()))
    yield Figure(what="samples", unit="", rounds={subject.name: [[samples]]})
    for what, size in sizes.items():
        yield Figure(what=what, unit="MB", rounds={subject.name: [[size]]})
    for way in PAGES:
        with Client(subject.port, way) as client:
            times = [[1e3 * s for s in client.scrapes(3)] for _ in range(repeats)]
            small = client.scrape()
        yield Figure(what=f"{way.name}", unit="ms", rounds={subject.name: times})
        yield Figure(what=f"{way.name}, gzip", unit="kB", rounds={subject.name: [[len(small) / 1e3]]})
        yield Figure(what=f"{way.name}, plain", unit="kB", rounds={subject.name: [[len(gzip.decompress(small)) / 1e3]]})


if __name__ == "__main__":
    main()
