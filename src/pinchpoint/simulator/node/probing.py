"""Our own requests among the others: what a prober beside the service would have noted down."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from random import Random
from typing import Any

from pinchpoint.simulator.engine.request import Request
from pinchpoint.simulator.node.client import Sent
from pinchpoint.simulator.world import Probes
from pinchpoint.snapshot import Placement, ProbeOutcome, ProbeReading

TARGET, HOSTED = "gateway", "hosted"
_FIRST, _LAST = (ProbeOutcome.FIRST_TOKEN_TIMEOUT, 30.0), (ProbeOutcome.OVERALL_TIMEOUT, 60.0)
_CONNECT_SECONDS, _SEND_SECONDS = 0.0006, 0.0002
_OPENED = {"connect": _CONNECT_SECONDS}


class SimulatedProber:
    """Sends a probe each ``every_seconds``, and one to a hosted API a little later."""

    def __init__(self, probes: Probes, random: Random) -> None:
        self._probes, self._random = probes, random
        every = probes.every_seconds
        self.next_at = random.uniform(0.2, 0.9) * every if every > 0 else float("inf")
        self._made = 0
        self._sent: list[Sent] = []
        self._ended: list[ProbeReading] = []

    def request(self) -> Request:
        """The probe that is due at ``next_at``."""
        at, probes = self.next_at, self._probes
        self._ended.append(self._hosted_probe(at + 0.3 * probes.every_seconds))
        self.next_at = at + probes.every_seconds
        self._made += 1
        return Request(
            identity=-self._made,
            arrived_at=at,
            prompt_tokens=probes.prompt_tokens,
            output_tokens=probes.output_tokens,
            max_tokens=probes.output_tokens,
            finish_reason="length",
        )

    def sent(self, sent: Sent) -> None:
        if sent.refused:
            self._ended.append(_reading(sent, ProbeOutcome.CONNECT_REFUSED, duration_seconds=_CONNECT_SECONDS))
        else:
            self._sent.append(sent)

    def cut_off(self, now: float, dead: Collection[int]) -> Iterator[Sent]:
        """Ends those whose first or last token took too long, and those whose server has ended: they are to abort."""
        for sent in [sent for sent in self._sent if sent.finished_at is None]:
            lasted, silent = now - sent.sent_at, sent.ttft_seconds is None
            outcome, limit = _FIRST if silent else _LAST
            if sent.replica in dead:
                outcome, limit = ProbeOutcome.RESET, lasted
            if lasted >= limit:
                self._sent.remove(sent)
                phase = "first_token" if silent else "generation"
                cut = _reading(sent, outcome, duration_seconds=limit, phases=_OPENED, unfinished_phase=phase)
                self._ended.append(cut)
                yield sent

    def readings(self, now: float) -> tuple[ProbeReading, ...]:
        """Every probe that has ended by ``now``, in order of their start."""
        answered = [sent for sent in self._sent if sent.finished_at is not None and sent.finished_at <= now]
        ended = [reading for reading in self._ended if reading.at + (reading.duration_seconds or 0.0) <= now]
        return tuple(sorted([*map(_answered, answered), *ended], key=lambda reading: reading.at))

    def _hosted_probe(self, at: float) -> ProbeReading:
        probes, random = self._probes, self._random
        ttft = probes.hosted_ttft_seconds * random.lognormvariate(0.0, 0.2)
        tpot = probes.hosted_tpot_seconds * random.lognormvariate(0.0, 0.1)
        generation = tpot * (probes.output_tokens - 1)
        return ProbeReading(
            target=HOSTED,
            placement=Placement.HOSTED,
            at=at,
            outcome=ProbeOutcome.OK,
            ttft_seconds=ttft,
            ttfc_seconds=ttft,
            tpot_seconds=tpot,
            duration_seconds=ttft + generation,
            phases={"connect": 0.016, "tls": 0.04, "first_token": ttft, "generation": generation},
            completion_tokens=probes.output_tokens,
        )


def _answered(sent: Sent) -> ProbeReading:
    finished, ttft = sent.finished_at, sent.ttft_seconds
    assert finished is not None
    assert ttft is not None
    generation = max(0.0, finished - sent.sent_at - ttft)
    told: dict[str, Any] = {
        "duration_seconds": ttft + generation,
        "phases": {**_OPENED, "send": _SEND_SECONDS, "first_token": ttft, "generation": generation},
        "completion_tokens": sent.request.output_tokens,
    }
    if sent.buffered:  # nobody saw a first token as a user sees one
        return _reading(sent, ProbeOutcome.NOT_STREAMED, **told, buffered=True)
    return _reading(sent, ProbeOutcome.OK, **told, ttft_seconds=ttft, ttfc_seconds=ttft, tpot_seconds=sent.tpot_seconds)


def _reading(sent: Sent, outcome: ProbeOutcome, **measured: Any) -> ProbeReading:
    return ProbeReading(target=TARGET, placement=Placement.LOCAL, at=sent.sent_at, outcome=outcome, **measured)
