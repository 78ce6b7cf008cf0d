"""What the engine has counted since it started: the numbers behind its /metrics."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate

from pinchpoint.simulator.engine.batching import Batch
from pinchpoint.simulator.engine.request import Request

# vLLM's default buckets since 0.8.5 (vllm/v1/metrics/loggers.py); +Inf is implied.
TTFT_BOUNDS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0,
    640.0, 2560.0,
)  # fmt: skip
TOKEN_BOUNDS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
REQUEST_BOUNDS = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
)  # fmt: skip
ITERATION_BOUNDS = tuple(float(n) for n in (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384))
FINISH_REASONS = ("stop", "length", "abort", "error", "repetition")


def size_bounds(max_model_len: int) -> tuple[float, ...]:
    """The 1-2-5 series up to ``max_model_len``."""
    series = (float(digit * 10**power) for power in range(9) for digit in (1, 2, 5))
    return tuple(bound for bound in series if bound <= max_model_len)


class Tally:
    """A histogram in the making."""

    __slots__ = ("bounds", "count", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0
        self.count = 0

    def observe(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times
        self.count += times

    def cumulative(self) -> Iterable[int]:
        """Counts of observations <= each bound, and of all."""
        return accumulate(self.counts)


class Ledger:
    """Counters and histograms of one engine process, each moved at the moment at which vLLM moves it."""

    def __init__(self, max_model_len: int) -> None:
        sizes = size_bounds(max_model_len)
        self.preemptions = 0
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.generation_tokens = 0
        self.prefix_queries = 0
        self.prefix_hits = 0
        self.success = dict.fromkeys(FINISH_REASONS, 0)
        self.ttft = Tally(TTFT_BOUNDS)
        self.inter_token = Tally(TOKEN_BOUNDS)
        self.tpot = Tally(TOKEN_BOUNDS)
        self.e2e, self.queue, self.inference, self.prefill, self.decode = (Tally(REQUEST_BOUNDS) for _ in range(5))
        self.iteration_tokens = Tally(ITERATION_BOUNDS)
        self.prompt_size, self.generation_size, self.max_generation_size = Tally(sizes), Tally(sizes), Tally(sizes)
        self.params_max_tokens, self.prefill_computed = Tally(sizes), Tally(sizes)
        self.params_n = Tally(size_bounds(20))
        self.request_preemptions = Tally((1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0))

    def scheduled(self, batch: Batch) -> None:
        """A step was put together: prefix look-ups and preemptions happen here."""
        self.preemptions += batch.preemptions
        self.prefix_queries += batch.prefix_queries
        self.prefix_hits += batch.prefix_hits

    def tokens(self, seconds: float, times: int = 1) -> None:
        """So many requests got a token, each ``seconds`` after its last one."""
        self.generation_tokens += times
        self.inter_token.observe(seconds, times)

    def first_token(self, request: Request, now: float) -> None:
        """Prompt tokens and TTFT count when the prefill has ended, not chunk by chunk."""
        self.prompt_tokens += request.prompt_tokens
        self.cached_tokens += request.cached_tokens
        self.generation_tokens += 1
        self.ttft.observe(now - request.arrived_at)

    def finished(self, request: Request, now: float) -> None:
        """All per-request histograms move at the end of the request, and never for an aborted one."""
        assert request.scheduled_at is not None
        assert request.first_token_at is not None
        self.success[request.finish_reason] += 1
        self.e2e.observe(now - request.arrived_at)
        self.queue.observe(request.scheduled_at - request.queued_at)
        self.inference.observe(now - request.scheduled_at)
        self.prefill.observe(request.first_token_at - request.scheduled_at)
        self.decode.observe(now - request.first_token_at)
        if request.generated_tokens > 1:
            self.tpot.observe((now - request.first_token_at) / (request.generated_tokens - 1))
        self.prompt_size.observe(request.prompt_tokens)
        self.generation_size.observe(request.generated_tokens)
        self.max_generation_size.observe(request.generated_tokens)
        self.params_max_tokens.observe(request.max_tokens)
        self.params_n.observe(1)
        self.prefill_computed.observe(request.prompt_tokens - request.cached_tokens)
        self.request_preemptions.observe(request.preemptions)
