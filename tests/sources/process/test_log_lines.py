"""Start-up logs: real ones, and every form that a line has had."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.sources.process.log_file import END_BYTES, MAX_WHOLE_BYTES, facts_of_file
from pinchpoint.sources.process.log_lines import facts_in

LOGS = Path("tests/data/vllm-real/startup-logs")
PREFIX = "(EngineCore pid=7) INFO 11-30 17:32:14 [kv_cache_utils.py:2327] "


def said(*lines: str, **how: object) -> dict[str, object]:
    return facts_in(lines, **how).known()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("log", "facts"),
    [
        ("base", {"max_num_seqs": 16, "kv_cache_capacity_tokens": 69888.0}),
        ("kvsat", {"max_num_seqs": 64, "kv_cache_capacity_tokens": 5120.0}),
        ("err", {"max_num_seqs": 2, "kv_cache_capacity_tokens": 5120.0}),
        ("api2", {"max_num_seqs": 8, "max_num_batched_tokens": 2048}),
        ("dp2", {"max_num_seqs": 8, "max_num_batched_tokens": 2048, "data_parallel_size": 2}),
    ],
)
def test_a_real_start_of_vllm_says_how_it_is_configured(log: str, facts: dict[str, object]) -> None:
    told = facts_of_file(str(LOGS / f"{log}.log")).known()
    common = {
        "version": "0.32.0", "model": "tiny-qwen2", "max_model_len": 2048, "tensor_parallel_size": 1,
        "pipeline_parallel_size": 1, "enable_prefix_caching": True, "kv_cache_capacity_tokens": 69888.0,
    }  # fmt: skip
    assert told == {**common, **facts}


@pytest.mark.parametrize(
    ("lines", "tokens"),
    [
        (["GPU KV cache size: 446,688 tokens", "Maximum concurrency for 8,192 tokens per request: 54.53x"], 446_688),
        (["GPU KV cache size: 446,688 tokens, Maximum concurrency for 8,192 tokens per request: 54.53x"], 446_688),
        (["CPU KV cache size: 69,888 tokens, Maximum concurrency for 2,048 tokens per request: 34.12x"], 69_888),
        (["TPU KV cache size: 69,888 tokens, Maximum concurrency for 2,048 tokens per request: 34.12x"], 69_888),
        (["GPU + host KV cache size: 5,120 tokens, Maximum concurrency for 2,048 tokens per request: 2.50x"], 5120),
        (["GPU KV cache size: 1,000 tokens"], 1000),
        # A hybrid model: the size is that of one kind of layer, the concurrency is right.
        (["GPU KV cache size: 40,000 tokens", "Maximum concurrency for 8,192 tokens per request: 54.53x"], 446_709),
        (["# GPU blocks: 7281, # CPU blocks: 2048", "Maximum concurrency for 8192 tokens per request: 3.55x"], 29_081),
        (["# cuda blocks: 7281, # CPU blocks: 2048", "Maximum concurrency for 8192 tokens per request: 3.55x"], 29_081),
        (["args: Namespace(block_size=16, max_num_seqs=256)", "# GPU blocks: 7281, # CPU blocks: 2048"], 116_496),
        (["non-default args: {'block_size': 32}", "# GPU blocks: 100"], 3200),
        (["non-default args: {'block_size': 16}",
          "Engine 000: vllm cache_config_info with initialization after num_gpu_blocks is: 546"], 8736),
        (["non-default args: {'block_size': 16}",
          "2 Engines: vllm cache_config_info with initialization after num_gpu_blocks is: 546"], 8736),
        (["# GPU blocks: 7281, # CPU blocks: 2048"], None),  # the size of a block was not said
        (["max_total_num_tokens=441962, chunked_prefill_size=8192, max_running_requests=4096"], 441_962),
    ],
)  # fmt: skip
def test_every_form_of_the_capacity_is_understood(lines: list[str], tokens: int | None) -> None:
    assert said(*(PREFIX + line for line in lines)).get("kv_cache_capacity_tokens") == tokens


@pytest.mark.parametrize(
    ("line", "size"),
    [
        ("Available KV cache memory: 46.12 GiB", 46.12 * 2**30),
        ("Available KV cache memory: 512.0 MiB", 512 * 2**20),
        ("Available KV cache memory: -84.97 GiB", None),
    ],
)
def test_the_memory_of_the_cache_is_in_bytes(line: str, size: float | None) -> None:
    assert said(PREFIX + line).get("kv_cache_memory_bytes") == size


def test_arguments_are_understood_in_every_form() -> None:
    told = {"max_num_seqs": 24, "tensor_parallel_size": 2, "max_model_len": 4096, "model": "chat"}
    assert said("non-default args: {'model': 'm', 'max_model_len': 4096, 'served_model_name': ['chat', 'b'], "
                "'tensor_parallel_size': 2, 'max_num_seqs': 24}") == told  # fmt: skip
    assert said("INFO 01-01 10:00:00 api_server.py:217] args: Namespace(host=None, served_model_name='chat', "
                "max_model_len=4096, tensor_parallel_size=2, max_num_seqs=24, quantization=None)") == told  # fmt: skip
    assert said("INFO 01-01 10:00:00 llm_engine.py:87] Initializing an LLM engine with config: model='m', "
                "tokenizer='m', max_seq_len=4096, tensor_parallel_size=2, quantization=None") == {
        "model": "m", "max_model_len": 4096, "tensor_parallel_size": 2,
    }  # fmt: skip
    assert said("[2026-11-30 10:00:00] server_args=ServerArgs(model_path='m', tp_size=2, max_running_requests=24, "
                "context_length=4096, mem_fraction_static=0.88, api_key='s3cret')") == {
        "model": "m", "tensor_parallel_size": 2, "max_num_seqs": 24, "max_model_len": 4096,
        "gpu_memory_utilization": 0.88,
    }  # fmt: skip


def test_secrets_in_a_log_are_not_kept() -> None:
    line = "non-default args: {'api_key': ['s3cret'], 'hf_token': 's3cret', 'max_num_seqs': 16}"
    assert "s3cret" not in repr(facts_in([line]))


def test_lines_of_every_ten_seconds_are_no_facts() -> None:
    assert said(
        "INFO metrics.py:335] Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 17.8 tokens/s, Running: "
        "1 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 0.4%, CPU KV cache usage: 0.0%.",
        "INFO metrics.py:351] Prefix cache hit rate: GPU: 4.50%, CPU: 0.00%",
        "Engine 000: Avg prompt throughput: 0.6 tokens/s, Avg generation throughput: 14.1 tokens/s, Running: 3 reqs, "
        "Waiting: 2 reqs, Deferred: 1 reqs, Preemptions: 4, GPU KV cache usage: 12.3%, Prefix cache hit rate: 4.5%",
        "2 Engines Aggregated: Avg prompt throughput: 0.6 tokens/s, Running: 3 reqs, Waiting: 2 reqs, KV fetch: 1 "
        "waiting to start, 0 in progress, 0 completed waiting, GPU KV cache usage: 12.3%",
        "max_num_seqs=99",
    ) == {}  # fmt: skip


def test_a_log_of_several_starts_tells_of_the_last() -> None:
    assert said(
        "non-default args: {'max_num_seqs': 8, 'tensor_parallel_size': 4}",
        "GPU KV cache size: 1,000 tokens",
        "non-default args: {'max_num_seqs': 16}",
    ) == {"max_num_seqs": 16}


def test_lines_that_another_process_has_stamped_are_left_out() -> None:
    lines = [
        "(APIServer pid=7) INFO non-default args: {'max_num_seqs': 16}",
        "(APIServer pid=8) INFO non-default args: {'max_num_seqs': 32}",
    ]
    assert said(*lines, pids=[7]) == {"max_num_seqs": 16}
    assert said("non-default args: {'max_num_seqs': 16}", pids=[7], certain=False) == {}


def test_docker_and_the_kubelet_wrap_lines() -> None:
    line = "non-default args: {'max_num_seqs': 16}"
    assert said(json.dumps({"log": line + "\n", "stream": "stderr"}, separators=(",", ":"))) == {"max_num_seqs": 16}
    assert said(f"2026-11-30T10:00:00.0Z stdout F {line}") == {"max_num_seqs": 16}
    assert said('{"log":"cut') == {}


def test_of_a_large_file_the_two_ends_are_read(tmp_path: Path) -> None:
    file = tmp_path / "engine.log"
    first = b"(APIServer pid=7) INFO non-default args: {'max_num_seqs': 16, 'tensor_parallel_size': 2}\n"
    noise = b"INFO: 127.0.0.1 - POST /v1/completions\n" * (MAX_WHOLE_BYTES // 38 + 1)
    file.write_bytes(first + noise)
    assert file.stat().st_size > MAX_WHOLE_BYTES > 2 * END_BYTES
    assert facts_of_file(str(file), [7]).known() == {"max_num_seqs": 16, "tensor_parallel_size": 2}
    assert facts_of_file(str(file)).known() == {}  # it could be an older run's
    file.write_bytes(first + noise + b"(APIServer pid=7) INFO Using max model len 2048\n" + first.replace(b"16", b"32"))
    assert facts_of_file(str(file), [7]).known() == {"max_num_seqs": 32, "tensor_parallel_size": 2}


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert facts_of_file(str(tmp_path / "pipe")).known() == {}
    os.close(reader)
    with pytest.raises(OSError, match="No such file"):
        facts_of_file(str(tmp_path / "nothing"))


@given(st.lists(st.text(max_size=200), max_size=5))
def test_whatever_a_log_holds_it_is_read_and_no_figure_is_absurd(lines: list[str]) -> None:
    for found in (facts_in(["non-default args: {" + line for line in lines]), facts_in(lines, [1])):
        numbers = [fact for fact in found.known().values() if isinstance(fact, int | float) and fact is not False]
        assert all(0 < number < float("inf") for number in numbers)
