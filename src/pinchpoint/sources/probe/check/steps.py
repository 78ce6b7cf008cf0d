"""What each step of a check has shown. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from pinchpoint.snapshot import ProbeLiveness, ProbeOutcome, ProbeReading
from pinchpoint.sources.probe.check.asking import UNNAMED, Asked
from pinchpoint.sources.probe.check.look import closest
from pinchpoint.sources.probe.check.triple import State, Step, Triple

REFUSED = (ProbeOutcome.AUTH, ProbeOutcome.FORBIDDEN)
# The URL, the key and the model were right, whatever else was not.
ANSWERED = (
    ProbeOutcome.OK,
    ProbeOutcome.EMPTY_OUTPUT,
    ProbeOutcome.NOT_STREAMED,
    ProbeOutcome.CONTENT_FILTER,
    ProbeOutcome.TRUNCATED,
    ProbeOutcome.STALLED,
    ProbeOutcome.OVERALL_TIMEOUT,
)
_STOPPED_AT = {
    ProbeOutcome.DNS: "resolve",
    ProbeOutcome.CONNECT_REFUSED: "connect",
    ProbeOutcome.CONNECT_TIMEOUT: "connect",
    ProbeOutcome.PROXY: "connect",
    ProbeOutcome.TLS: "tls",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that was asked. ``keyless``: the list again without the key; ``asked``: the request, ``None`` if unsent."""

    triple: Triple
    listing: Asked
    keyless: Asked | None = None
    asked: Asked | None = None
    model: str = UNNAMED  # as it was asked for

    @property
    def listed(self) -> ProbeLiveness:
        assert self.listing.liveness is not None
        return self.listing.liveness

    @property
    def reading(self) -> ProbeReading | None:
        return self.asked.reading if self.asked is not None else None

    @property
    def stopped_at(self) -> str | None:
        """The step on the way there that failed."""
        if self.listed.http_status is not None:
            return None
        return _STOPPED_AT.get(self.listed.outcome)

    @property
    def is_listed(self) -> bool | None:
        """Whether the list has the model; ``None`` where there is no list with names, or no model."""
        if not self.listed.models or not self.triple.model:
            return None
        return self.triple.model.strip() in self.listed.models


def steps(evidence: Evidence) -> Iterator[Step]:
    yield from _way(evidence)
    if evidence.stopped_at is None:
        yield from (_models(evidence), _key(evidence), _model(evidence), _request(evidence))


def _way(evidence: Evidence) -> Iterator[Step]:
    stopped = evidence.stopped_at
    for name in ("resolve", "connect", *(("tls",) if evidence.triple.url.startswith("https:") else ())):
        if name == stopped:
            yield Step(name=name, state=State.WRONG, said=evidence.listed.detail)
            return
        yield Step(name=name, state=State.FINE)


def _models(evidence: Evidence) -> Step:
    listed, tried = evidence.listed, [each.root for each in evidence.listing.heard]
    if listed.outcome is ProbeOutcome.OK:
        count = f"{len(listed.models)} model{'s' * (len(listed.models) != 1)}" if listed.models else "a list"
        return Step(name="models", state=State.FINE, said=f"{count} at {evidence.listing.answered_at}")
    where = f"at {' or '.join(tried)}" if tried else ""
    return Step(name="models", state=State.UNSURE, said=f"no list {where}: {listed.detail or listed.outcome}")


def _key(evidence: Evidence) -> Step:
    reading, triple = evidence.reading, evidence.triple
    if reading is not None and reading.outcome in ANSWERED:
        said = "" if triple.key else "none is needed"
        return Step(name="key", state=State.FINE, said=said)
    decisive = reading or evidence.listed
    if decisive.outcome in REFUSED:
        return Step(name="key", state=State.WRONG, said=decisive.detail)
    if evidence.listed.outcome is not ProbeOutcome.OK:
        return Step(name="key", state=State.UNSURE, said="nothing has tested it")
    if evidence.keyless is not None and evidence.keyless.liveness is not None:
        if evidence.keyless.liveness.outcome in REFUSED:
            return Step(name="key", state=State.FINE, said="the list is given for it, and not without")
        return Step(name="key", state=State.UNSURE, said="not tested: the list is given to anybody")
    return Step(name="key", state=State.UNSURE, said="none is given, and the list needs none")


def _model(evidence: Evidence) -> Step:
    reading, name = evidence.reading, evidence.triple.model
    if reading is not None and reading.outcome in ANSWERED:
        said = "" if name else f"none is given; {evidence.model} answers"
        return Step(name="model", state=State.FINE if name else State.UNSURE, said=said)
    if reading is not None and reading.outcome is ProbeOutcome.MODEL_NOT_FOUND:
        return Step(name="model", state=State.WRONG, said=reading.detail)
    if evidence.is_listed is None:
        return Step(name="model", state=State.UNSURE, said="none is given" if not name else "nothing has tested it")
    if evidence.is_listed:
        return Step(name="model", state=State.FINE, said="it is listed")
    near = closest(name, evidence.listed.models)
    hint = f"; the nearest is {near}" if near else ""
    return Step(name="model", state=State.WRONG, said=f"{name} is not listed{hint}")


def _request(evidence: Evidence) -> Step:
    reading = evidence.reading
    if reading is None:
        return Step(name="request", state=State.SKIPPED, said="not sent")
    if reading.outcome is ProbeOutcome.OK:
        tokens = f"{reading.completion_tokens} tokens" if reading.completion_tokens else "an answer"
        took = f", first after {reading.ttft_seconds * 1000:.0f} ms" if reading.ttft_seconds is not None else ""
        return Step(name="request", state=State.FINE, said=f"{tokens}{took}")
    state = State.UNSURE if reading.outcome in ANSWERED else State.WRONG
    return Step(name="request", state=state, said=f"{reading.outcome}: {reading.detail}".rstrip(": "))
