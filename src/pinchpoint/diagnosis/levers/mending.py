"""Levers that mend: the scrape, the engine's process, its host, the way to it. None of them needs a GPU."""

from collections.abc import Mapping

from pinchpoint.diagnosis.judgement import count, duration, percent
from pinchpoint.diagnosis.levers.flags import flag
from pinchpoint.diagnosis.levers.situation import Situation
from pinchpoint.diagnosis.verdict import Advice, Bottleneck

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
    load, growth = situation.signals.load, situation.signals.growth
    if situation.bottleneck is Bottleneck.MEMORY_GROWTH:
        if growth.neighbour:
            return None
        text = "If it is the engine's own, restart it at a quiet time, before the card is full."
    else:
        text = "Restart the engine when it does not recover."
    held = (load.requests_running_last or 0) + (load.requests_waiting_last or 0)
    lost = f"The {count(held)} requests it holds are lost; its prefix cache too." if held else None
    return Advice(action="restart_engine", text=text, risk=lost)


def stop_memory_growth(situation: Situation) -> Advice | None:
    growth = situation.signals.growth
    pace, full = growth.memory_growth_bytes_per_second, growth.memory_full_in_seconds
    card = f"GPU {growth.memory_growth_gpu}" if growth.memory_growth_gpu else "the card"
    who = growth.memory_growth_process
    dies = "an engine that needs memory there dies"
    return Advice(
        action="stop_memory_growth",
        text=f"Stop or move {who or 'the process that grows (nvidia-smi shows the memory of each)'} on {card}.",
        reason=f"the card's memory grows by {60 * pace / 2**20:,.0f} MiB a minute" if pace else None,
        effect=f"else {card} is full in {_minutes(full)}, and {dies}" if full else None,
        risk="It may be somebody else's." if growth.neighbour is not False else None,
    )


def raise_cpu_quota(situation: Situation) -> Advice | None:
    host = situation.signals.host
    throttled = host.host_cpu_throttled_ratio
    if throttled is None or throttled < situation.thresholds.cpu_throttled_begins:
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
    pressed = (host.host_cpu_pressure_ratio or 0.0) >= situation.thresholds.cpu_pressure_begins
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
    before, first = situation.signals.host.host_admission_seconds, situation.signals.latency.ttft_mean_seconds
    if before is None or first is None or before < first / 2:
        return None
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


def unbuffer_gateway(situation: Situation) -> Advice | None:
    way = situation.signals.way
    buffered = way.probe_buffered_share if way else None
    if buffered is not None and buffered < 0.5:
        return None
    return Advice(
        action="unbuffer_gateway",
        text="Switch buffering and compression of streamed answers off in every proxy (nginx: proxy_buffering off and "
        "gzip off for text/event-stream; or the header X-Accel-Buffering: no).",
        reason=None if buffered is None else f"{percent(buffered)} of our probes got their answer whole, at its end",
        effect="clients see the first token when the engine makes it, not when the answer is complete",
    )


def check_gateway(situation: Situation) -> Advice | None:
    way = situation.signals.way
    client, own = (way.probe_client_ttft_seconds, way.probe_engine_ttft_seconds) if way else (None, None)
    reason = effect = None
    if client is not None and own is not None and client > own:
        reason = f"a client waits {duration(client)}, of which the engine accounts for {duration(own)}"
        effect = f"up to {duration(client - own)} less to the first token"
    return Advice(
        action="check_gateway",
        text="Probe the engine past the gateway, from its own host (pinchpoint probe http://HOST:PORT): what is gone "
        "then is the gateway's (connections, TLS, filters, load).",
        reason=reason,
        effect=effect,
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
    """How long the GPU rests in a step, or a step against what its model and cards need."""
    roofline, gap = situation.signals.roofline, situation.signals.host.host_gap_ratio
    if gap is not None:
        return f"no kernel runs in {percent(gap)} of a step"
    if roofline.step_seconds is None or roofline.roofline_step_seconds is None:
        return None
    least = duration(roofline.roofline_step_seconds)
    return f"a step takes {duration(roofline.step_seconds)}, its model and cards need {least} at their peak"


def _version(text: str | None) -> tuple[int, int] | None:
    parts = (text or "").split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) > 1 and parts[0].isdecimal() and parts[1].isdecimal() else None


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else duration(seconds)
