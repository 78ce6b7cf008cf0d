"""What a probe by hand costs: it counts in the daemon's ledger, under the same caps."""

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pinchpoint.config import Settings
    from pinchpoint.snapshot import ProbeReading, ProbeSkip
    from pinchpoint.sources.probe import Prober
    from pinchpoint.sources.probe.settings import ProbeTargetSettings
    from pinchpoint.sources.probe.spend import Admission


class Till:
    """Says on stderr what each hosted target's probe may cost, and sends none that its caps don't allow.

    A ledger that can't be used keeps a probe back where the operator said where it is kept; else the probe is sent,
    for somebody asked for it, and that it is not counted is said. ``times``: how often each target will be asked.
    """

    def __init__(self, settings: "Settings", times: int = 1) -> None:
        import os

        from pinchpoint.config.state import state_directory
        from pinchpoint.sources.probe.spend import Purse

        self._caps = settings.probes.caps.caps()
        self._demanded = settings.state_directory is not None or bool(os.environ.get("STATE_DIRECTORY"))
        self._purse = Purse(state_directory(settings))
        self._doors: dict[str, Admission] = {}
        self._times = times
        self._uncounted: set[str] = set()  # of these it is said already

    def close(self) -> None:
        self._purse.close()

    async def probe(self, target: "ProbeTargetSettings", prober: "Prober") -> "ProbeReading | None":
        """The reading; ``None`` when the probe was not sent."""
        from pinchpoint.snapshot import ProbeReading

        answer = await self.ask(target, prober)
        return answer if isinstance(answer, ProbeReading) else None

    async def ask(self, target: "ProbeTargetSettings", prober: "Prober") -> "ProbeReading | ProbeSkip":
        """The reading; or why the probe was not sent."""
        from pinchpoint.snapshot import Placement, ProbeSkip

        if target.placement is Placement.LOCAL:
            return await prober.probe()
        admission = self._door(target)
        answer = await admission.ask(time.monotonic())
        if answer is ProbeSkip.LEDGER and not self._demanded:
            if target.name not in self._uncounted:
                _say(f"{target.name}: not counted in a ledger: {admission.held.detail if admission.held else ''}")
            self._uncounted.add(target.name)
            return await prober.probe()
        if isinstance(answer, ProbeSkip):
            why = f"{answer.value}: {admission.held.detail}" if admission.held else answer.value
            _say(f"{target.name}: not sent ({why})")
            return answer
        reading = await prober.probe()
        await admission.settle(answer, reading, time.monotonic())
        return reading

    def _door(self, target: "ProbeTargetSettings") -> "Admission":
        from pinchpoint.sources.probe.spend import Admission

        if target.name not in self._doors:
            self._doors[target.name] = door = Admission(target, self._caps, self._purse, seconds_apart=0)
            most = door.at_most
            money = "the price is not known" if most.usd is None else f"{self._times * most.usd:.6f} USD"
            what = "a probe" if self._times == 1 else f"{self._times} probes"
            _say(f"{target.name}: {what} may cost up to {self._times * most.tokens} tokens ({money})")
        return self._doors[target.name]


def _say(line: str) -> None:
    print(f"pinchpoint: {line}", file=sys.stderr)
