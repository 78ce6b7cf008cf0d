"""The roofline against figures worked out by hand."""

import pytest

from pinchpoint.physics import (
    GPUS,
    LLAMA_3_1_8B,
    LLAMA_3_3_70B,
    ModelShape,
    decode_step_seconds,
    gpu_by_name,
    kv_budget_bytes,
    prefill_seconds,
    roofline_seconds,
)

H100 = GPUS["NVIDIA H100 80GB HBM3"]
LLAMA_8B = ModelShape.from_config(LLAMA_3_1_8B)


def test_every_card_has_plausible_peaks_and_a_source():
    for name, gpu in GPUS.items():
        assert gpu.name == name
        assert gpu.source
        assert 20e9 < gpu.memory_bytes < 200e9
        assert 100 < gpu.ridge_flops_per_byte < 500, name


def test_an_unknown_card_has_no_peaks():
    assert gpu_by_name("NVIDIA GeForce 256") is None
    assert gpu_by_name("NVIDIA L4") is GPUS["NVIDIA L4"]


def test_the_ridge_of_an_h100_is_at_295_flops_per_byte():
    assert H100.ridge_flops_per_byte == pytest.approx(295, abs=1)


def test_the_roof_is_memory_left_of_the_ridge_and_compute_right_of_it():
    assert roofline_seconds(1e9, 3.35e9, H100) == pytest.approx(1e-3)
    assert roofline_seconds(989.5e9, 1e6, H100) == pytest.approx(1e-3)


def test_decoding_one_sequence_takes_the_time_to_read_the_weights():
    assert decode_step_seconds(LLAMA_8B, H100, 0) == pytest.approx(16.06e9 / 3350e9, rel=1e-3)


def test_decoding_gets_slower_by_the_kv_that_is_read():
    empty, full = (decode_step_seconds(LLAMA_8B, H100, tokens) for tokens in (0, 100_000))
    assert full - empty == pytest.approx(100_000 * 131_072 / 3350e9)


def test_prefill_grows_faster_than_the_prompt_because_of_attention():
    short, long = prefill_seconds(LLAMA_8B, H100, 1_000), prefill_seconds(LLAMA_8B, H100, 100_000)
    assert short == pytest.approx(2 * 8.03e9 * 1_000 / 989.5e12, rel=0.03)
    assert long > 140 * short


def test_two_ranks_halve_prefill():
    one, two = (prefill_seconds(LLAMA_8B, H100, 2_000, tensor_parallel_size=tp) for tp in (1, 2))
    assert one == pytest.approx(2 * two)


def test_a_70b_model_on_two_h100_leaves_little_for_the_cache():
    shape = ModelShape.from_config(LLAMA_3_3_70B)
    budget = kv_budget_bytes(H100, 0.92, shape.weight_bytes(tensor_parallel_size=2), 3e9)
    assert budget / shape.kv_bytes_per_token(tensor_parallel_size=2) == pytest.approx(31_280, rel=0.01)


def test_a_model_that_does_not_fit_leaves_nothing():
    shape = ModelShape.from_config(LLAMA_3_3_70B)
    assert kv_budget_bytes(H100, 0.92, shape.weight_bytes(), 3e9) == 0
