"""Did a change work? Two runs of the same load, one before it and one after."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log2

from pinchpoint.capacity.measured_run import MeasuredRun
from pinchpoint.diagnosis.judgement import percent
from pinchpoint.diagnosis.levers.growing import REPLICA_GAIN, TENSOR_PARALLEL_GAIN
from pinchpoint.diagnosis.rates import ratio
from pinchpoint.diagnosis.verdict import Bottleneck

_ALIKE = 0.25  # of the larger: loads that differ by more are no comparison
_MATTERS = 0.10  # of a latency or a rate; less is noise of one run
_SHARE_MATTERS = 0.05  # of the requests
_MET = 0.99  # of the requests in SLO: there was nothing to mend

_FACTS = (
    "model",
    "quantization",
    "max_num_seqs",
    "max_num_batched_tokens",
    "max_model_len",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "gpu_memory_utilization",
    "enable_prefix_caching",
    "kv_cache_dtype",
    "gpu_name",
    "version",
)
_OF_CAPACITY = (
    Bottleneck.KV_CAPACITY,
    Bottleneck.COMPUTE,
    Bottleneck.MEMORY_BANDWIDTH,
    Bottleneck.SCHEDULER,
)
_NO_PINCH = (Bottleneck.HEALTHY, Bottleneck.IDLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A fact that is another after it."""

    name: str
    before: str | float | None
    after: str | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """``worked`` is ``None`` where the runs can't be compared, ``incomparable`` then says why. ``lessons`` are what
    follows, the most urgent first, each a sentence."""

    before: MeasuredRun
    after: MeasuredRun
    worked: bool | None
    changes: tuple[Change, ...] = ()
    incomparable: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()


def compare(before: MeasuredRun, after: MeasuredRun) -> Comparison:
    """Judges what changed between the runs by what the requests felt, and says what that teaches."""
    changes = _changes(before, after)
    incomparable = tuple(_incomparable(before, after))
    if incomparable:
        return Comparison(before=before, after=after, worked=None, changes=changes, incomparable=incomparable)
    split = _ranks(after) > _ranks(before)
    lessons = [*_of_links(before, after, split=split), *_of_first_token(before, after), *_of_gain(before, after)]
    worked = _better(before, after) and not (split and _slower(before, after))
    lessons += _of_pinch(before, after)
    if len([change for change in changes if change.name != "version"]) > 1:
        lessons.append("several things changed at once: which of them did it is not told")
    if not changes:
        lessons.append("what is known of the engine is the same in both: the change is not recorded")
    return Comparison(before=before, after=after, worked=worked, changes=changes, lessons=tuple(lessons))


def _changes(before: MeasuredRun, after: MeasuredRun) -> tuple[Change, ...]:
    pairs = [("replicas", before.replicas, after.replicas)]
    pairs += [(name, getattr(before.facts, name), getattr(after.facts, name)) for name in _FACTS]
    # What only one of them tells is no change: nobody wrote it down.
    return tuple(
        Change(name=name, before=then, after=now)
        for name, then, now in pairs
        if then is not None and now is not None and then != now
    )


def _incomparable(before: MeasuredRun, after: MeasuredRun) -> Iterator[str]:
    """The same model under a load that is alike in its lengths, and in its rate or in what is in flight.

    Clients that wait for their answers ask more often of a faster engine, and have fewer requests in flight at it.
    """
    models = {run.facts.model for run in (before, after)} - {None}
    if len(models) > 1:
        yield f"the models differ ({' and '.join(sorted(map(str, models)))})"
    for what, then, now in (
        ("prompts", before.prompt_tokens, after.prompt_tokens),
        ("answers", before.output_tokens, after.output_tokens),
    ):
        if _difference(then, now):
            yield f"{what} have {then:,.0f} tokens before and {now:,.0f} after"
    rate, in_flight = (
        _difference(before.arrivals_per_second, after.arrivals_per_second),
        _difference(before.in_flight, after.in_flight),
    )
    if rate and (in_flight is None or rate * in_flight > 0):
        then, now = before.arrivals_per_second or 0.0, after.arrivals_per_second or 0.0
        yield f"{then:.2g} requests a second arrive before and {now:.2g} after"


def _difference(then: float | None, now: float | None) -> float | None:
    """What is more after, ``0`` where they are alike."""
    if then is None or now is None:
        return None
    return 0.0 if abs(now - then) <= _ALIKE * max(then, now) else now - then


def _better(before: MeasuredRun, after: MeasuredRun) -> bool:
    """More requests in SLO; or as many, and what was amiss is clearly less so; or all of them on fewer GPUs."""
    gained = _gain(before.in_slo_share, after.in_slo_share)
    if gained is not None and gained <= -_SHARE_MATTERS:
        return False
    if gained is not None and gained >= _SHARE_MATTERS:
        return True
    clients = before.client_ttft_seconds or 0.0
    if before.in_slo_share is not None and before.in_slo_share >= _MET and clients <= before.slo.ttft_seconds:
        return _gpus(after) < _gpus(before)
    late = _falls(before.ttft_p95_seconds, after.ttft_p95_seconds, before.slo.ttft_seconds)
    late = late or _falls(before.client_ttft_seconds, after.client_ttft_seconds, before.slo.ttft_seconds)
    slow = _falls(before.tpot_seconds, after.tpot_seconds, before.slo.tpot_seconds)
    more = ratio(after.output_tokens_per_second, before.output_tokens_per_second)
    return late or slow or (more is not None and more >= 1 + _MATTERS and before.bottleneck not in _NO_PINCH)


def _falls(then: float | None, now: float | None, objective: float) -> bool:
    return then is not None and now is not None and then > objective and now <= (1 - _MATTERS) * then


def _gain(then: float | None, now: float | None) -> float | None:
    return None if then is None or now is None else now - then


def _ranks(run: MeasuredRun) -> int:
    return max(1, run.facts.tensor_parallel_size or 1)


def _gpus(run: MeasuredRun) -> int:
    return run.replicas * _ranks(run) * max(1, run.facts.pipeline_parallel_size or 1)


def _slower(before: MeasuredRun, after: MeasuredRun) -> bool:
    times = ratio(after.tpot_seconds, before.tpot_seconds)
    return times is not None and times >= 1 + _MATTERS


def _of_links(before: MeasuredRun, after: MeasuredRun, *, split: bool) -> Iterator[str]:
    if split and _slower(before, after):
        times = ratio(after.tpot_seconds, before.tpot_seconds) or 1.0
        yield (
            f"a token takes {percent(times - 1)} longer on {_ranks(after)} GPUs than on {_ranks(before)}: stop, go "
            "back, and check the links between them (nvidia-smi topo -m, NCCL_DEBUG=INFO)"
        )


def _of_first_token(before: MeasuredRun, after: MeasuredRun) -> Iterator[str]:
    if _gpus(after) <= _gpus(before):
        return
    by_clients = (before.client_ttft_seconds or 0.0) > before.slo.ttft_seconds
    late = by_clients or (before.ttft_p95_seconds or 0.0) > before.slo.ttft_seconds
    first = (after.client_ttft_seconds, before.client_ttft_seconds)
    times = ratio(*first) if by_clients else ratio(after.ttft_p50_seconds, before.ttft_p50_seconds)
    on_the_way = before.bottleneck is after.bottleneck is Bottleneck.NETWORK
    if on_the_way or (late and times is not None and abs(times - 1) < _MATTERS):
        yield (
            "first tokens come no sooner with more GPUs: it was not they that were short but the scheduler (slots, "
            "token budget, routing) or the way to the engine"
        )


def _of_gain(before: MeasuredRun, after: MeasuredRun) -> Iterator[str]:
    """What more GPUs brought against what they bring in practice."""
    ranks, replicas = _ranks(after) / _ranks(before), after.replicas / before.replicas
    pace = ratio(before.tpot_seconds, after.tpot_seconds)
    if ranks > 1 and replicas == 1:
        yield from _against(pace, ranks, TENSOR_PARALLEL_GAIN, "the pace of tokens is")
    if replicas > 1 and ranks == 1 and before.bottleneck in _OF_CAPACITY:
        if after.bottleneck in _NO_PINCH:
            yield "the replicas are not filled by this load: how much more they bear takes a load test"
            return
        more = ratio(after.output_tokens_per_second, before.output_tokens_per_second)
        yield from _against(more, replicas, REPLICA_GAIN, "the tokens made a second are")


def _against(times: float | None, factor: float, each: Sequence[float], what: str) -> Iterator[str]:
    if times is None:
        return
    low, high = (gain ** log2(factor) for gain in each)
    verdict = "as expected" if times >= low else "less than expected"
    yield f"{what} {times:.2f} times those before, {low:.1f} to {high:.1f} are usual: {verdict}"


def _of_pinch(before: MeasuredRun, after: MeasuredRun) -> Iterator[str]:
    if after.bottleneck in _NO_PINCH:
        if before.bottleneck not in _NO_PINCH:
            yield f"it is no longer {before.bottleneck}: nothing pinches now"
        return
    then = "" if after.next_lever is None else f"; next: {after.next_lever.text}"
    same = after.bottleneck is before.bottleneck
    yield f"it is {'still' if same else 'now'} {after.bottleneck}{then}"
