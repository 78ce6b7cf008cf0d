"""Shapes against published parameter counts and known bytes per token."""

import pytest

from pinchpoint.physics import LLAMA_3_1_8B, LLAMA_3_3_70B, QWEN_2_5_7B, QWEN_2_5_14B, ModelShape


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        (LLAMA_3_1_8B, 8_030_261_248),
        (LLAMA_3_3_70B, 70_553_706_496),
        (QWEN_2_5_7B, 7_615_616_512),
        (QWEN_2_5_14B, 14_770_033_664),
    ],
)
def test_parameters_equal_the_published_count_to_the_last_weight(config, parameters):
    assert ModelShape.from_config(config).parameters == parameters


def test_kv_per_token_uses_kv_heads_not_attention_heads():
    assert ModelShape.from_config(QWEN_2_5_7B).kv_bytes_per_token() == 57_344
    assert ModelShape.from_config(LLAMA_3_1_8B).kv_bytes_per_token() == 131_072


def test_kv_per_rank_stops_falling_when_heads_are_replicated():
    shape = ModelShape.from_config(QWEN_2_5_7B)  # 4 KV heads
    per_rank = [shape.kv_bytes_per_token(tensor_parallel_size=tp) for tp in (1, 2, 4, 8)]
    assert per_rank == [57_344, 28_672, 14_336, 14_336]


def test_an_8_bit_cache_weighs_half():
    shape = ModelShape.from_config(LLAMA_3_1_8B)
    assert shape.kv_bytes_per_token(dtype_bytes=1) * 2 == shape.kv_bytes_per_token()


def test_a_config_without_kv_heads_is_multi_head_attention():
    config = {key: value for key, value in LLAMA_3_1_8B.items() if key not in ("num_key_value_heads", "head_dim")}
    shape = ModelShape.from_config(config)
    assert (shape.kv_heads, shape.head_dim) == (32, 128)


def test_a_missing_key_is_named():
    with pytest.raises(ValueError, match=r"config\.json lacks 'vocab_size'"):
        ModelShape.from_config({key: value for key, value in LLAMA_3_1_8B.items() if key != "vocab_size"})


@pytest.mark.parametrize("key", ["num_experts", "kv_lora_rank", "linear_num_value_heads"])
def test_other_architectures_are_refused_rather_than_miscounted(key):
    with pytest.raises(ValueError, match=key):
        ModelShape.from_config({**LLAMA_3_1_8B, key: 8})
