"""Our own requests among the others: what a prober beside the service would have noted down."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from pinchpoint.simulator.engine.request import Request
from pinchpoint.simulator.node.client import Sent
from pinchpoint.simulator.world import Probes
from pinchpoint.snapshot import Placement, ProbeOutcome, ProbeReading

TARGET, HOSTED = "gateway", "hosted"
FIRST_TOKEN_TIMEOUT_SECONDS = 30.0
_CONNECT_SECONDS, _SEND_SECONDS = 0.0006, 0.0002


class SimulatedProber:
    """Sends a probe each ``every_seconds``, and one to a hosted API a little later."""

    def __init__(self, probes: Probes, random: Random) -> None:
        self._probes, self._random = probes, random
        self._sent: list[Sent] = []
        every = probes.every_seconds
        self.next_at = random.uniform(0.2, 0.9) * every if every > 0 else float("inf")
        self._hosted: list[ProbeReading] = []

    def request(self) -> Request:
        """The probe that is due at ``next_at``."""
        at, probes = self.next_at, self._probes
        self._hosted.append(self._hosted_probe(at + 0.3 * probes.every_seconds))
        self.next_at = at + probes.every_seconds
        return Request(
            identity=-len(self._hosted),
            arrived_at=at,
            prompt_tokens=probes.prompt_tokens,
            output_tokens=probes.output_tokens,
            max_tokens=probes.output_tokens,
            finish_reason="length",
        )

    def sent(self, sent: Sent) -> None:
        self._sent.append(sent)

    def given_up(self, now: float) -> Iterator[Sent]:
        """Those whose first token has not come in time."""
        for sent in self._sent:
            late = now - sent.sent_at > FIRST_TOKEN_TIMEOUT_SECONDS
            if late and sent.ttft_seconds is None and not sent.request.finished:
                yield sent

    def readings(self, now: float) -> tuple[ProbeReading, ...]:
        """Every probe that has ended by ``now``, in order of their start."""
        ended = [reading for sent in self._sent if (reading := _judged(sent, now)) is not None]
        ended += [reading for reading in self._hosted if reading.at + (reading.duration_seconds or 0.0) <= now]
        return tuple(sorted(ended, key=lambda reading: reading.at))

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


def _judged(sent: Sent, now: float) -> ProbeReading | None:
    """``None`` while it runs."""
    connect = {"connect": _CONNECT_SECONDS}
    if sent.refused:
        return _reading(sent, ProbeOutcome.CONNECT_REFUSED, duration_seconds=_CONNECT_SECONDS)
    finished, ttft = sent.finished_at, sent.ttft_seconds
    if finished is not None and finished <= now and ttft is not None and ttft <= FIRST_TOKEN_TIMEOUT_SECONDS:
        generation = max(0.0, finished - sent.sent_at - ttft)
        return _reading(
            sent,
            ProbeOutcome.OK,
            ttft_seconds=ttft,
            ttfc_seconds=ttft,
            tpot_seconds=None if sent.buffered else sent.tpot_seconds,
            duration_seconds=ttft + generation,
            buffered=sent.buffered,
            phases={**connect, "send": _SEND_SECONDS, "first_token": ttft, "generation": generation},
            completion_tokens=sent.request.output_tokens,
        )
    if now - sent.sent_at > FIRST_TOKEN_TIMEOUT_SECONDS and (ttft is None or ttft > FIRST_TOKEN_TIMEOUT_SECONDS):
        return _reading(
            sent,
            ProbeOutcome.FIRST_TOKEN_TIMEOUT,
            duration_seconds=FIRST_TOKEN_TIMEOUT_SECONDS,
            phases=connect,
            unfinished_phase="first_token",
        )
    return None


def _reading(sent: Sent, outcome: ProbeOutcome, **measured: Any) -> ProbeReading:
    return ProbeReading(target=TARGET, placement=Placement.LOCAL, at=sent.sent_at, outcome=outcome, **measured)
