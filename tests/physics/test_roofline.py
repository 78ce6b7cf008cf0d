"""The least time of a step, against figures worked out by hand."""

import pytest

from pinchpoint.physics import (
    GPUS,
    ModelShape,
    StepWork,
    kv_dtype_bytes,
    slice_of,
    step_time,
    tensor_peak_flops,
    weight_dtype_bytes,
)
from pinchpoint.physics.published import CONFIGS, LLAMA_3_1_8B

H100, A100 = GPUS["NVIDIA H100 80GB HBM3"], GPUS["NVIDIA A100-SXM4-80GB"]
LLAMA = ModelShape.from_config(LLAMA_3_1_8B)


def test_decode_of_one_request_takes_as_long_as_reading_the_weights():
    found = step_time(LLAMA, H100, StepWork(tokens=1, requests=1))
    assert found.seconds == found.memory_seconds == pytest.approx(15.0e9 / 3.35e12, rel=0.01)  # 4.5 ms
    assert found.compute_seconds < 0.01 * found.seconds


def test_a_long_prompt_takes_as_long_as_its_flops():
    pairs = 8192 * 8192 / 2
    found = step_time(LLAMA, H100, StepWork(tokens=8192, requests=1, attention_pairs=pairs))
    assert found.seconds == found.compute_seconds
    assert found.seconds == pytest.approx((2 * 7.505e9 * 8192 + 4 * 32 * 4096 * pairs) / 989.5e12, rel=0.01)


def test_long_contexts_cost_as_much_as_the_weights():
    few = step_time(LLAMA, H100, StepWork(tokens=64, requests=64, kv_tokens_read=64 * 1_790)).memory_seconds
    assert few == pytest.approx(2 * 15.0e9 / 3.35e12, rel=0.02)


def test_a_hybrids_state_is_read_and_written_for_each_request():
    hybrid = ModelShape.from_config(CONFIGS["Qwen/Qwen3.5-27B"])
    one, more = (step_time(hybrid, H100, StepWork(tokens=1, requests=n)).moved_bytes for n in (1, 11))
    assert more - one == pytest.approx(10 * 2 * hybrid.state_bytes_per_request())


@pytest.mark.parametrize(
    ("flag", "config", "expected"),
    [
        (None, {}, 2.0),
        (None, {"torch_dtype": "float32"}, 4.0),
        ("fp8", {}, 1.0),
        ("int4", {}, 0.515),
        ("awq_marlin", {}, 0.515),
        ("gptq", {"quantization_config": {"quant_method": "gptq", "bits": 8}}, 1.03),
        (None, {"quantization_config": {"quant_method": "fp8"}}, 1.0),
        (None, {"quantization_config": {"quant_method": "compressed-tensors", "bits": 4}}, 0.515),
        ("something-new", {"dtype": "bfloat16"}, 2.0),
    ],
)
def test_bytes_per_weight_follow_the_flag_and_else_the_config(flag, config, expected):
    assert weight_dtype_bytes(flag, config) == expected


def test_the_cache_has_its_own_type():
    assert kv_dtype_bytes("auto", {"torch_dtype": "bfloat16"}) == kv_dtype_bytes(None, {}) == 2.0
    assert kv_dtype_bytes("fp8_e4m3", {}) == 1.0


def test_fp8_computes_faster_only_where_the_tensor_cores_know_it():
    assert tensor_peak_flops(H100, "fp8", {}) == 2 * H100.bf16_flops
    assert tensor_peak_flops(A100, "fp8", {}) == A100.bf16_flops
    assert tensor_peak_flops(H100, "awq", {}) == H100.bf16_flops


def test_a_mig_slice_has_its_share_and_no_nvlink():
    part = slice_of(H100, 3, 7, 0.5)
    assert part.bf16_flops == pytest.approx(H100.bf16_flops * 3 / 7)
    assert part.memory_bytes == H100.memory_bytes / 2
    assert part.bandwidth_bytes_per_second == H100.bandwidth_bytes_per_second / 2
    assert part.nvlink_bytes_per_second is None
