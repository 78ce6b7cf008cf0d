"""From a Hugging Face ``config.json`` to a shape, whatever its family calls things."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pinchpoint.physics.attention import Attention, GatedDeltaNet, GroupedQuery, Latent, Mamba2, Recurrent
from pinchpoint.physics.models import Experts, ModelShape

Config = Mapping[str, Any]

# Keys of architectures whose memory this arithmetic would get wrong: sparse attention, chunked attention, state-space
# layers of other kinds, a shape of its own for each layer, experts that work on fewer channels.
_FOREIGN = (
    "index_topk",
    "attention_chunk_size",
    "mamba_d_state",
    "block_configs",
    "compress_ratios",
    "moe_latent_size",
)
_TEXT = ("text_config", "llm_config", "language_config")
_MOST = 10**7  # of any width or count of a config: the largest vocabulary is a tenth of it
_MOST_PARAMETERS = 1e16


def shape_of(config: Config) -> ModelShape:
    """The shape of a config, of a multimodal one that of its language model.

    It needs layers, hidden size and heads. Without ``intermediate_size`` or ``vocab_size`` it needs the total
    (``num_parameters``); ``num_active_parameters``, when given, is believed. Raises ``ValueError`` otherwise, and on
    architectures that it doesn't know.
    """
    config = _text(config)
    if foreign := [key for key in _FOREIGN if config.get(key)]:
        raise ValueError(f"an architecture of another kind: config.json has {', '.join(foreign)}")
    try:
        shape = _shape(config)
    except KeyError as missing:
        raise ValueError(f"config.json lacks {missing}") from None
    except (TypeError, AttributeError, OverflowError, ZeroDivisionError) as error:
        raise ValueError(f"config.json makes no sense: {error}") from None
    if not 0 < shape.computed_parameters <= shape.active_parameters <= shape.parameters:
        raise ValueError(
            f"config.json makes no sense: {shape.active_parameters:g} of {shape.parameters:g} parameters active"
        )
    return shape


@dataclass(frozen=True, slots=True)
class _Stack:
    """How many layers are of which kind. ``blocks``: mixers and MLPs, two a layer where each layer has both."""

    attention: int
    recurrent: int
    mlps: int
    expert_layers: int
    blocks: int
    mlp_matrices: int = 3  # gate, up, down


def _text(config: Config) -> Config:
    for key in _TEXT:
        if isinstance(inner := config.get(key), Mapping):
            return {**config, **inner}
    return config


def _shape(config: Config) -> ModelShape:
    layers, hidden = _size(config, "num_hidden_layers"), _size(config, "hidden_size")
    stack, recurrent = _stack(config, layers), _recurrent(config, hidden)
    if stack.recurrent and recurrent is None:
        raise ValueError("linear attention of a kind that is not known")
    attention = _attention(config, hidden)
    given = _number(config, "num_parameters")
    if given is None:
        lacking = "intermediate_size" if stack.mlps else "hidden_size"
        _ = _size(config, "vocab_size"), _size(config, lacking)
    mlp = stack.mlp_matrices * hidden * _size(config, "intermediate_size", 0)
    of_recurrent = stack.recurrent * recurrent.parameters if recurrent else 0
    return ModelShape(
        layers=layers,
        hidden_size=hidden,
        attention=attention,
        attention_layers=stack.attention,
        dense_parameters=(
            stack.attention * attention.parameters + of_recurrent + stack.mlps * mlp + (stack.blocks + 1) * hidden
        ),
        blocks=stack.blocks,
        vocab_size=_size(config, "vocab_size", 0),
        tied_embeddings=bool(config.get("tie_word_embeddings", False)),
        recurrent=recurrent if stack.recurrent else None,
        recurrent_layers=stack.recurrent,
        experts=_experts(config, hidden, stack, known=given is not None) if stack.expert_layers else None,
        given_parameters=given,
        given_active_parameters=_number(config, "num_active_parameters"),
    )


def _number(config: Config, key: str) -> float | None:
    value = config.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= _MOST_PARAMETERS:
        return None
    return float(value)


def _size(config: Config, key: str, otherwise: int | None = None) -> int:
    """A width or a count, ``otherwise`` where there is none or it is 0. Raises on what can't be one."""
    value = config.get(key) or otherwise
    if value is None:
        raise KeyError(key)
    plausible = value == otherwise or (isinstance(value, int | float) and 1 <= value <= _MOST)
    if isinstance(value, bool) or not plausible:
        raise TypeError(f"{key} is {str(value)[:40]}")
    return int(value)


def _expert_count(config: Config) -> int:
    keys = ("num_experts", "num_local_experts", "n_routed_experts")
    return next((_size(config, key) for key in keys if config.get(key)), 0)


def _stack(config: Config, layers: int) -> _Stack:
    if pattern := config.get("hybrid_override_pattern"):  # Nemotron-H: M mamba, * attention, - MLP, E experts
        attention, mamba, mlps, experts = (str(pattern).count(kind) for kind in "*M-E")
        return _Stack(attention, mamba, mlps, experts, attention + mamba + mlps + experts, mlp_matrices=2)
    if config.get("mamba_num_heads"):
        raise ValueError("state-space layers, and config.json lacks 'hybrid_override_pattern'")
    attention = _full_attention_layers(config, layers)
    dense = _size(config, "first_k_dense_replace", 0) + len(config.get("mlp_only_layers") or ())
    experts = max(0, layers - dense) // _size(config, "decoder_sparse_step", 1) if _expert_count(config) else 0
    return _Stack(attention, layers - attention, layers - experts, experts, blocks=2 * layers)


def _full_attention_layers(config: Config, layers: int) -> int:
    """Raises where the others keep a window of tokens: their cache stops growing, which no number here says."""
    kinds = _layer_kinds(config)
    if unknown := set(kinds) - {"full_attention", "linear_attention"}:
        raise ValueError(f"layers of another kind: {', '.join(sorted(map(str, unknown)))}")
    window, longest = config.get("sliding_window"), config.get("max_position_embeddings")
    if window and config.get("use_sliding_window", True) and not (longest and window >= longest):
        raise ValueError(f"sliding windows of {window} tokens")
    if kinds:
        return min(layers, kinds.get("full_attention", 0))
    every = _size(config, "full_attention_interval", 1) if config.get("linear_num_value_heads") else 1
    return layers // every


def _layer_kinds(config: Config) -> Mapping[str, int]:
    """How many layers are of each kind, of a list of all or of a summary: ``{"counts": {"full_attention": 10, …}}``."""
    kinds = config.get("layer_types") or ()
    if not isinstance(kinds, Mapping):
        return Counter(kinds)
    counts = kinds.get("counts", {})
    return {kind: _size(counts, kind) for kind in counts if counts[kind]}


def _attention(config: Config, hidden: int) -> Attention:
    heads = _size(config, "num_attention_heads")
    if config.get("kv_lora_rank"):
        return Latent(
            hidden_size=hidden,
            heads=heads,
            kv_rank=_size(config, "kv_lora_rank"),
            rope_dim=_size(config, "qk_rope_head_dim"),
            nope_dim=_size(config, "qk_nope_head_dim", 128),
            value_dim=_size(config, "v_head_dim", 128),
            query_rank=_size(config, "q_lora_rank") if config.get("q_lora_rank") else None,
        )
    return GroupedQuery(
        hidden_size=hidden,
        heads=heads,
        kv_heads=_size(config, "num_key_value_heads", heads),
        head_dim=_size(config, "head_dim", hidden // heads or None),
        bias=bool(config.get("attention_bias", config.get("model_type") == "qwen2")),
        gated=bool(config.get("attn_output_gate", config.get("linear_num_value_heads"))),
    )


def _recurrent(config: Config, hidden: int) -> Recurrent | None:
    if config.get("linear_num_value_heads"):
        return GatedDeltaNet(
            hidden_size=hidden,
            key_heads=_size(config, "linear_num_key_heads"),
            value_heads=_size(config, "linear_num_value_heads"),
            key_dim=_size(config, "linear_key_head_dim"),
            value_dim=_size(config, "linear_value_head_dim"),
            kernel=_size(config, "linear_conv_kernel_dim", 4),
        )
    if config.get("mamba_num_heads"):
        return Mamba2(
            hidden_size=hidden,
            heads=_size(config, "mamba_num_heads"),
            head_dim=_size(config, "mamba_head_dim"),
            groups=_size(config, "n_groups"),
            state=_size(config, "ssm_state_size"),
            kernel=_size(config, "conv_kernel", 4),
            state_dtype_bytes=4.0 if config.get("mamba_ssm_cache_dtype") == "float32" else 2.0,
        )
    return None


def _experts(config: Config, hidden: int, stack: _Stack, *, known: bool) -> Experts:
    """Without the size of an expert the total says it, where it is ``known``."""
    count = _expert_count(config)
    if not count:
        raise KeyError("num_experts")
    width = _size(config, "moe_intermediate_size", 0) or _size(config, "intermediate_size", 0)
    if not width and not known:
        raise KeyError("moe_intermediate_size")
    of_shared = (
        _size(config, key, 0) for key in ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size")
    )
    shared_width = next(filter(None, of_shared), _size(config, "n_shared_experts", 0) * width)
    return Experts(
        layers=stack.expert_layers,
        count=count,
        per_token=min(count, _size(config, "num_experts_per_tok", 0) or _size(config, "num_experts_per_token")),
        parameters=stack.mlp_matrices * hidden * width,
        always_parameters=stack.mlp_matrices * hidden * shared_width + hidden * count,
    )
