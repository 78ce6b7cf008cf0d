"""The engine that a lever looks at: its signals, and the arithmetic of its model and cards where they are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pinchpoint.diagnosis.roofline import shape_of
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.strain import Strain, strain_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck
from pinchpoint.physics import Gpu, ModelShape, gpu_by_name, kv_dtype_bytes, weight_dtype_bytes


@dataclass(frozen=True)
class Situation:
    """Everything is ``None`` where nothing tells it. Bytes and tokens are of one replica unless named otherwise."""

    bottleneck: Bottleneck
    signals: Signals
    thresholds: Thresholds
    missing: Sequence[str] = ()

    @property
    def kind(self) -> str:
        return self.signals.facts.kind

    @cached_property
    def strain(self) -> Strain:
        return strain_of(self.signals, self.thresholds)

    @property
    def ranks(self) -> int:
        return max(1, self.signals.facts.tensor_parallel_size or 1)

    @property
    def replicas(self) -> int:
        return max(1, int(self.signals.spread.replicas or self.signals.facts.data_parallel_size or 1))

    @cached_property
    def gpu(self) -> Gpu | None:
        name = self.signals.facts.gpu_name
        return gpu_by_name(name) if name else None

    @cached_property
    def shape(self) -> ModelShape | None:
        return shape_of(self.signals.facts.model_config)

    @cached_property
    def weight_bytes(self) -> float | None:
        """On all ranks together."""
        return self.shape.weight_bytes(self.bytes_per_weight or 2.0) if self.shape else None

    @cached_property
    def bytes_per_weight(self) -> float | None:
        """``None`` without a config: then nobody knows whether the checkpoint is quantised."""
        facts = self.signals.facts
        known = facts.quantization or facts.model_config
        return weight_dtype_bytes(facts.quantization, facts.model_config) if known else None

    def kv_bytes_per_token(self, ranks: int) -> float | None:
        """On one rank, were there so many."""
        facts = self.signals.facts
        per_element = kv_dtype_bytes(facts.kv_cache_dtype, facts.model_config)
        return self.shape.kv_bytes_per_token(per_element, ranks) if self.shape else None

    @property
    def kv_is_small(self) -> bool:
        """Whether the KV cache is stored in 8 bits or fewer already."""
        said = (self.signals.facts.kv_cache_dtype or "").lower()
        return said.startswith(("fp8", "int8", "nvfp4", "fp4", "turboquant"))

    @cached_property
    def kv_tokens(self) -> float | None:
        return self.signals.facts.kv_cache_capacity_tokens or self.signals.load.kv_cache_capacity_tokens

    @cached_property
    def tokens_per_request(self) -> float | None:
        """What a running request holds of the KV cache now, on average; less than one token is a miscount."""
        load, tokens = self.signals.load, self.kv_tokens
        running = (load.requests_running or 0.0) / self.replicas
        if tokens is None or load.kv_cache_usage_ratio is None or running < 1:
            return None
        size = load.kv_cache_usage_ratio * tokens / running
        return size if size >= 1 else None

    def tokens_after(self, freed_bytes_per_rank: float, ranks: int) -> float | None:
        """KV tokens with so many more bytes for them on each of ``ranks`` ranks, the rest as it is."""
        now, then = self.kv_bytes_per_token(self.ranks), self.kv_bytes_per_token(ranks)
        if self.kv_tokens is None or not now or not then:
            return None
        return (self.kv_tokens * now + freed_bytes_per_rank) / then

    @property
    def links_allow_tensor_parallelism(self) -> bool | None:
        """Over NVLink, or something as fast; ``None`` where the way between cards is not known."""
        links, gpu = self.signals.links, self.gpu
        if links.link_without_p2p or (gpu is not None and gpu.nvlink_bytes_per_second is None):
            return False
        if links.link_worst_bytes_per_second is not None:
            return links.link_worst_bytes_per_second >= 1e11  # PCIe 5.0 x16 is 63 GB/s, NVLink 3 of two links 100
        return None


def tokens_in_words(tokens: float) -> str:
    """Rounded to what matters: 31,000 tokens."""
    digits = max(0, len(f"{tokens:.0f}") - 2)
    return f"{round(tokens, -digits):,.0f} tokens"
