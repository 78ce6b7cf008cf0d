"""The shape of a transformer: what its weights, its KV cache and its state weigh, and what a token costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pinchpoint.physics.attention import Attention, Recurrent


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """A mixture of experts, the same in each of ``layers`` layers: ``per_token`` of ``count`` see a token.

    ``always_parameters`` a layer see every token: shared experts and the router.
    """

    layers: int
    count: int
    per_token: int
    parameters: int  # of one expert; 0 is not known
    always_parameters: int = 0


@dataclass(frozen=True, kw_only=True)  # without slots: what follows from a shape is found once
class ModelShape:
    """A decoder: dense or a mixture of experts, with full attention in all of its layers or in some of them.

    ``dense_parameters`` are those that every token passes, embeddings and experts apart: attention and recurrent
    layers, dense MLPs, norms. Where ``given_parameters`` is set it is believed, as the shape may be told in part.
    ``blocks`` add their result to the residual stream, each after an all-reduce when tensors are split over ranks.
    """

    layers: int
    hidden_size: int
    attention: Attention
    attention_layers: int
    dense_parameters: int
    blocks: int
    vocab_size: int = 0  # 0 is not known
    tied_embeddings: bool = False
    recurrent: Recurrent | None = None
    recurrent_layers: int = 0
    experts: Experts | None = None
    given_parameters: float | None = None
    given_active_parameters: float | None = None

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> ModelShape:
        """Read the shape from a Hugging Face ``config.json``; see ``model_config.shape_of`` for what it must hold.

        Raises ``ValueError`` on a missing key, and on architectures whose memory this arithmetic would get wrong.
        """
        from pinchpoint.physics.model_config import shape_of

        return shape_of(config)

    @cached_property
    def parameters(self) -> float:
        """Every weight: embeddings (twice when untied), attention, MLPs, all experts, norms."""
        if self.given_parameters is not None:
            return self.given_parameters
        experts = self.experts
        of_experts = experts.layers * (experts.count * experts.parameters + experts.always_parameters) if experts else 0
        embeddings = self.vocab_size * self.hidden_size * (1 if self.tied_embeddings else 2)
        return self.dense_parameters + of_experts + embeddings

    @cached_property
    def active_parameters(self) -> float:
        """Weights that one token passes, embeddings included: all of a dense model, chosen experts of others."""
        if self.given_active_parameters is not None:
            return self.given_active_parameters
        return self._with_share(self._chosen)

    @cached_property
    def computed_parameters(self) -> float:
        """Active ones that are multiplied with: an input embedding of its own is looked up."""
        return self.active_parameters - self._looked_up

    @cached_property
    def attention_flops_per_pair(self) -> float:
        """FLOPs of one (query, key) pair in all attention layers, over all ranks."""
        return self.attention_layers * self.attention.flops_per_pair

    def weight_bytes(self, dtype_bytes: float = 2.0, tensor_parallel_size: int = 1) -> float:
        """Weights that one rank holds (norms, which every rank keeps, are too small to matter)."""
        return self.parameters * dtype_bytes / tensor_parallel_size

    def weight_bytes_read(self, tokens: float, dtype_bytes: float = 2.0, tensor_parallel_size: int = 1) -> float:
        """Weights that one rank reads in a step of ``tokens`` tokens: all that is multiplied with, of the experts those
        that are expected to be chosen (1 - (1 - k/E)^tokens of them), of an untied input embedding next to nothing."""
        share = 1.0 - (1.0 - self._chosen) ** max(0.0, tokens)
        return (self._with_share(share) - self._looked_up) * dtype_bytes / tensor_parallel_size

    def kv_bytes_per_token(self, dtype_bytes: float = 2.0, tensor_parallel_size: int = 1) -> float:
        """KV cache per token on one rank, in all attention layers."""
        return self.attention_layers * self.attention.kv_elements(tensor_parallel_size) * dtype_bytes

    def state_bytes_per_request(self, tensor_parallel_size: int = 1) -> float:
        """What a request holds on one rank besides, however long it is: read and written in each of its steps."""
        if self.recurrent is None:
            return 0.0
        return self.recurrent_layers * self.recurrent.state_bytes(tensor_parallel_size)

    @cached_property
    def _looked_up(self) -> float:
        return 0.0 if self.tied_embeddings else float(self.vocab_size * self.hidden_size)

    @cached_property
    def _chosen(self) -> float:
        """Share of the experts that one token passes; of totals alone, all weights are experts."""
        if self.experts is not None:
            return self.experts.per_token / self.experts.count
        return min(1.0, (self.given_active_parameters or self.parameters) / self.parameters)

    @cached_property
    def _of_experts(self) -> float:
        """As many parameters as the active number leaves. Without one and without their size, all is an expert of what
        is given and is neither attention nor embedding."""
        experts, total, chosen = self.experts, self.parameters, self._chosen
        if self.given_active_parameters is not None and chosen < 1.0:
            return (total - self.given_active_parameters) / (1.0 - chosen)
        if experts is None:
            return 0.0
        if experts.parameters:
            return float(experts.layers * experts.count * experts.parameters)
        return max(0.0, total - self.dense_parameters - 2 * self._looked_up)

    def _with_share(self, share: float) -> float:
        """Parameters with this share of the experts."""
        return self.parameters - self._of_experts * (1.0 - share)
