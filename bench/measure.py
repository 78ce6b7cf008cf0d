"""What is measured, and in which order: the exporters always take turns, so that a noisy moment meets them all."""

import contextlib
import gzip
import random
import time
from collections.abc import Callable, Iterator, Sequence

from prometheus_client.parser import text_string_to_metric_families

from bench.client import PROMETHEUS, WAYS, Client
from bench.figures import Figure, p50, p99
from bench.process import cpu_seconds, rss_bytes, threads
from bench.subjects import Subject

SCRAPE_INTERVAL_SECONDS = 5.0
GPU = "gpu"  # in the name of every family about one, of both exporters
Progress = Callable[[str], None]
Rounds = dict[str, list[list[float]]]  # by exporter, samples of each repetition


def measure_bodies(subjects: Sequence[Subject]) -> Iterator[Figure]:
    """How much a scrape carries."""
    plain, zipped, families, samples = {}, {}, {}, {}
    for subject in subjects:
        with Client(subject.port, WAYS[0]) as text, Client(subject.port, WAYS[1]) as compressed:
            body, small = text.scrape(), compressed.scrape()
        assert gzip.decompress(small)
        plain[subject.name], zipped[subject.name] = [[len(body) / 1e3]], [[len(small) / 1e3]]
        found = [family for family in text_string_to_metric_families(body.decode()) if family.samples]
        families[subject.name] = [[float(sum(GPU in family.name for family in found))]]
        samples[subject.name] = [[float(sum(len(family.samples) for family in found))]]
    yield Figure(what="families about GPUs", unit="", rounds=families)
    yield Figure(what="samples", unit="", rounds=samples)
    yield Figure(what="body, text", unit="kB", rounds=plain)
    yield Figure(what="body, text, gzip", unit="kB", rounds=zipped)


def measure_costs(subjects: Sequence[Subject], repeats: int, seconds: float, progress: Progress) -> Iterator[Figure]:
    """CPU of all exporters over the same stretches of time, unscraped and scraped in turn; memory after each."""
    cpu: dict[bool, Rounds] = {scraped: {s.name: [] for s in subjects} for scraped in (False, True)}
    memory: Rounds = {s.name: [] for s in subjects}
    for repeat in range(repeats):
        for scraped in (False, True):
            progress(f"CPU and memory, {'scraped' if scraped else 'unscraped'}, {repeat + 1} of {repeats}")
            before, began = [cpu_seconds(s.pid) for s in subjects], time.monotonic()
            _pass(subjects, seconds, scraped)
            took = time.monotonic() - began
            for subject, spent in zip(subjects, before, strict=True):
                cpu[scraped][subject.name].append([60 * (cpu_seconds(subject.pid) - spent) / took])
                memory[subject.name].append([rss_bytes(subject.pid) / 1e6])
    yield Figure(what="CPU, unscraped", unit="s/min", rounds=cpu[False], aim=0.6)  # 1 % of a core
    yield Figure(what=f"CPU, scraped every {SCRAPE_INTERVAL_SECONDS:g} s", unit="s/min", rounds=cpu[True], aim=0.6)
    yield Figure(what="memory (RSS)", unit="MB", rounds=memory, aim=80)
    yield Figure(what="threads", unit="", rounds={s.name: [[float(threads(s.pid))]] for s in subjects})


def _pass(subjects: Sequence[Subject], seconds: float, scraped: bool) -> None:
    """Lets time go by, with a scrape of each exporter at every interval, as Prometheus would make it."""
    ends = time.monotonic() + seconds
    with contextlib.ExitStack() as open_clients:
        clients = [open_clients.enter_context(Client(s.port, PROMETHEUS)) for s in subjects] if scraped else []
        while (left := ends - time.monotonic()) > 0:
            for client in clients:
                client.scrape()
            time.sleep(min(SCRAPE_INTERVAL_SECONDS, left))


def measure_latencies(subjects: Sequence[Subject], rounds: int, scrapes: int, progress: Progress) -> Iterator[Figure]:
    """Every way of scraping, in random order, ``rounds`` times ``scrapes`` scrapes of each exporter."""
    seconds: dict[str, Rounds] = {way.name: {s.name: [] for s in subjects} for way in WAYS}
    for number in range(rounds):
        progress(f"latency, round {number + 1} of {rounds}")
        for way in random.sample(WAYS, len(WAYS)):
            for subject in random.sample(subjects, len(subjects)):
                with Client(subject.port, way) as client:
                    client.scrape()
                    seconds[way.name][subject.name].append([1e3 * s for s in client.scrapes(scrapes)])
    for way in WAYS:
        yield Figure(what=f"p50, {way.name}", unit="ms", rounds=seconds[way.name], statistic=p50)
        yield Figure(what=f"p99, {way.name}", unit="ms", rounds=seconds[way.name], statistic=p99, aim=5)
