"""The shape of a dense transformer: what its weights and its KV cache weigh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Keys of architectures whose memory this arithmetic would get wrong (experts, latent attention, state-space layers).
_FOREIGN = (
    "num_experts",
    "num_local_experts",
    "n_routed_experts",
    "kv_lora_rank",
    "linear_num_value_heads",
    "mamba_d_state",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """A dense decoder with multi-head or grouped-query attention and a gated MLP (Llama, Qwen2, Mistral families)."""

    layers: int
    hidden_size: int
    intermediate_size: int
    attention_heads: int
    kv_heads: int
    head_dim: int
    vocab_size: int
    tied_embeddings: bool = False
    attention_bias: bool = False

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> ModelShape:
        """Read the shape from a Hugging Face ``config.json``.

        Raises ``ValueError`` on a missing key, and on mixture-of-experts, latent-attention and hybrid models.
        """
        if foreign := [key for key in _FOREIGN if config.get(key)]:
            raise ValueError(f"not a dense attention model: config.json has {', '.join(foreign)}")
        try:
            heads, hidden = int(config["num_attention_heads"]), int(config["hidden_size"])
            return cls(
                layers=int(config["num_hidden_layers"]),
                hidden_size=hidden,
                intermediate_size=int(config["intermediate_size"]),
                attention_heads=heads,
                kv_heads=int(config.get("num_key_value_heads") or heads),
                head_dim=int(config.get("head_dim") or hidden // heads),
                vocab_size=int(config["vocab_size"]),
                tied_embeddings=bool(config.get("tie_word_embeddings", False)),
                attention_bias=bool(config.get("attention_bias", config.get("model_type") == "qwen2")),
            )
        except KeyError as missing:
            raise ValueError(f"config.json lacks {missing}") from None

    @property
    def parameters(self) -> int:
        """Every weight: embeddings (twice when untied), attention with its biases, gated MLP, norms."""
        heads, kv = self.attention_heads * self.head_dim, self.kv_heads * self.head_dim
        attention = self.hidden_size * (2 * heads + 2 * kv) + self.attention_bias * (heads + 2 * kv)
        mlp = 3 * self.hidden_size * self.intermediate_size
        embeddings = self.vocab_size * self.hidden_size * (1 if self.tied_embeddings else 2)
        return self.layers * (attention + mlp + 2 * self.hidden_size) + embeddings + self.hidden_size

    def weight_bytes(self, dtype_bytes: float = 2.0, tensor_parallel_size: int = 1) -> float:
        """Weights that one rank holds and reads each step (norms, which every rank keeps, are too small to matter)."""
        return self.parameters * dtype_bytes / tensor_parallel_size

    def kv_bytes_per_token(self, dtype_bytes: float = 2.0, tensor_parallel_size: int = 1) -> float:
        """KV cache per token on one rank: layers × 2 (K and V) × KV heads × head_dim × dtype.

        Fewer KV heads than ranks are replicated, so KV per rank stops falling there, as in vLLM's attention layers.
        """
        return self.layers * 2 * max(1, self.kv_heads // tensor_parallel_size) * self.head_dim * dtype_bytes


# Published config.json files, the keys that matter.
LLAMA_3_1_8B: Mapping[str, object] = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip
LLAMA_3_3_70B: Mapping[str, object] = {
    "model_type": "llama", "num_hidden_layers": 80, "hidden_size": 8192, "intermediate_size": 28672,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip
QWEN_2_5_7B: Mapping[str, object] = {
    "model_type": "qwen2", "num_hidden_layers": 28, "hidden_size": 3584, "intermediate_size": 18944,
    "num_attention_heads": 28, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 152064,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip
QWEN_2_5_14B: Mapping[str, object] = {
    "model_type": "qwen2", "num_hidden_layers": 48, "hidden_size": 5120, "intermediate_size": 13824,
    "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 152064,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip
