"""The simulated engine against published measurements: how far its ranges of efficiency are from real ones.

    python bench/calibration.py [--seeds 15] [--json]

A simulated node draws its efficiencies and overheads from its seed, so a figure is the median over seeds, with their
range beside it. Prints a table; nothing is asserted here (``tests/simulator/test_calibration.py`` does).
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a file

from rich.console import Console
from rich.table import Table

from bench.report import machine
from pinchpoint.physics import CONFIGS, GPUS
from pinchpoint.simulator.engine.loop import SimulatedEngine
from pinchpoint.simulator.engine.request import Request
from pinchpoint.simulator.engine.spec import EngineSpec

_8B, _70B, _MIXTRAL = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.3-70B-Instruct",
    "mistralai/Mixtral-8x7B-Instruct-v0.1",
)
_A100, _A100_40, _H100, _H200 = (
    "NVIDIA A100-SXM4-80GB",
    "NVIDIA A100-SXM4-40GB",
    "NVIDIA H100 80GB HBM3",
    "NVIDIA H200",
)
_CI = "vLLM's performance benchmark, buildkite.com/vllm/performance-benchmark/builds/9515"
_CI_A100 = "the same suite on another runner, buildkite.com/julialang/opencl-dot-jl/builds/306"
_SWEEP = "johnmusgrave.com/p/vllm-throughput-latency-sweep-on, vLLM 0.23"
_RECIPE = "yobitelcomm.github.io/bench/recipes/concurrency-sweep, vLLM 0.21"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One published number and how the same is played. ``play`` gives it for a seed, in ``unit``."""

    what: str
    source: str
    unit: str
    published: float
    play: Callable[[int], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    what: str
    source: str
    unit: str
    published: float
    simulated: float
    low: float
    high: float
    error_ratio: float


def _engine(model: str, gpu: str, ranks: int, seed: int) -> SimulatedEngine:
    spec = EngineSpec(
        name="calibration",
        model=model,
        model_config=CONFIGS[model],
        gpu=GPUS[gpu],
        gpus=tuple(map(str, range(ranks))),
        enable_prefix_caching=False,
    )
    return SimulatedEngine(spec, seed)


def _answered(engine: SimulatedEngine, lengths: list[tuple[int, int]]) -> list[Request]:
    """All asked for at once, and played to the end."""
    requests = [
        Request(identity=number, arrived_at=0.0, prompt_tokens=prompt, output_tokens=output, max_tokens=output)
        for number, (prompt, output) in enumerate(lengths)
    ]
    for request in requests:
        engine.submit(request)
    engine.run_until(1e5)
    return requests


def _whole_seconds(model: str, gpu: str, ranks: int, seed: int) -> float:
    """The suite's latency test: eight prompts of 32 tokens, 128 tokens each, until the last has ended."""
    return max(request.last_token_at for request in _answered(_engine(model, gpu, ranks, seed), [(32, 128)] * 8))


def _pace_seconds(model: str, gpu: str, prompt: int, clients: int, seed: int) -> float:
    """Mean time per output token after the first."""
    requests = _answered(_engine(model, gpu, 1, seed), [(prompt, 128)] * clients)
    return median((r.last_token_at - (r.first_token_at or 0.0)) / (r.output_tokens - 1) for r in requests)


def _requests_per_second(model: str, gpu: str, ranks: int, seed: int) -> float:
    """The suite's throughput test: 200 prompts of ShareGPT at once. Its lengths here are log-normal with the means
    that vLLM's sampling of it has, about 220 tokens in and 200 out."""
    random = Random(seed)

    def length(mean: float, sigma: float) -> int:
        return max(4, min(1024, round(mean * random.lognormvariate(-sigma * sigma / 2, sigma))))

    lengths = [(length(220, 1.1), length(200, 0.8)) for _ in range(200)]
    requests = _answered(_engine(model, gpu, ranks, seed), lengths)
    return len(requests) / max(request.last_token_at for request in requests)


def _latency(what: str, model: str, gpu: str, ranks: int, published: float, source: str = _CI) -> Point:
    play = partial(_whole_seconds, model, gpu, ranks)
    return Point(what=f"{what}: 8 × 32 in, 128 out", source=source, unit="s", published=published, play=play)


def _throughput(what: str, model: str, gpu: str, ranks: int, published: float, source: str = _CI) -> Point:
    play = partial(_requests_per_second, model, gpu, ranks)
    return Point(what=f"{what}: 200 of ShareGPT at once", source=source, unit="req/s", published=published, play=play)


POINTS: tuple[Point, ...] = (
    _latency("Llama 8B, H200", _8B, _H200, 1, 0.8335),
    _latency("Llama 70B, 4 × H200", _70B, _H200, 4, 2.0776),
    _latency("Mixtral 8x7B, 2 × H200", _MIXTRAL, _H200, 2, 1.9166),
    _latency("Llama 8B, A100", _8B, _A100, 1, 1.5853, _CI_A100),
    _throughput("Llama 8B, H200", _8B, _H200, 1, 22.567),
    _throughput("Llama 70B, 4 × H200", _70B, _H200, 4, 9.839),
    _throughput("Mixtral 8x7B, 2 × H200", _MIXTRAL, _H200, 2, 8.063),
    _throughput("Llama 8B, A100", _8B, _A100, 1, 11.051, _CI_A100),
    Point(
        what="Llama 8B, A100 40 GB: time per token, 1 client, 1024 in",
        source=_SWEEP,
        unit="s",
        published=1 / 75,
        play=partial(_pace_seconds, _8B, _A100_40, 1024, 1),
    ),
    Point(
        what="Llama 8B, H100: time per token, 1 client",
        source=_RECIPE,
        unit="s",
        published=0.00648,
        play=partial(_pace_seconds, _8B, _H100, 128, 1),
    ),
    Point(
        what="Llama 8B, H100: time per token, 4 clients",
        source=_RECIPE,
        unit="s",
        published=0.00659,
        play=partial(_pace_seconds, _8B, _H100, 128, 4),
    ),
)


def compare(seeds: int) -> list[Compared]:
    """Every point, played with so many seeds."""
    found = []
    for point in POINTS:
        values = [point.play(seed) for seed in range(seeds)]
        middle = median(values)
        found.append(
            Compared(
                what=point.what,
                source=point.source,
                unit=point.unit,
                published=point.published,
                simulated=middle,
                low=min(values),
                high=max(values),
                error_ratio=middle / point.published - 1.0,
            )
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="The simulated engine against published measurements.")
    parser.add_argument("--seeds", type=int, default=15, help="simulated nodes a figure is the median of")
    parser.add_argument("--json", action="store_true", dest="as_json")
    asked = parser.parse_args()
    found = compare(asked.seeds)
    errors = [abs(each.error_ratio) for each in found]
    if asked.as_json:
        points = [asdict(each) for each in found]
        print(json.dumps({"machine": machine(), "seeds": asked.seeds, "points": points}, indent=2))
        return
    table = Table(title=f"Simulated engine, median of {asked.seeds} seeds, against published figures")
    sources = list(dict.fromkeys(each.source for each in found))
    for column in ("what", "published", "simulated", "range", "error", ""):
        table.add_column(column, justify="left" if column in ("what", "") else "right")
    for each in found:
        table.add_row(
            each.what,
            f"{each.published:.4g} {each.unit}",
            f"{each.simulated:.4g}",
            f"{each.low:.4g} to {each.high:.4g}",
            f"{100 * each.error_ratio:+.0f} %",
            f"\\[{1 + sources.index(each.source)}]",
        )
    console = Console(width=120)
    console.print(table)
    for number, source in enumerate(sources, start=1):
        console.print(f"  \\[{number}] {source}", highlight=False)
    console.print(f"absolute error: median {100 * median(errors):.0f} %, largest {100 * max(errors):.0f} %")


if __name__ == "__main__":
    main()
