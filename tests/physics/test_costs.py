"""Costs against figures worked out by hand."""

import pytest

from pinchpoint.physics import (
    GPUS,
    LLAMA_3_3_70B,
    ModelShape,
    gpu_by_name,
    kv_budget_bytes,
)

H100 = GPUS["NVIDIA H100 80GB HBM3"]


def test_every_card_has_plausible_peaks_and_a_source():
    for name, gpu in GPUS.items():
        assert gpu.name == name
        assert gpu.source
        assert 20e9 < gpu.memory_bytes < 200e9
        assert 100 < gpu.bf16_flops / gpu.bandwidth_bytes_per_second < 500, name


def test_an_unknown_card_has_no_peaks():
    assert gpu_by_name("NVIDIA GeForce 256") is None
    assert gpu_by_name("NVIDIA L4") is GPUS["NVIDIA L4"]


def test_a_70b_model_on_two_h100_leaves_little_for_the_cache():
    shape = ModelShape.from_config(LLAMA_3_3_70B)
    budget = kv_budget_bytes(H100, 0.92, shape.weight_bytes(tensor_parallel_size=2), 3e9)
    assert budget / shape.kv_bytes_per_token(tensor_parallel_size=2) == pytest.approx(31_280, rel=0.01)


def test_a_model_that_does_not_fit_leaves_nothing():
    shape = ModelShape.from_config(LLAMA_3_3_70B)
    assert kv_budget_bytes(H100, 0.92, shape.weight_bytes(), 3e9) == 0
