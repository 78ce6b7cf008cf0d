"""The classes over time, as one line of cells and a legend."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

# A letter where there is no colour; what is well has no letter of its own.
_CELLS: Mapping[str, tuple[str, str]] = {
    "unknown": ("?", "bright_black"),
    "no_data": (" ", "bright_black"),
    "idle": (".", "blue"),
    "healthy": ("-", "green"),
    "kv_capacity": ("K", "red"),
    "compute": ("C", "bright_red"),
    "memory_bandwidth": ("B", "magenta"),
    "scheduler": ("S", "yellow"),
    "host_cpu": ("H", "bright_yellow"),
    "interconnect": ("I", "bright_magenta"),
    "network": ("N", "cyan"),
    "hardware": ("X", "red"),
    "imbalance": ("U", "bright_cyan"),
    "memory_growth": ("G", "bright_magenta"),
    "stalled": ("!", "red"),
    "sleeping": ("z", "bright_blue"),
}
_MOST_INTERVALS = 6  # that are told one by one


def strip(timeline: Sequence[Mapping[str, Any]], width: int, *, coloured: bool) -> list[Text]:
    """The line (none where one class held throughout), then when each class held, or for how long altogether."""
    start, end = timeline[0]["start"], timeline[-1]["end"]
    lines = []
    if len(timeline) > 1 and end > start:
        line = Text()
        for cell in range(width):
            at = start + (cell + 0.5) * (end - start) / width
            held = next((each["class"] for each in timeline if each["start"] <= at < each["end"]), "no_data")
            letter, colour = _CELLS.get(held, ("?", "bright_black"))
            line.append("█" if coloured else letter, colour)
        lines.append(line)
    return [*lines, _legend(timeline, coloured=coloured, strip=bool(lines))]


def _legend(timeline: Sequence[Mapping[str, Any]], *, coloured: bool, strip: bool) -> Text:
    if len(timeline) <= _MOST_INTERVALS:
        told = [(each["class"], f"{each['start']:.0f}–{each['end']:.0f} s") for each in timeline]
    else:
        seconds: dict[str, float] = {}
        for each in timeline:
            seconds[each["class"]] = seconds.get(each["class"], 0.0) + each["end"] - each["start"]
        told = [(name, f"{held:.0f} s") for name, held in sorted(seconds.items(), key=lambda pair: -pair[1])]
    legend = Text()
    for number, (name, when) in enumerate(told):
        letter, colour = _CELLS.get(name, ("?", "bright_black"))
        sign = ("█" if coloured else letter.strip() or "_") + " " if strip else ""
        legend.append(", " if number else "").append(sign, colour).append(f"{when} {name}")
    return legend
