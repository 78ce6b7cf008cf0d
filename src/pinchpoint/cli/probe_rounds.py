"""Sends the probes of ``pinchpoint probe``: all targets at once, each as often as it was asked for."""

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pinchpoint.cli.probe_cost import Till

if TYPE_CHECKING:
    from pinchpoint.config import Settings
    from pinchpoint.snapshot import ProbeReading, ProbeSkip
    from pinchpoint.sources.probe import Prober
    from pinchpoint.sources.probe.settings import ProbeTargetSettings


@dataclass(slots=True)
class Asked:
    """One target and what became of its probes; ``skip`` is why the last of them was not sent."""

    target: "ProbeTargetSettings"
    readings: "list[ProbeReading]" = field(default_factory=list)
    skip: "ProbeSkip | None" = None


def ask_all(targets: "Sequence[ProbeTargetSettings]", settings: "Settings", repeat: int) -> list[Asked]:
    """Local targets before hosted ones. A hosted one costs money, and its caps may forbid a probe."""
    from pinchpoint.snapshot import Placement

    ordered = sorted(targets, key=lambda target: target.placement is not Placement.LOCAL)
    return asyncio.run(_ask_all([Asked(target) for target in ordered], settings, repeat))


async def _ask_all(every: list[Asked], settings: "Settings", repeat: int) -> list[Asked]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from pinchpoint.sources.probe import Prober

    probers = [Prober(asked.target) for asked in every]
    till = Till(settings, repeat)
    last = TextColumn("{task.fields[last]}", markup=False)
    # No thread of its own: it would take the processor from a measurement.
    with Progress(
        TextColumn("probing"),
        BarColumn(),
        MofNCompleteColumn(),
        last,
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,
        disable=not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task("probe", total=repeat * len(every), last="")
        progress.refresh()

        def tell(asked: Asked, done: int) -> None:
            progress.update(task, advance=done, last=asked.target.name, refresh=True)

        try:
            await asyncio.gather(
                *(_ask(asked, prober, till, repeat, tell) for asked, prober in zip(every, probers, strict=True))
            )
        finally:
            till.close()
            for prober in probers:
                await prober.close()
    return every


async def _ask(asked: Asked, prober: "Prober", till: Till, repeat: int, tell: Callable[[Asked, int], None]) -> None:
    """One after the other: two at a time would queue behind each other. What is refused once is not asked again."""
    from pinchpoint.snapshot import ProbeSkip

    unix = time.time() - time.monotonic()  # `at` is read by others: Unix time
    for number in range(repeat):
        answer = await till.ask(asked.target, prober)
        if isinstance(answer, ProbeSkip):
            asked.skip = answer
            tell(asked, repeat - number)
            return
        asked.readings.append(replace(answer, at=answer.at + unix))
        tell(asked, 1)
