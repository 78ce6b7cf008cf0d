"""The phases of probes as bars on one scale: blocks in colour where there is colour, else letters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from pinchpoint.cli.probe_figures import latency
from pinchpoint.snapshot import PROBE_PHASES

LOOKS: Mapping[str, tuple[str, str]] = {  # a letter and a colour
    "resolve": ("r", "yellow"),
    "connect": ("c", "cyan"),
    "tls": ("l", "blue"),
    "send": ("s", "bright_black"),
    "headers": ("h", "magenta"),
    "first_token": ("t", "red"),
    "generation": ("g", "green"),
}
WIDEST = 100


@dataclass(frozen=True, slots=True)
class Segment:
    phase: str
    cells: int


def total(phases: Mapping[str, float]) -> float:
    return sum(seconds for phase, seconds in phases.items() if phase in PROBE_PHASES)


def segments(phases: Mapping[str, float], scale_seconds: float, width: int) -> list[Segment]:
    """Each phase's share of ``width`` cells, which ``scale_seconds`` fill. Rounded at the edges, so that the whole is
    as long as its parts; a phase shorter than half a cell has none."""
    drawn, passed, edge = [], 0.0, 0
    for phase in PROBE_PHASES:
        passed += phases.get(phase, 0.0)
        end = round(passed / scale_seconds * width) if scale_seconds > 0 else 0
        drawn.append(Segment(phase, end - edge))
        edge = end
    return [segment for segment in drawn if segment.cells > 0]


def print_bars(console: Console, named: Sequence[tuple[str, Mapping[str, float]]]) -> None:
    """A bar and the figures of each target; nothing where no phase was reached."""
    told = [(name, phases) for name, phases in named if total(phases) > 0]
    if not told:
        return
    scale = max(total(phases) for _, phases in told)
    colour = console.is_terminal and console.color_system is not None
    width = min(console.width, WIDEST)
    console.print(Text(f"\nphases, on one scale of {latency(scale)}", style="bold"))
    for name, phases in told:
        console.print(Text(name), overflow="fold")
        console.print(_bar(segments(phases, scale, width), colour=colour))
        console.print(_figures(phases, width, colour=colour))


def _bar(drawn: Sequence[Segment], *, colour: bool) -> Text:
    pieces = ((("█" if colour else LOOKS[s.phase][0]) * s.cells, LOOKS[s.phase][1]) for s in drawn)
    return Text.assemble(*pieces)


def _figures(phases: Mapping[str, float], width: int, *, colour: bool) -> Text:
    """They are the legend too. A line is broken between phases, never within one."""
    lines, room = Text(), width
    for phase in PROBE_PHASES:
        if phase not in phases:
            continue
        letter, style = LOOKS[phase]
        words = f" {phase.replace('_', ' ')} {latency(phases[phase])}"
        needed = 1 + len(words)
        if lines and needed + 2 > room:
            lines.append("\n")
            room = width
        elif lines:
            lines.append("  ")
            room -= 2
        lines.append("█" if colour else letter, style=style)
        lines.append(words)
        room -= needed
    return lines
