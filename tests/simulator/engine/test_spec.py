"""What an engine's flags and cards amount to."""

from dataclasses import replace

import pytest

from pinchpoint.physics import CONFIGS, GPUS, LLAMA_3_1_8B, slice_of
from tests.simulator.engine.small import small_spec

H100 = GPUS["NVIDIA H100 80GB HBM3"]


def pool(**changes):
    return small_spec(**{"num_gpu_blocks_override": None, **changes}).num_gpu_blocks


def test_what_weights_and_overhead_leave_is_the_pool():
    spec = small_spec(num_gpu_blocks_override=None)
    room = H100.memory_bytes * 0.92 - 3e9 - 8.03e9 * 2
    assert spec.num_gpu_blocks == pytest.approx(room / (16 * 131072), rel=0.001)


def test_a_smaller_type_leaves_more_blocks():
    assert pool(quantization="fp8") - pool() == pytest.approx(8.03e9 / (16 * 131072), rel=0.001)
    assert pool(kv_cache_dtype="fp8") == pytest.approx(2 * pool(), abs=2)
    assert pool(quantization="int4") > pool(quantization="fp8")


def test_latent_attention_is_not_split_over_ranks():
    latent = {"model_config": CONFIGS["deepseek-ai/DeepSeek-V2-Lite-Chat"]}
    one, two = (small_spec(**latent, gpus=gpus) for gpus in (("0",), ("0", "1")))
    assert one.block_bytes == two.block_bytes == 16 * 27 * 576 * 2


def test_a_hybrids_state_takes_blocks_of_each_request():
    spec = small_spec(model_config=CONFIGS["Qwen/Qwen3.5-35B-A3B"], num_gpu_blocks_override=500)
    assert 150 < spec.state_blocks_per_request < 300
    assert small_spec().state_blocks_per_request == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_gpu_blocks_override": 64}, "max_model_len 1024 does not fit 1008 KV tokens"),
        ({"max_num_batched_tokens": 128}, "max_num_batched_tokens is less than max_num_seqs"),
        ({"gpu": GPUS["NVIDIA L4"], "gpus": ("0", "1")}, "no link NV18 between two NVIDIA L4"),
    ],
)
def test_an_engine_that_could_not_start_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        small_spec(**changes)


def test_another_value_of_a_flag_is_another_pool():
    spec = small_spec()
    assert replace(spec, num_gpu_blocks_override=1600).num_gpu_blocks == 1600
    assert replace(spec, num_gpu_blocks_override=None).num_gpu_blocks > 10_000


def test_a_slice_of_a_card_is_an_engines_card_too():
    spec = small_spec(gpu=slice_of(H100, 3, 7, 0.5), mig=True, num_gpu_blocks_override=None)
    assert 0 < spec.num_gpu_blocks < pool() / 2


def test_an_operator_knows_the_flags():
    facts = small_spec(quantization="fp8", kv_cache_dtype="fp8", gpus=("0", "1"), enable_prefix_caching=False).facts()
    assert (facts.quantization, facts.kv_cache_dtype, facts.enable_prefix_caching) == ("fp8", "fp8", False)
    assert (facts.tensor_parallel_size, facts.pipeline_parallel_size) == (2, 1)
    assert facts.model_config == LLAMA_3_1_8B
