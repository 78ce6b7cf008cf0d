"""The probe family: synthetic requests, local and hosted. A scrape sends none; these are cached results and totals."""

from collections.abc import Callable, Iterable, Mapping

from pinchpoint.outputs.catalog.metric import Kind, Metric, Sample, counter, gauge, info
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import ProbeOutcome, ProbeReading, ProbeSkip

TARGET = ("target", "placement")
_FAILURES = tuple(outcome for outcome in ProbeOutcome if outcome is not ProbeOutcome.OK)
_SIGNALS = ("ttft", "ttfc", "tpot")


def _last(name: str, pick: Callable[[ProbeReading], float | None], text: str) -> Metric:
    """A number of each target's last probe."""

    def read(scene: Scene) -> Iterable[Sample]:
        return (((p.target, p.placement), pick(p)) for p in scene.snapshot.probes)

    return gauge(f"probe_{name}", TARGET, read, text)


def _total(field: str, text: str, kind: Kind) -> Metric:
    """A number or histogram of each target's totals: the field of the same name."""

    def read(scene: Scene) -> Iterable[Sample]:
        return (((t.target, t.placement), getattr(t, field)) for t in scene.snapshot.probe_totals)

    return Metric(name=f"probe_{field}", kind=kind, help=text, labels=TARGET, read=read)


def _by(label: str, field: str, text: str, kind: Kind, born: tuple[str, ...] = ()) -> Metric:
    """A mapping of each target's totals. ``born`` keys start at 0, so that their first event is an increase."""

    def read(scene: Scene) -> Iterable[Sample]:
        for t in scene.snapshot.probe_totals:
            numbers: Mapping[str, float] = {**dict.fromkeys(born, 0), **getattr(t, field)}
            yield from (((t.target, t.placement, key), number) for key, number in numbers.items())

    return Metric(name=f"probe_{field}", kind=kind, help=text, labels=(*TARGET, label), read=read)


def _failing(scene: Scene) -> Iterable[Sample]:
    for t in scene.snapshot.probe_totals:
        if t.last_failure is not None:
            yield (t.target, t.placement, t.last_failure), t.consecutive_failures


def _last_at(scene: Scene) -> Iterable[Sample]:
    return (((p.target, p.placement), p.at + scene.unix_offset_seconds) for p in scene.snapshot.probes)


def _spend(field: str, text: str) -> Metric:
    """What a hosted target has cost: the spending's field of the same name."""

    def read(scene: Scene) -> Iterable[Sample]:
        for t in scene.snapshot.probe_totals:
            if t.spend is not None:
                yield (t.target, t.placement), getattr(t.spend, field)

    return counter(f"probe_spend_{field}", TARGET, read, text)


def _remaining(unit: str, text: str) -> Metric:
    """What a hosted target may still spend."""

    def read(scene: Scene) -> Iterable[Sample]:
        for t in scene.snapshot.probe_totals:
            if t.spend is not None:
                left: Mapping[str, float] = getattr(t.spend, f"remaining_{unit}")
                yield from (((t.target, t.placement, period), number) for period, number in left.items())

    return gauge(f"probe_budget_remaining_{unit}", (*TARGET, "period"), read, text)


def _last_info(scene: Scene) -> Iterable[Sample]:
    for p in scene.snapshot.probes:
        yield (p.target, p.placement, p.connection or "", p.reasoning or "", p.token_source or ""), 1


def _ratio(scene: Scene) -> Iterable[Sample]:
    for comparison in scene.snapshot.comparisons:
        yield from (((comparison.target, signal), ratio) for signal, ratio in comparison.ratios.items())


PROBE_METRICS = (
    _last("up", lambda p: p.outcome is ProbeOutcome.OK, "Whether the target's last probe was answered well (cached)."),
    _last(
        "last_ttft_seconds",
        lambda p: p.ttft_seconds,
        "Time to first token of the last probe (cached), on an open connection.",
    ),
    _last(
        "last_ttfc_seconds",
        lambda p: p.ttfc_seconds,
        "Time to the first visible content of the last probe (cached): later where the model reasons first.",
    ),
    _last(
        "last_tpot_seconds",
        lambda p: p.tpot_seconds,
        "Time per output token of the last probe (cached), mean after the first.",
    ),
    _last("tokens_per_chunk", lambda p: p.tokens_per_chunk, "Tokens that share a chunk of the last probe's stream."),
    _last(
        "last_characters_per_second",
        lambda p: p.characters_per_second,
        "Characters of text per second of the last probe (cached): compares where models count tokens differently.",
    ),
    info(
        "probe_last_info",
        (*TARGET, "connection", "reasoning", "token_source"),
        _last_info,
        "How the last probe went (cached): connection new or reused; reasoning streamed, summary, hidden, or empty for "
        "none known; tokens counted by usage or in chunks.",
    ),
    gauge("probe_last_timestamp_seconds", TARGET, _last_at, "When the last probe began, in Unix time (cached)."),
    _last("buffered", lambda p: p.buffered, "Whether the last probe's stream came in lumps: a proxy holds it back."),
    gauge(
        "probe_local_to_hosted_ratio",
        ("target", "signal"),
        _ratio,
        "A local target's median over the hosted one's, of their last five probes. ttft, ttfc, tpot: above 1, ours is "
        "slower; characters_per_second: below 1.",
    ),
    _total("requests_total", "Probes sent.", Kind.COUNTER),
    _by("reason", "failures_total", "Probes that failed, by reason.", Kind.COUNTER, born=_FAILURES),
    gauge(
        "probe_consecutive_failures",
        (*TARGET, "reason"),
        _failing,
        "Probes that failed in a row up to the last one, with its reason; absent while the last was answered well.",
    ),
    _by("cause", "skipped_total", "Probes that were due and not sent, by cause.", Kind.COUNTER, born=tuple(ProbeSkip)),
    _by(
        "signal",
        "discarded_total",
        "Latencies measured and not believed, for our own event loop was late, by signal.",
        Kind.COUNTER,
        born=_SIGNALS,
    ),
    _by("kind", "tokens_total", "Tokens of probes, by kind; what the server said, else counted.", Kind.COUNTER),
    _spend("tokens_total", "Tokens that hosted probes were billed, or may have been where the server did not say."),
    _spend("usd_total", "US dollars of the same, by the price that the operator gave; absent without one."),
    _remaining("tokens", "Tokens that are left of the nearest cap, by UTC day and month."),
    _remaining("usd", "US dollars that are left of the nearest cap, by UTC day and month."),
    _total("endpoint_up", "Whether the hosted API answered the last request that costs nothing.", Kind.GAUGE),
    _total("ttft_seconds", "Time to first token of probes.", Kind.HISTOGRAM),
    _total("tpot_seconds", "Time per output token of probes.", Kind.HISTOGRAM),
    _total(
        "inter_chunk_seconds",
        "Time between the socket reads that brought text. A chunk may hold several tokens.",
        Kind.HISTOGRAM,
    ),
    _total("duration_seconds", "Time from the start of a probe to its end.", Kind.HISTOGRAM),
    _by("phase", "phase_seconds", "Time of a probe's phases.", Kind.HISTOGRAM),
)
