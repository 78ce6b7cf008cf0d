"""Shapes against published parameter counts and known bytes per token."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.physics import CONFIGS, LLAMA_3_1_8B, LLAMA_3_3_70B, QWEN_2_5_7B, QWEN_2_5_14B, ModelShape


def shape(name: str) -> ModelShape:
    return ModelShape.from_config(CONFIGS[name])


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


@pytest.mark.parametrize(
    ("name", "billions", "active"),
    [
        ("Qwen/Qwen2.5-32B-Instruct", 32.8, 32.8),
        ("Qwen/Qwen3-8B", 8.2, 8.2),
        ("Qwen/Qwen3-32B", 32.8, 32.8),
        ("Qwen/Qwen3-30B-A3B", 30.5, 3.3),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", 46.7, 12.9),
        ("deepseek-ai/DeepSeek-V3", 671, 37),
        ("Qwen/Qwen3.5-35B-A3B", 35, 3.4),
        ("Qwen/Qwen3.5-27B", 27, 27),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31.6, 3.6),
    ],
)
def test_experts_latent_attention_and_hybrids_come_within_two_percent_of_the_published_totals(name, billions, active):
    assert shape(name).parameters / 1e9 == pytest.approx(billions, rel=0.02)
    assert shape(name).active_parameters / 1e9 == pytest.approx(active, rel=0.02)


def test_deepseeks_smaller_models_are_published_without_the_input_embedding():
    lite = shape("deepseek-ai/DeepSeek-V2-Lite-Chat")
    assert lite.parameters / 1e9 == pytest.approx(15.7, rel=0.02)
    assert lite.computed_parameters / 1e9 == pytest.approx(2.4, rel=0.025)


def test_kv_per_token_uses_kv_heads_not_attention_heads():
    assert ModelShape.from_config(QWEN_2_5_7B).kv_bytes_per_token() == 57_344
    assert ModelShape.from_config(LLAMA_3_1_8B).kv_bytes_per_token() == 131_072


def test_kv_per_rank_stops_falling_when_heads_are_replicated():
    qwen = ModelShape.from_config(QWEN_2_5_7B)  # 4 KV heads
    per_rank = [qwen.kv_bytes_per_token(tensor_parallel_size=tp) for tp in (1, 2, 4, 8)]
    assert per_rank == [57_344, 28_672, 14_336, 14_336]


def test_latent_attention_keeps_one_vector_a_layer_and_a_full_copy_on_each_rank():
    v3 = shape("deepseek-ai/DeepSeek-V3")
    assert v3.kv_bytes_per_token() == 61 * 1152
    assert v3.kv_bytes_per_token(tensor_parallel_size=8) == v3.kv_bytes_per_token()


def test_of_a_hybrid_only_the_attention_layers_cache_and_the_state_of_the_others_never_grows():
    hybrid = shape("Qwen/Qwen3.5-35B-A3B")
    assert hybrid.attention_layers == 10
    assert hybrid.kv_bytes_per_token() == 10 * 2 * 2 * 256 * 2
    conv, state = (2 * 16 * 128 + 32 * 128) * 3 * 2, 32 * 128 * 128 * 4
    assert hybrid.state_bytes_per_request() == 30 * (conv + state)
    assert hybrid.state_bytes_per_request(tensor_parallel_size=2) == 15 * (conv + state)
    assert shape("Qwen/Qwen3-8B").state_bytes_per_request() == 0


def test_an_8_bit_cache_weighs_half():
    llama = ModelShape.from_config(LLAMA_3_1_8B)
    assert llama.kv_bytes_per_token(dtype_bytes=1) * 2 == llama.kv_bytes_per_token()


def test_the_more_tokens_the_more_experts_are_read():
    moe = shape("Qwen/Qwen3-30B-A3B")
    read = [moe.weight_bytes_read(tokens) for tokens in (1, 8, 64, 4096)]
    assert read == sorted(read)
    assert read[0] == pytest.approx(2 * moe.computed_parameters)
    assert read[-1] == pytest.approx(2 * (moe.parameters - 151936 * 2048))


def test_a_dense_model_reads_all_but_the_embedding_it_looks_up():
    llama = ModelShape.from_config(LLAMA_3_1_8B)
    assert llama.weight_bytes_read(1) == llama.weight_bytes_read(512) == 2 * (8_030_261_248 - 128256 * 4096)
    tied = ModelShape.from_config({**LLAMA_3_1_8B, "tie_word_embeddings": True})
    assert tied.weight_bytes_read(1) == tied.weight_bytes()


def test_a_total_and_the_attention_are_enough():
    config = {
        "num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 8,
        "head_dim": 128, "num_parameters": 72_700_000_000, "torch_dtype": "bfloat16",
    }  # fmt: skip
    found = ModelShape.from_config(config)
    assert found.parameters == found.active_parameters == 72.7e9
    assert found.kv_bytes_per_token() == 80 * 2 * 8 * 128 * 2


def test_a_given_active_number_is_believed_and_bounds_what_a_token_reads():
    config = {
        "num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 4,
        "head_dim": 128, "num_parameters": 30.5e9, "num_active_parameters": 3.3e9,
    }  # fmt: skip
    found = ModelShape.from_config(config)
    assert found.active_parameters == 3.3e9
    assert found.weight_bytes_read(1) == pytest.approx(6.6e9)
    assert found.weight_bytes_read(4096) == pytest.approx(61e9)


def test_experts_of_unknown_size_share_what_is_given():
    config = {key: value for key, value in CONFIGS["Qwen/Qwen3-30B-A3B"].items() if "intermediate" not in key}
    found = ModelShape.from_config({**config, "num_parameters": 30.5e9})
    assert found.active_parameters / 1e9 == pytest.approx(3.3, rel=0.05)


def test_the_language_model_of_a_multimodal_one_is_read():
    nested = {"model_type": "qwen3_vl", "vision_config": {"hidden_size": 1152}, "text_config": dict(QWEN_2_5_7B)}
    assert ModelShape.from_config(nested) == ModelShape.from_config(QWEN_2_5_7B)


def test_a_config_without_kv_heads_is_multi_head_attention():
    config = {key: value for key, value in LLAMA_3_1_8B.items() if key not in ("num_key_value_heads", "head_dim")}
    attention = ModelShape.from_config(config).attention
    assert (attention.kv_heads, attention.head_dim) == (32, 128)


@pytest.mark.parametrize("key", ["vocab_size", "intermediate_size", "num_hidden_layers"])
def test_a_missing_key_is_named(key):
    with pytest.raises(ValueError, match=rf"config\.json lacks '{key}'"):
        ModelShape.from_config({name: value for name, value in LLAMA_3_1_8B.items() if name != key})


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("sliding_window", 4096, "sliding windows"),
        ("index_topk", 2048, "index_topk"),
        ("mamba_d_state", 16, "mamba_d_state"),
        ("mamba_num_heads", 64, "hybrid_override_pattern"),
        ("layer_types", ["sliding_attention", "full_attention"], "sliding_attention"),
        ("num_hidden_layers", "many", "many"),
        ("num_hidden_layers", True, "num_hidden_layers is True"),
        ("num_hidden_layers", 0, "lacks 'num_hidden_layers'"),
        ("hidden_size", -4096, "hidden_size is -4096"),
        ("hidden_size", 1e308, "hidden_size is 1e"),
        ("vocab_size", None, "lacks 'vocab_size'"),
        ("layer_types", {"counts": "all"}, "makes no sense"),
        ("layer_types", {"counts": {"full_attention": 10**12}}, "full_attention is 1000000000000"),
    ],
)
def test_other_architectures_are_refused_rather_than_miscounted(key, value, named):
    with pytest.raises(ValueError, match=named):
        ModelShape.from_config({**LLAMA_3_1_8B, key: value})


def test_a_window_that_is_switched_off_is_none():
    config = {**QWEN_2_5_7B, "sliding_window": 32768, "use_sliding_window": False, "max_position_embeddings": 131072}
    assert ModelShape.from_config(config).parameters == 7_615_616_512


_ANY_NUMBER = st.sampled_from([0, 1, -1, 0.5, 1e-300, 1e7, 1e9, 1e308, 10**30, True, None, math.nan, math.inf])
_ANYTHING = _ANY_NUMBER | st.integers() | st.sampled_from(["", "many", [], [1], [[1]], {}, {"counts": [1]}])
_KEYS = sorted({key for config in CONFIGS.values() for key in config} | {"num_parameters", "num_active_parameters"})


@given(st.sampled_from(sorted(CONFIGS)), st.dictionaries(st.sampled_from(_KEYS), _ANYTHING, max_size=3))
def test_whatever_a_config_says_it_has_sizes_that_can_be_or_is_refused(name, hostile):
    try:
        found = ModelShape.from_config({**CONFIGS[name], **hostile})
    except ValueError:
        return
    of_tokens = [found.weight_bytes_read(tokens) for tokens in (1.0, 64.0, 1e6)]
    sizes = [found.parameters, found.active_parameters, found.computed_parameters, *of_tokens]
    sizes += [found.kv_bytes_per_token(), found.state_bytes_per_request(), found.attention_flops_per_pair]
    assert all(math.isfinite(float(size)) and size >= 0 for size in sizes), sizes
    assert found.parameters > 0
    assert max(of_tokens) <= 2.0 * found.parameters * (1 + 1e-9)
