"""The answer of ``pinchpoint probe``: targets side by side, phases as bars, what a comparison means, what to do."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pinchpoint.cli.probe_bars import print_bars
from pinchpoint.cli.probe_figures import LATENCIES, UNKNOWN, Spread, as_json, latency, outcomes, phases, spread
from pinchpoint.cli.probe_rounds import Asked
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.us_or_them import in_a_sentence
from pinchpoint.snapshot import ProbeComparison, ProbeReading
from pinchpoint.snapshot.comparison import MIN_PROBES

LABEL_WIDTH, COLUMN_WIDTH = 13, 13

Cell = tuple[str, str]  # what is said, and how far it spreads


def answer_of(
    every: Sequence[Asked], comparisons: Sequence[ProbeComparison], thresholds: Thresholds
) -> list[dict[str, Any]]:
    """One JSON object a target: its last reading without what is unknown; of several probes the medians too."""
    by_target = {comparison.target: comparison for comparison in comparisons}
    return [_object(asked, by_target.get(asked.target.name), thresholds) for asked in every]


def _object(asked: Asked, comparison: ProbeComparison | None, thresholds: Thresholds) -> dict[str, Any]:
    told: dict[str, Any] = {"target": asked.target.name, "placement": asked.target.placement.value}
    if asked.readings:
        last = asked.readings[-1]
        told |= _known(asdict(last) | {"characters_per_second": last.characters_per_second})
    if len(asked.readings) > 1:
        told["repeated"] = as_json(asked.readings)
    if asked.skip is not None:
        told["skipped"] = asked.skip.value
    if comparison is not None:
        told["compared"] = {
            "hosted": list(comparison.hosted),
            "ratios": dict(comparison.ratios),
            "meaning": in_a_sentence(comparison, thresholds),
        }
    return told


def _known(reading: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in reading.items() if value is not None and value not in ("", {}, ())}


def print_report(every: Sequence[Asked], comparisons: Sequence[ProbeComparison], thresholds: Thresholds) -> None:
    """For people, at any width, with colour on a terminal."""
    console = Console(highlight=False, markup=False)  # a server's words may look like markup
    at_a_time = max(1, (console.width - LABEL_WIDTH) // COLUMN_WIDTH)
    for start in range(0, len(every), at_a_time):
        part = every[start : start + at_a_time]
        alone = comparisons[0] if len(comparisons) == 1 and at_a_time > len(every) else None
        console.print(_table(part, alone))
    print_bars(console, [(asked.target.name, phases(asked.readings)) for asked in every if asked.readings])
    said = [*_meanings(every, comparisons, thresholds), *_remedies(every)]
    if said:
        console.print()
    for line in said:
        console.print(line, soft_wrap=not console.is_terminal)


def _table(every: Sequence[Asked], comparison: ProbeComparison | None) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("")
    for asked in every:
        table.add_column(Text(asked.target.name), justify="right", overflow="fold")
    if comparison is not None:
        table.add_column("ours / theirs", justify="right", style="bold")
    for label, style, cells, ratio in _rows(every, comparison.ratios if comparison else {}):
        texts = [Text(said + (f"\n{far}" if far else "")) for said, far in cells]
        table.add_row(label, *texts, *([ratio] if comparison is not None else []), style=style)
    return table


def _rows(every: Sequence[Asked], ratios: Mapping[str, float]) -> Iterator[tuple[str, str, list[Cell], str]]:
    def figure(pick: Callable[[ProbeReading], float | None], words: Callable[[float | None], str]) -> list[Cell]:
        return [_cell(spread(asked.readings, pick), words, len(asked.readings)) for asked in every]

    def ratio(signal: str) -> str:
        return f"{ratios[signal]:.2f}" if signal in ratios else ""

    yield "", "dim", [(asked.target.placement.value, "") for asked in every], ""
    yield "outcome", "", [(_outcome(asked), "") for asked in every], ""
    yield "TTFT", "bold", figure(LATENCIES["ttft_seconds"], latency), ratio("ttft")
    yield "TTFC", "", figure(LATENCIES["ttfc_seconds"], latency), ratio("ttfc")
    yield "TPOT", "bold", figure(LATENCIES["tpot_seconds"], latency), ratio("tpot")
    pace = figure(lambda reading: reading.characters_per_second, _count)
    yield "characters/s", "", pace, ratio("characters_per_second")
    yield "tokens", "", figure(lambda reading: reading.completion_tokens, _count), ""
    yield "connection", "", [(_each(asked, lambda reading: reading.connection), "") for asked in every], ""
    if any(reading.reasoning for asked in every for reading in asked.readings):
        yield "reasoning", "", [(_each(asked, lambda reading: reading.reasoning), "") for asked in every], ""
    yield "stream", "", [(_each(asked, _stream), "") for asked in every], ""
    yield "in all", "", figure(LATENCIES["duration_seconds"], latency), ""


def _cell(found: Spread | None, words: Callable[[float | None], str], probes: int) -> Cell:
    if found is None or probes < 2 or found.low == found.high:
        return words(found.median if found else None), ""
    low, high = words(found.low), words(found.high)
    number, _, unit = low.partition(" ")
    return words(found.median), f"{number if unit and high.endswith(f' {unit}') else low}–{high}"


def _count(number: float | None) -> str:
    return UNKNOWN if number is None else f"{number:,.0f}"


def _outcome(asked: Asked) -> str:
    said = [outcomes(asked.readings)] if asked.readings else []
    return ", ".join([*said, f"not sent: {asked.skip.value}"] if asked.skip is not None else said)


def _each(asked: Asked, pick: Callable[[ProbeReading], str | None]) -> str:
    """What it was, in the order of time where it changed."""
    return ", ".join(dict.fromkeys(said for reading in asked.readings if (said := pick(reading)))) or UNKNOWN


def _stream(reading: ProbeReading) -> str | None:
    if reading.buffered or reading.coalesced:
        return "buffered" if reading.buffered else "coalesced"
    return None if reading.ttft_seconds is None else "flows"


def _meanings(every: Sequence[Asked], comparisons: Sequence[ProbeComparison], thresholds: Thresholds) -> Iterator[str]:
    yield from (in_a_sentence(comparison, thresholds) for comparison in comparisons)
    if comparisons and max(len(asked.readings) for asked in every) < MIN_PROBES:
        yield "One probe of each is a glimpse: --repeat 5 gives medians."


def _remedies(every: Sequence[Asked]) -> Iterator[str]:
    """Once for each outcome of a target."""
    for asked in every:
        told = {reading.outcome: reading for reading in asked.readings if reading.remedy}
        for reading in told.values():
            yield f"{reading.target}: {(reading.detail or reading.outcome).rstrip('.')}. {reading.remedy}"
