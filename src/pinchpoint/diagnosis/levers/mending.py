"""Levers that mend: the scrape, the engine's process, its host, the way to it. None of them needs a GPU."""

from collections.abc import Mapping

from pinchpoint.diagnosis.judgement import count, duration, percent
from pinchpoint.diagnosis.levers.flags import flag
from pinchpoint.diagnosis.levers.situation import Situation
from pinchpoint.diagnosis.verdict import Advice, Bottleneck

_THROTTLED = 0.05  # share of cgroup periods; a lower one comes from bursts that nobody feels
_PRESSED = 0.2  # PSI "some": share of time in which a task waited for a CPU
_ASYNC_BY_DEFAULT = (0, 14)  # vLLM's first version in which async scheduling is on by itself

# A signal that is named otherwise than the field of a reading it is made of.
_FIELDS: Mapping[str, str] = {
    "ttft_judged_seconds": "ttft_seconds",
    "inter_token_mean_seconds": "inter_token_seconds",
    "step_tokens": "iteration_tokens",
    "generation_tokens_per_second": "generation_tokens_total",
    "prefill_token_share": "prompt_tokens_total",
}


def restore_scrape(situation: Situation) -> Advice | None:
    absence = situation.signals.absence
    return Advice(
        action="restore_scrape",
        text="From this machine, curl the engine's /metrics: if that works, pinchpoint's URL or token for it is wrong.",
        reason=None if absence is None else f"asked for it: {absence.reason}",
    )


def wake_engine(situation: Situation) -> Advice | None:
    running = situation.signals.load.requests_waiting_last
    return Advice(
        action="wake_engine",
        text="POST /wake_up to the engine when it should serve.",
        reason=f"{count(running)} requests wait for it" if running else None,
        risk="Its weights and cache take their GPU memory again.",
    )


def check_engine_log(situation: Situation) -> Advice | None:
    still = situation.signals.load.seconds_without_progress
    return Advice(
        action="check_engine_log",
        text="Ask /health and read the engine's log: a dead core keeps its gauges.",
        reason=f"no token for {duration(still)}" if still else None,
    )


def restart_engine(situation: Situation) -> Advice | None:
    held = (situation.signals.load.requests_running_last or 0) + (situation.signals.load.requests_waiting_last or 0)
    return Advice(
        action="restart_engine",
        text="Restart the engine when it does not recover.",
        risk=f"The {count(held)} requests it holds are lost; its prefix cache too." if held else None,
    )


def stop_memory_growth(situation: Situation) -> Advice | None:
    growth = situation.signals.growth
    pace, full, where = (
        growth.memory_growth_bytes_per_second,
        growth.memory_full_in_seconds,
        growth.memory_growth_gpu,
    )
    card = f"GPU {where}" if where else "the card"
    return Advice(
        action="stop_memory_growth",
        text=f"Find who grows on {card} (nvidia-smi lists its processes) and restart it at a time of your choice.",
        reason=f"it grows by {60 * pace / 2**20:,.0f} MiB a minute" if pace else None,
        effect=f"without it {card} is full in {_minutes(full)}, and an engine that needs memory there dies"
        if full
        else None,
        risk="A process other than the engine may be somebody else's.",
    )


def raise_cpu_quota(situation: Situation) -> Advice | None:
    host = situation.signals.host
    throttled = host.host_cpu_throttled_ratio
    if throttled is None or throttled < _THROTTLED:
        return None
    needed = host.host_cpu_cores_needed
    most = max((cores for cores in (needed, host.host_engine_cpu_cores) if cores), default=None)
    return Advice(
        action="raise_cpu_quota",
        text="Raise or remove the CPU limit of the engine's container (Kubernetes resources.limits.cpu, docker --cpus)"
        + (f": {most * 1.5:.0f} cores or more." if most else "."),
        reason=f"its CPU quota was used up in {percent(throttled)} of the periods: then it stands still for the rest",
        effect="tokens come without those pauses",
        risk="Neighbours on the host have less.",
    )


def give_cpu_cores(situation: Situation) -> Advice | None:
    host = situation.signals.host
    few = (host.host_cpu_count or 0) < (host.host_cpu_cores_needed or 0) and host.host_cpu_count is not None
    pressed = (host.host_cpu_pressure_ratio or 0.0) >= _PRESSED
    if not few and not pressed:
        return None
    reasons = [
        *(
            [f"{count(host.host_cpu_count or 0)} cores, it needs {count(host.host_cpu_cores_needed or 0)}"]
            if few
            else []
        ),
        *([f"tasks wait for a CPU in {percent(host.host_cpu_pressure_ratio or 0)} of the time"] if pressed else []),
    ]
    return Advice(
        action="give_cpu_cores",
        text="Give the engine cores of its own: at least one a GPU, one for its core and one for its API server; move "
        "other work off them (cpuset, taskset, nice).",
        reason="; ".join(reasons),
    )


def add_api_servers(situation: Situation) -> Advice | None:
    """Only where the time before the queue is the larger part of TTFT: tokenizing, templates, images."""
    latency = situation.signals.latency
    first, queue, prefill = latency.ttft_mean_seconds, latency.queue_mean_seconds, latency.prefill_mean_seconds
    if first is None or queue is None or prefill is None or first - queue - prefill < first / 2:
        return None
    before = first - queue - prefill
    return Advice(
        action="add_api_servers",
        text="Run more API server processes: they tokenize, apply chat templates and decode images side by side.",
        reason=f"of {duration(first)} to the first token {duration(before)} pass before the request is queued",
        effect=f"four take about a quarter of those {duration(before)}, given as many cores",
        flag=flag(situation.kind, "api_servers", 4),
        risk="One core more for each.",
    )


def async_scheduling(situation: Situation) -> Advice | None:
    version = _version(situation.signals.facts.version)
    if flag(situation.kind, "async_scheduling") is None or (version is not None and version >= _ASYNC_BY_DEFAULT):
        return None
    return Advice(
        action="async_scheduling",
        text="Schedule the next step while the GPU works on this one.",
        reason=_gap(situation),
        effect="the scheduler's time between two steps is hidden",
        flag=flag(situation.kind, "async_scheduling"),
        risk="On by itself from 0.14; older versions lack it for some features (structured output before 0.11.1).",
    )


def cuda_graphs(situation: Situation) -> Advice | None:
    if situation.kind not in ("", "vllm"):
        return None
    return Advice(
        action="cuda_graphs",
        text="See that it is not started with --enforce-eager: without CUDA graphs the CPU launches each kernel.",
        reason=_gap(situation),
        risk="CUDA graphs take up to a few GiB, and longer to start.",
    )


def stop_buffering(situation: Situation) -> Advice | None:  # noqa: ARG001 - every lever has this signature
    return Advice(
        action="stop_buffering",
        text="Switch buffering and compression of streamed answers off in every proxy (nginx: proxy_buffering off and "
        "gzip off for text/event-stream; or the header X-Accel-Buffering: no).",
        effect="clients see the first token when the engine makes it, not when the answer is complete",
    )


def go_around_the_gateway(situation: Situation) -> Advice | None:
    told = situation.signals.way
    client, own = (told.probe_client_ttft_seconds, told.probe_engine_ttft_seconds) if told else (None, None)
    known = client is not None and own is not None
    return Advice(
        action="go_around_the_gateway",
        text="Probe it around the gateway, from its own host (pinchpoint probe http://HOST:PORT): the difference is "
        "the gateway's. Keep connections open, and look at its CPU, its limits and its hops.",
        reason=f"a client waits {duration(client or 0)}, of which the engine accounts for {duration(own or 0)}"
        if known
        else None,
        effect=f"up to {duration((client or 0) - (own or 0))} less to the first token" if known else None,
    )


def add_signals(situation: Situation) -> Advice | None:
    """What can be given, and what this kind of engine has not to give."""
    signals, missing = situation.signals, situation.missing
    if signals.probed is not None and situation.bottleneck is not Bottleneck.UNKNOWN:
        return Advice(
            action="add_signals",
            text="Serve with an engine that has metrics (vLLM, SGLang, llama-server --metrics).",
            reason="the engine exposes none: this is seen by our own probes and its GPUs alone",
        )
    if situation.bottleneck is not Bottleneck.UNKNOWN or signals.load.scrapes < situation.thresholds.min_scrapes:
        return None
    never = [name for name in missing if _FIELDS.get(name, name) in signals.not_exposed]
    unseen = [name for name in missing if name.startswith("gpu_") and "gpu_readings" in missing]
    given = [name for name in missing if name not in (*never, *unseen)]
    words = [f"Give what is missing: {', '.join(given)}."] if given else []
    if unseen:
        words.append("Its GPUs are not watched here: run pinchpoint on their node, and set the engine's gpus.")
    if never:
        words.append(f"{signals.facts.kind or 'This kind of engine'} does not expose {', '.join(never)}.")
    return Advice(action="add_signals", text=" ".join(words)) if words else None


def _gap(situation: Situation) -> str | None:
    """What a step takes against what its model and cards need."""
    roofline, util = situation.signals.roofline, situation.signals.devices.gpu_utilization_ratio
    if roofline.step_seconds is not None and roofline.roofline_step_seconds is not None:
        least = duration(roofline.roofline_step_seconds)
        return f"a step takes {duration(roofline.step_seconds)}, its model and cards need {least} at their peak"
    return None if util is None else f"the GPU works {percent(util)} of the time although requests run"


def _version(text: str | None) -> tuple[int, int] | None:
    parts = (text or "").split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) > 1 and parts[0].isdecimal() and parts[1].isdecimal() else None


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else duration(seconds)
