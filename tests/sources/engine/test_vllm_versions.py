"""Every release's exposition becomes the right reading: which fields it knows, and what they are.

Expected values are read from the text by regular expressions, independently of the parser.
"""

import math
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from pinchpoint.snapshot import EngineFacts, EngineReading, EngineTarget, Histogram, ReplicaReading
from pinchpoint.sources.engine import reading_from_body, with_quirks

DATA = Path("tests/data")
SYNTHETIC = DATA / "engine-metrics"
TARGET = EngineTarget(engine="chat", url="http://127.0.0.1:8000")

V0 = {
    "model", "requests_running", "requests_waiting", "requests_swapped", "kv_cache_usage_ratio",
    "kv_cache_cpu_usage_ratio", "prompt_tokens_total", "generation_tokens_total", "ttft_seconds", "inter_token_seconds",
    "e2e_seconds",
}  # fmt: skip
V0_4 = V0 | {
    "preemptions_total", "request_success_total", "request_prompt_tokens", "request_generation_tokens",
    "request_choices",
}  # fmt: skip
V0_ONLY = {
    "prefix_cache_hit_ratio", "prefix_cache_cpu_hit_ratio", "speculative_acceptance_ratio",
    "speculative_efficiency_ratio", "speculative_accepted_tokens_total", "speculative_draft_tokens_total",
    "speculative_emitted_tokens_total",
}  # fmt: skip
V0_5_5 = V0_4 | V0_ONLY
PHASES = {
    "queue_seconds", "prefill_seconds", "decode_seconds", "inference_seconds", "iteration_tokens", "request_max_tokens",
    "request_max_generation_tokens",
}  # fmt: skip
V0_6_6 = V0_5_5 | PHASES
V1_8 = (V0_4 | PHASES | {"prefix_cache_queries_total", "prefix_cache_hits_total"}) - {
    "requests_swapped", "kv_cache_cpu_usage_ratio",
}  # fmt: skip
V1_9 = V1_8 | {"kv_cache_capacity_tokens"}
V1_11 = V1_9 | {"tpot_seconds"}
V1_11_2 = V1_11 | {
    "awake", "sleep_level", "external_prefix_cache_queries_total", "external_prefix_cache_hits_total",
    "multimodal_cache_queries_total", "multimodal_cache_hits_total",
}  # fmt: skip
V1_13 = V1_11_2 | {"request_computed_prompt_tokens"}
V1_16_ON = V1_13 | {
    "prompt_tokens_computed_total", "prompt_tokens_by_source_total", "prompt_tokens_cached_total",
}  # fmt: skip
V1_16 = V1_16_ON | {"prompt_tokens_recomputed_total"}
V1_20 = V1_16_ON | {"requests_waiting_by_reason"}
V1_30 = V1_20 | {"request_preemptions"}
V1_32 = V1_30 | {"prompt_tokens_cached_by_tier_total"}
DETAILED = V1_32 | {
    "kv_block_lifetime_seconds", "kv_block_idle_before_evict_seconds", "kv_block_reuse_gap_seconds",
    "speculative_drafts_total", "speculative_draft_tokens_total", "speculative_accepted_tokens_total",
    "speculative_accepted_tokens_by_position_total",
}  # fmt: skip
RUST = {
    "model", "requests_running", "requests_waiting", "kv_cache_usage_ratio", "preemptions_total",
    "prompt_tokens_total", "ttft_seconds",
}  # fmt: skip

KNOWN = {
    "0.3.3-v0": V0, "0.4.3-v0": V0_4, "0.5.0-v0": V0_4, "0.5.5-v0": V0_5_5, "0.6.0-v0": V0_5_5,
    "0.6.6-v0": V0_6_6, "0.7.3-v0": V0_6_6,
    "0.8.0-v1": V1_8, "0.8.5-v1": V1_8,  # these print num_gpu_blocks="None"
    "0.9.0-v1": V1_9, "0.9.2-v1": V1_9, "0.10.0-v1": V1_9, "0.10.2-v1": V1_9, "0.11.0-v1": V1_11,
    "0.11.0-v1-showhidden": V1_11,
    "0.11.2-v1": V1_11_2, "0.12.0-v1": V1_11_2, "0.12.0-v1-showhidden": V1_11_2, "0.13.0-v1": V1_13,
    "0.14.0-v1": V1_13,
    "0.16.0-v1": V1_16, "0.18.0-v1": V1_16,
    "0.20.0-v1": V1_20, "0.22.0-v1": V1_20, "0.25.0-v1": V1_20, "0.28.0-v1": V1_20, "0.30.0-v1": V1_30,
    "0.32.0-v1": V1_32, "0.33.0-v1": V1_32, "0.33.0-v1-dp2-spec-kvmetrics": DETAILED,
    "0.33.0-v1-multiprocess-apiserver2": V1_32,
    "0.33.0-v1-openmetrics-allow-utf-8": V1_32, "0.33.0-v1-openmetrics-escaping-underscores": V1_32,
    "0.33-rust-frontend-openmetrics-synthetic": RUST,
}  # fmt: skip

TTFT_SHORT = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, math.inf)
TTFT_LONG = (*TTFT_SHORT[:-1], 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0, math.inf)

SCALARS = {
    "requests_running": ["num_requests_running"],
    "requests_waiting": ["num_requests_waiting"],
    "kv_cache_usage_ratio": ["kv_cache_usage_perc", "gpu_cache_usage_perc"],
    "preemptions_total": ["num_preemptions_total"],
    "prompt_tokens_total": ["prompt_tokens_total"],
    "generation_tokens_total": ["generation_tokens_total"],
    "prefix_cache_queries_total": ["prefix_cache_queries_total", "gpu_prefix_cache_queries_total"],
    "prefix_cache_hits_total": ["prefix_cache_hits_total", "gpu_prefix_cache_hits_total"],
}
HISTOGRAMS = {
    "ttft_seconds": ["time_to_first_token_seconds"],
    "inter_token_seconds": ["inter_token_latency_seconds", "time_per_output_token_seconds"],
    "queue_seconds": ["request_queue_time_seconds"],
    "prefill_seconds": ["request_prefill_time_seconds"],
    "decode_seconds": ["request_decode_time_seconds"],
    "e2e_seconds": ["e2e_request_latency_seconds"],
    "iteration_tokens": ["iteration_tokens_total"],
}


def read(path: Path) -> EngineReading:
    """The file's reading, its release being known as /version would tell it."""
    release = re.search(r"vllm-([0-9.]+[0-9])", path.name)
    facts = EngineFacts(version=release[1] if release else None)
    return with_quirks(reading_from_body(replace(TARGET, facts=facts), path.read_bytes(), None, 7.0))


def path_of(version: str) -> Path:
    return next(SYNTHETIC.glob(f"vllm-{version}.prom"), SYNTHETIC / f"vllm-{version}.om.txt")


def known(replica: ReplicaReading) -> set[str]:
    return {f.name for f in fields(replica) if getattr(replica, f.name) not in (None, {})} - {"replica"}


def in_text(text: str, names: list[str], engine: str, suffix: str = "") -> list[float]:
    """The values of the first name that the text has, for one engine label (or where there is none)."""
    for name in names:
        lines = re.findall(rf"^vllm[:_]{name}{suffix}(?:\{{(.*)\}})? (\S+)$", text, re.MULTILINE)
        values = [float(value) for labels, value in lines if f'engine="{engine}"' in labels or "engine=" not in labels]
        if values:
            return values
    return []


def test_every_file_of_a_vllm_is_in_the_table():
    assert {re.sub(r"\.(prom|om\.txt)$", "", p.name) for p in SYNTHETIC.glob("vllm-*")} == {f"vllm-{v}" for v in KNOWN}


@pytest.mark.parametrize("version", KNOWN)
def test_a_release_is_read_as_far_as_it_speaks(version: str):
    reading = read(path_of(version))
    assert [r.replica for r in reading.replicas] == (["0", "1"] if "dp2" in version else ["0"])
    assert all(known(replica) == KNOWN[version] for replica in reading.replicas)
    recounts = re.match(r"0\.(8|9|10|11)\.", version) and not version.startswith("0.11.2")  # these show preemptions
    assert [words for words in reading.warnings if "preempted and computed again" not in words] == []
    assert len(reading.warnings) == bool(recounts)
    assert (reading.engine, reading.at, reading.url) == ("chat", 7.0, TARGET.url)


@pytest.mark.parametrize("path", [*map(path_of, KNOWN), *sorted(DATA.glob("vllm-real/*/*.prom"))[::9]], ids=str)
def test_values_are_those_of_the_text(path: Path):
    text = path.read_text()
    for replica in read(path).replicas:
        for field, names in SCALARS.items():
            assert [getattr(replica, field)] == (in_text(text, names, replica.replica) or [None]), field
        for field, names in HISTOGRAMS.items():
            histogram: Histogram | None = getattr(replica, field)
            if histogram is None:
                assert in_text(text, names, replica.replica, "_count") == [], field
                continue
            assert [histogram.count] == in_text(text, names, replica.replica, "_count"), field
            assert [histogram.sum] == in_text(text, names, replica.replica, "_sum"), field
            assert list(histogram.counts) == in_text(text, names, replica.replica, "_bucket"), field


@pytest.mark.parametrize("path", sorted(DATA.glob("vllm-real/*/*.prom"))[::9], ids=str)
def test_a_real_server_is_read_whole(path: Path):
    (replica,) = read(path).replicas
    assert known(replica) == V1_32
    assert replica.kv_cache_capacity_tokens == (5120 if "saturated" in str(path) else 69888)
    assert replica.model == "tiny-qwen2"
    assert replica.awake is True


@pytest.mark.parametrize(
    ("version", "bounds"),
    [("0.3.3-v0", TTFT_SHORT), ("0.8.0-v1", TTFT_SHORT), ("0.8.5-v1", TTFT_LONG), ("0.33.0-v1", TTFT_LONG)],
)
def test_bucket_bounds_are_those_of_the_release(version: str, bounds: tuple[float, ...]):
    histogram = read(path_of(version)).replicas[0].ttft_seconds
    assert histogram is not None
    assert histogram.bounds == bounds


@pytest.mark.parametrize("version", ["0.9.0-v1", "0.25.0-v1", "0.28.0-v1", "0.33.0-v1-dp2-spec-kvmetrics"])
def test_capacity_is_the_printed_size_or_blocks_times_block_size(version: str):
    assert {r.kv_cache_capacity_tokens for r in read(path_of(version)).replicas} == {446_688}


def test_replicas_keep_their_own_values():
    zero, one = read(path_of("0.33.0-v1-dp2-spec-kvmetrics")).replicas
    assert (zero.requests_running, one.requests_running) == (41, 20)
    assert zero.request_success_total == {"stop": 79, "length": 21, "abort": 0, "error": 0, "repetition": 0}
    assert zero.prompt_tokens_computed_total == 42_880
    assert zero.requests_waiting_by_reason == {"capacity": 0, "deferred": 0}


def test_what_the_engine_prints_of_itself_completes_the_facts():
    facts = read(path_of("0.33.0-v1")).facts
    assert facts.model == "Qwen/Qwen2.5-7B-Instruct"
    assert facts.gpu_memory_utilization == 0.92
    assert facts.enable_prefix_caching is True
    assert facts.max_num_seqs is None
