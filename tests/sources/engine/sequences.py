"""Scrapes of a vLLM that does something over time: text in, a verdict out, by the real parser and the real rules."""

from collections.abc import Iterable

from pinchpoint.diagnosis import Diagnosis, Thresholds, diagnose
from pinchpoint.snapshot import EngineFacts, EngineReading, EngineTarget, Snapshot, Window
from pinchpoint.sources.engine import EpochTracker, reading_from_body, with_quirks

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 40.0)


def gauge(name: str, value: float | str, **labels: str) -> str:
    """One sample of one vLLM family, its labels besides model and engine in ``labels``."""
    every = {"engine": "0", "model_name": "m", **labels}
    inner = ",".join(f'{key}="{text}"' for key, text in every.items())
    return f"vllm:{name}{{{inner}}} {value}\n"


def histogram(name: str, observations: Iterable[float], *, engine: str = "0", total: float | None = None) -> str:
    """A histogram of all ``observations`` so far; ``total`` in place of their sum."""
    values = list(observations)
    lines = [
        gauge(f"{name}_bucket", sum(value <= bound for value in values), engine=engine, le=str(bound))
        for bound in BUCKETS
    ]
    lines.append(gauge(f"{name}_bucket", len(values), engine=engine, le="+Inf"))
    lines.append(gauge(f"{name}_sum", sum(values) if total is None else total, engine=engine))
    return "".join(lines) + gauge(f"{name}_count", len(values), engine=engine)


def state(
    running: float, waiting: float, kv: float, tokens: float, *, prompt: float = 1000.0, engine: str = "0"
) -> str:
    """What every scrape has: the gauges, and the token counters."""
    return (
        gauge("num_requests_running", running, engine=engine)
        + gauge("num_requests_waiting", waiting, engine=engine)
        + gauge("kv_cache_usage_perc", kv, engine=engine)
        + gauge("generation_tokens_total", tokens, engine=engine)
        + gauge("prompt_tokens_total", prompt, engine=engine)
    )


def readings(bodies: Iterable[str], *, step: float = 1.0, facts: EngineFacts | None = None) -> list[EngineReading]:
    """Each body scraped ``step`` seconds after the one before, with its epoch."""
    target = EngineTarget(engine="chat", url="http://127.0.0.1:8000", facts=facts or EngineFacts())
    epochs = EpochTracker()
    return [
        with_quirks(epochs.stamp(reading_from_body(target, body.encode(), None, number * step)))
        for number, body in enumerate(bodies)
    ]


def diagnosed(bodies: Iterable[str], *, step: float = 1.0, facts: EngineFacts | None = None) -> Diagnosis:
    """The verdict at the last scrape."""
    window = Window(300.0)
    for reading in readings(bodies, step=step, facts=facts):
        window = window.append(Snapshot(at=reading.at, engines=(reading,)))
    assert window.latest is not None
    return diagnose(window, "chat", window.latest.at, Thresholds())
