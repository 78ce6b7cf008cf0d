"""Whether the host feeds the GPUs: CPU quota, pressure, cores, and the time that steps and requests spend on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from pinchpoint.diagnosis.devices import Devices
from pinchpoint.diagnosis.identity import once_each
from pinchpoint.diagnosis.latency import Latency
from pinchpoint.diagnosis.load import Load
from pinchpoint.diagnosis.rates import known, mean, ratio
from pinchpoint.diagnosis.roofline import Roofline
from pinchpoint.snapshot import EngineHost, EngineReading, HostReading, Snapshot

_LOOPBACK = ("localhost", "127.0.0.1", "::1", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLoad:
    """Means over the window; ``None`` is unknown.

    ``host_gap_ratio`` is the part of a step in which no kernel runs: what the host takes between two steps, by the
    GPU's busy time per step. ``host_admission_seconds`` is the mean time of a request before it is queued: templates,
    tokens, images.
    """

    host_cpu_utilization_ratio: float | None = None
    host_cpu_throttled_ratio: float | None = None  # share of cgroup periods in which the quota was used up
    host_cpu_pressure_ratio: float | None = None  # share of time in which a task of the engine, or of the host, waited
    host_cpu_count: float | None = None  # that the engine may use: the host's, or what a quota leaves
    host_engine_cpu_cores: float | None = None
    host_cpu_cores_needed: float | None = None  # at least: one a rank, one an engine core, one a front end
    host_gap_ratio: float | None = None
    host_prompt_share: float | None = None  # of the mean TTFT: the same, of the steps that a prompt needs
    host_admission_seconds: float | None = None


def host_of(
    snapshots: tuple[Snapshot, ...],
    current: EngineReading,
    load: Load,
    latency: Latency,
    roofline: Roofline,
    gpus: Devices,
) -> HostLoad:
    """Of the engine's own host: readings of another one, where the engine answers from elsewhere, say nothing of it.

    Where processes are known, quota and pressure are those of the engine's own: another tenant's are not its trouble.
    """
    gap = _gap(current, load, roofline, gpus)
    hosts = _hosts(snapshots) if _is_here(current) else ()
    own = _for_engine(hosts, current.engine) if any(current.engine in h.engines for h in hosts) else _for_others(hosts)
    return HostLoad(
        host_cpu_utilization_ratio=_utilization(hosts),
        host_cpu_throttled_ratio=own.cpu_throttled_ratio,
        host_cpu_pressure_ratio=own.cpu_pressure_ratio,
        host_cpu_count=own.cpu_limit_cores,
        host_engine_cpu_cores=own.cpu_cores,
        host_cpu_cores_needed=_cores_needed(current),
        host_gap_ratio=gap,
        host_prompt_share=_prompt_share(gap, current, load, latency, roofline),
        host_admission_seconds=_admission(load, latency),
    )


@once_each(4)
def _hosts(snapshots: tuple[Snapshot, ...]) -> tuple[HostReading, ...]:
    """The distinct readings of the host: found once a tick for all engines, as the next two are."""
    return tuple({s.host.at: s.host for s in snapshots if s.host is not None}.values())


@once_each(4)
def _utilization(hosts: tuple[HostReading, ...]) -> float | None:
    return mean([host.cpu_utilization_ratio for host in hosts])


@once_each(4)
def _for_others(hosts: tuple[HostReading, ...]) -> EngineHost:
    """Means of what the host has for engines whose processes are not seen."""
    return _for_engine(hosts, None)


def _for_engine(hosts: Sequence[HostReading], engine: str | None) -> EngineHost:
    own = [_own(host, engine) for host in hosts]
    return EngineHost(
        cpu_cores=mean([each.cpu_cores for each in own]),
        cpu_limit_cores=mean([each.cpu_limit_cores for each in own]),
        cpu_throttled_ratio=mean([each.cpu_throttled_ratio for each in own]),
        cpu_pressure_ratio=mean([each.cpu_pressure_ratio for each in own]),
    )


def _own(reading: HostReading, engine: str | None) -> EngineHost:
    """What the host has for this engine. Where no engine's processes are seen, the host's word is all there is; where
    only others' are, what is said of quotas and cores is theirs."""
    seen = (reading.engines.get(engine) if engine is not None else None) or EngineHost()
    pressure, count = seen.cpu_pressure_ratio, reading.cpu_count
    limits = [limit for limit in (seen.cpu_limit_cores, count) if limit is not None]
    alone = not reading.engines
    return EngineHost(
        cpu_cores=reading.engine_cpu_cores if alone else seen.cpu_cores,
        cpu_limit_cores=min(limits, default=None),
        cpu_throttled_ratio=reading.cpu_throttled_ratio if alone else seen.cpu_throttled_ratio,
        cpu_pressure_ratio=reading.cpu_pressure_ratio if pressure is None else pressure,
    )


def _is_here(reading: EngineReading) -> bool:
    """A recording has no address, and was made where the engine runs; GPUs of this node are declared for an engine of
    this node alone."""
    return bool(reading.gpus) or (urlsplit(reading.url).hostname or "") in _LOOPBACK


def _cores_needed(reading: EngineReading) -> float:
    """Front ends, engine cores and ranks, as vLLM's guide to its CPU resources counts them."""
    facts, cores = reading.facts, max(1, len(reading.replicas))
    ranks = max(1, facts.tensor_parallel_size or 1) * max(1, facts.pipeline_parallel_size or 1)
    return 1.0 + cores + cores * ranks + (1.0 if cores > 1 else 0.0)


def _gap(current: EngineReading, load: Load, roofline: Roofline, gpus: Devices) -> float | None:
    """1 less the GPU's busy seconds per step over a step's seconds, both while requests run.

    Utilisation is a share of all time, and so are steps per second: how long there was nothing to do cancels out. Of
    several replicas, the means of both. Stages of a pipeline rest while they wait for each other: of them nothing is
    said.
    """
    if (current.facts.pipeline_parallel_size or 1) > 1:
        return None
    per_second, step, busy = load.steps_per_second, roofline.step_seconds, gpus.gpu_utilization_ratio
    replicas = load.replicas_seen or 1.0
    if not per_second or not step or busy is None:
        return None
    return known(min(1.0, max(0.0, 1.0 - busy / (per_second / replicas * step))))


def _prompt_share(
    gap: float | None, current: EngineReading, load: Load, latency: Latency, roofline: Roofline
) -> float | None:
    """Of a new request's steps: half of one that is under way, one of its own per token budget of its prompt, and more
    where others' prompts come first. In each the host takes what it takes of a mean step.

    How many steps a TTFT holds follows from how long they are: with so many tokens at most in proportion.
    """
    ttft, step, tokens = latency.ttft_mean_seconds, roofline.step_seconds, load.step_tokens
    prompt = ratio(load.prompt_tokens_per_second, load.requests_started_per_second)
    if gap is None or step is None or prompt is None:
        return None
    chunk = min(prompt, current.facts.max_num_batched_tokens or prompt)
    chunks = ratio(prompt, chunk) or 1.0
    longer = max(1.0, ratio(chunk, tokens) or 1.0)
    steps = max(0.5 + chunks, (ratio(ttft, step) or 0.0) / longer)
    share = ratio(gap * step * steps, ttft)
    return None if share is None else min(1.0, share)


def _admission(load: Load, latency: Latency) -> float | None:
    """TTFT less queue and prefill. The two are observed when a request ends, the other at its first token: where a
    queue lasts they are of different requests, and nothing is said."""
    ttft, queue, prefill = latency.ttft_mean_seconds, latency.queue_mean_seconds, latency.prefill_mean_seconds
    if ttft is None or queue is None or prefill is None or (load.queue_share or 0.0) > 0.5:
        return None
    return known(max(0.0, ttft - queue - prefill)) if ratio(queue, ttft) is not None else None
