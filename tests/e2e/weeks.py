"""Weeks of a node, put together from minutes that were played: what a week is like, hour by hour, and growth.

Each five minutes are of one scenario: its gauges, and its counters' pace. So shares and rates are true to it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.e2e.history import PlayedNode, Scrape

STEP_SECONDS = 300.0
_PLAYED_SECONDS, _SETTLED_SECONDS, _SCRAPE_SECONDS = 240.0, 120.0, 10.0
_COUNTERS = ("_total", "_sum", "_count", "_bucket")
# Of a working day, by hour. The letters: (i)dle, (h)ealthy, (m)emory wall, (s)lots, (p)refill storm, (t)hrottled.
_DAYS = (
    "iiiiiihhhhmhhphhsshhhhii",
    "iiiiiihhhmmhhphhsshhhhii",
    "iiiiiihhmmmhhpphsshhhhii",
    "iiiiiihhmmmmhpphssmhhhii",
    "iiiiiihhtmmmhpphssmmhhii",
)
_WEEKEND = "iiiiiiiiiihhhhhhhhhhiiii"
_SCENARIOS = {"i": "idle", "h": "healthy", "m": "memory_wall", "s": "slots_exhausted", "p": "prefill_storm",
              "t": "throttled_gpu"}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Minutes:
    """A scenario when it has settled: gauges of each scrape, and counters per second."""

    gauges: Sequence[Mapping[str, float]]
    paces: Mapping[str, float]


def weeks(begin: float, days: int, names: Iterable[str]) -> Iterator[Scrape]:
    """Scrapes of ``days`` days from ``begin`` on, of the metrics that are named."""
    node, wanted = PlayedNode(begin), tuple(f"{name}{{" for name in names)
    played = {letter: _settled(node, scenario, wanted) for letter, scenario in _SCENARIOS.items()}
    totals: dict[str, float] = defaultdict(float)
    for step in range(int(days * 86_400 / STEP_SECONDS)):
        day, hour = divmod(int(step * STEP_SECONDS / 3600), 24)
        minutes = played[(_WEEKEND if day % 7 > 4 else _DAYS[min(4, day // 3)])[hour]]
        for series, pace in minutes.paces.items():
            totals[series] += pace * STEP_SECONDS
        gauges = minutes.gauges[step % len(minutes.gauges)]
        yield Scrape(begin + step * STEP_SECONDS, [(s, f"{v!r}") for s, v in {**totals, **gauges}.items()])


def _settled(node: PlayedNode, scenario: str, wanted: tuple[str, ...]) -> _Minutes:
    scrapes = [
        {series: float(value) for series, value in scrape.samples if series.startswith(wanted)}
        for scrape in node.scrapes(scenario, _PLAYED_SECONDS, _SCRAPE_SECONDS)
    ][-int(_SETTLED_SECONDS / _SCRAPE_SECONDS) :]
    first, last = scrapes[0], scrapes[-1]
    seconds = (len(scrapes) - 1) * _SCRAPE_SECONDS
    counters = [series for series in last if series.partition("{")[0].endswith(_COUNTERS)]
    return _Minutes(
        gauges=[{series: value for series, value in scrape.items() if series not in counters} for scrape in scrapes],
        paces={series: max(0.0, last[series] - first.get(series, 0.0)) / seconds for series in counters},
    )
