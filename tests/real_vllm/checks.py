"""What pinchpoint says, held against what the clients counted and what the engine itself logs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from tests.real_vllm.install import VERSION
from tests.real_vllm.load import Ledger
from tests.real_vllm.model import MAX_POSITIONS
from tests.real_vllm.server import MODEL, Vllm
from tests.real_vllm.states import Run, State
from tests.real_vllm.watching import Look, Pinchpoint

# The engine's clock starts when a request has been parsed and stops before its token is on the wire; on a machine whose
# cores are all taken that is not nothing.
TTFT_BETWEEN_SECONDS = 0.5
TTFT_BETWEEN_RATIO = 0.1
# Where each fact can be learnt, as this engine is started: no metric, no flag and no answer says them all.
ORIGINS = {
    "kind": "metrics",
    "version": "metrics",
    "max_num_seqs": "command_line",
    "max_model_len": "models",
    "pipeline_parallel_size": "log",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: what it was and what it had to be, in words."""

    what: str
    seen: object
    wanted: object
    good: bool


def equal(what: str, seen: object, wanted: object) -> Check:
    return Check(what, seen, wanted, seen == wanted)


def within(what: str, seen: float | None, low: float, high: float) -> Check:
    rounded = None if seen is None else round(seen, 3)
    return Check(what, rounded, f"{low:g} to {high:g}", seen is not None and low <= seen <= high)


def of_the_facts(pinchpoint: Pinchpoint, engine: Vllm, run: Run) -> Iterator[Check]:
    """What pinchpoint knows of the engine, of whom it was told an address at most."""
    facts, origins = pinchpoint.facts(), pinchpoint.origins()
    yield equal("kind", facts.get("kind"), "vllm")
    yield equal("version", facts.get("version"), VERSION)
    yield equal("model", facts.get("model"), MODEL)
    yield equal("max_model_len", facts.get("max_model_len"), str(MAX_POSITIONS))
    yield equal("max_num_seqs", facts.get("max_num_seqs"), str(run.max_num_seqs))
    for fact, origin in ORIGINS.items():
        yield equal(f"who says {fact}", origins.get(fact), origin)
    capacities = [float(engine.kv_cache_tokens)] * run.replicas
    yield equal("KV capacity of each replica", list(pinchpoint.series("kv_cache_capacity_tokens").values()), capacities)


def of_the_state(state: State, run: Run, looks: Sequence[Look]) -> Iterator[Check]:
    """The steady part of a state: its reading, and the class in the end."""
    yield equal("class in the diagnosis", looks[-1].bottleneck, state.bottleneck)
    yield equal("class in the metrics", looks[-1].exported, state.bottleneck)
    yield equal("looks without a reading", sum(look.running is None or look.waiting is None for look in looks), 0)
    yield within("running, mean", mean(look.running for look in looks), *state.running)
    yield within("running, most", max(look.running or 0.0 for look in looks), 0, run.max_num_seqs * run.replicas)
    yield within("waiting, mean", mean(look.waiting for look in looks), *state.waiting)
    yield within("KV usage, mean", mean(look.kv for look in looks), *state.kv)
    yield within("KV usage, most", max(look.kv or 0.0 for look in looks), 0, 1)
    if state.load:
        at_once = [(look.running or 0.0) + (look.waiting or 0.0) for look in looks]
        yield within("running + waiting, most", max(at_once), 1, state.load.clients)
        yield within("tokens a second", mean(look.tokens_per_second for look in looks), 1, 10_000)


def of_the_counters(pinchpoint: Pinchpoint, ledger: Ledger) -> Iterator[Check]:
    """Everything since the engine's start: once it rests, its counters and the clients' agree to the token."""
    good, tokens = len(ledger.good), ledger.generation_tokens
    yield equal("requests that failed", sorted({f"{each.status} {each.error}" for each in ledger.failed}), [])
    yield equal("prompt tokens", pinchpoint.total("prompt_tokens_total"), float(ledger.prompt_tokens))
    yield equal("generation tokens", pinchpoint.total("generation_tokens_total"), float(tokens))
    for reason in ("length", "stop"):
        seen = pinchpoint.total("request_success_total", finished_reason=reason)
        yield equal(f"requests finished by {reason}", seen, float(ledger.finished(reason)))
    rejections = pinchpoint.total("admission_rejections_total")
    yield equal("requests turned away at the door", rejections, float(ledger.refused))
    yield equal("first tokens", pinchpoint.total("ttft_seconds_count"), float(good))
    yield equal("end-to-end times", pinchpoint.total("e2e_seconds_count"), float(good))
    yield equal("times between tokens", pinchpoint.total("inter_token_seconds_count"), float(tokens - good))
    if good:
        seen = (pinchpoint.total("ttft_seconds_sum") or 0.0) / good
        client = ledger.ttft_mean_seconds
        low = max(0.0, client - TTFT_BETWEEN_SECONDS - TTFT_BETWEEN_RATIO * client)
        yield within("TTFT mean, below the clients'", seen, low, client)


def mean(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
