"""Layers that mix tokens: attention with a growing KV cache, and recurrent ones whose state never grows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedQuery:
    """Multi-head, grouped-query (Ainslie et al. 2023) or multi-query attention, by its number of KV heads.

    ``gated``: the query projection makes an output gate too (Qwen3-Next and later).
    """

    hidden_size: int
    heads: int
    kv_heads: int
    head_dim: int
    bias: bool = False
    gated: bool = False

    @property
    def parameters(self) -> int:
        query, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return self.hidden_size * ((3 if self.gated else 2) * query + 2 * kv) + self.bias * (query + 2 * kv)

    @property
    def flops_per_pair(self) -> float:
        """QKᵀ and PV, 2 FLOPs each per element."""
        return 4.0 * self.heads * self.head_dim

    def kv_elements(self, tensor_parallel_size: int) -> int:
        """Of one token on one rank: K and V. Fewer KV heads than ranks are replicated, as in vLLM."""
        return 2 * max(1, self.kv_heads // tensor_parallel_size) * self.head_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): one compressed vector a token for all heads."""

    hidden_size: int
    heads: int
    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int
    query_rank: int | None = None

    @property
    def parameters(self) -> int:
        query_dim = self.heads * (self.nope_dim + self.rope_dim)
        query = self.query_rank * (self.hidden_size + query_dim) if self.query_rank else self.hidden_size * query_dim
        kv = self.hidden_size * (self.kv_rank + self.rope_dim) + self.kv_rank * self.heads * (
            self.nope_dim + self.value_dim
        )
        return query + kv + self.heads * self.value_dim * self.hidden_size

    @property
    def flops_per_pair(self) -> float:
        """As computed in prefill; decode trades more FLOPs for the smaller cache."""
        return 2.0 * self.heads * (self.nope_dim + self.rope_dim + self.value_dim)

    def kv_elements(self, tensor_parallel_size: int) -> int:  # noqa: ARG002
        """Of one token on each rank: the latent and the rotary key, no V, however many ranks there are."""
        return self.kv_rank + self.rope_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedDeltaNet:
    """Linear attention of Qwen3-Next and Qwen3.5 (arXiv 2412.06464)."""

    hidden_size: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int
    state_dtype_bytes: float = 4.0

    @property
    def _conv(self) -> int:
        return 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim

    @property
    def parameters(self) -> int:
        value = self.value_heads * self.value_dim
        projections = self.hidden_size * (self._conv + value + 2 * self.value_heads)
        return projections + value * self.hidden_size + self._conv * self.kernel + 2 * self.value_heads

    def state_bytes(self, tensor_parallel_size: int) -> float:
        """Of one request on one rank: the convolution's last inputs (16 bit) and the state matrix of each head."""
        state = self.value_heads * self.key_dim * self.value_dim * self.state_dtype_bytes
        return (self._conv * (self.kernel - 1) * 2.0 + state) / tensor_parallel_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2:
    """State-space layer of Nemotron-H (Dao and Gu, arXiv 2405.21060)."""

    hidden_size: int
    heads: int
    head_dim: int
    groups: int
    state: int
    kernel: int
    state_dtype_bytes: float = 2.0

    @property
    def _conv(self) -> int:
        return self.heads * self.head_dim + 2 * self.groups * self.state

    @property
    def parameters(self) -> int:
        inner = self.heads * self.head_dim
        projections = self.hidden_size * (self._conv + inner + self.heads)
        return projections + inner * self.hidden_size + self._conv * (self.kernel + 1) + 3 * self.heads + inner

    def state_bytes(self, tensor_parallel_size: int) -> float:
        """Of one request on one rank: the convolution's last inputs (16 bit) and the state of each head."""
        state = self.heads * self.head_dim * self.state * self.state_dtype_bytes
        return (self._conv * (self.kernel - 1) * 2.0 + state) / tensor_parallel_size


Attention = GroupedQuery | Latent
Recurrent = GatedDeltaNet | Mamba2
