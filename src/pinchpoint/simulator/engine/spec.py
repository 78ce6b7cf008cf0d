"""How a simulated engine was started: model, card, flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pinchpoint.physics import Gpu, ModelShape, kv_budget_bytes
from pinchpoint.snapshot import EngineFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """One engine's command line, in vLLM's flag names and with its 0.33 defaults, and the cards it runs on.

    ``overhead_bytes`` is what a rank loses to activations, CUDA graphs and the CUDA context before KV blocks are cut.
    """

    name: str
    model: str
    model_config: Mapping[str, object]
    gpu: Gpu
    gpus: tuple[str, ...]
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    max_model_len: int = 8192
    gpu_memory_utilization: float = 0.92
    block_size: int = 16
    num_gpu_blocks_override: int | None = None
    overhead_bytes: float = 3e9
    version: str = "0.33.0"

    def __post_init__(self) -> None:
        room = (self.num_gpu_blocks - 1) * self.block_size
        if room < self.max_model_len:
            raise ValueError(f"{self.name}: max_model_len {self.max_model_len} does not fit {room} KV tokens: no start")
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ValueError(f"{self.name}: max_num_batched_tokens is less than max_num_seqs")

    @property
    def tensor_parallel_size(self) -> int:
        return len(self.gpus)

    @property
    def shape(self) -> ModelShape:
        return ModelShape.from_config(self.model_config)

    @property
    def num_gpu_blocks(self) -> int:
        """KV blocks in the pool, the null block included."""
        if self.num_gpu_blocks_override is not None:
            return self.num_gpu_blocks_override
        tp, shape = self.tensor_parallel_size, self.shape
        weights = shape.weight_bytes(tensor_parallel_size=tp)
        budget = kv_budget_bytes(self.gpu, self.gpu_memory_utilization, weights, self.overhead_bytes)
        return int(budget // (self.block_size * shape.kv_bytes_per_token(tensor_parallel_size=tp)))

    def facts(self) -> EngineFacts:
        """What an operator would write down about this engine."""
        return EngineFacts(
            kind="vllm",
            version=self.version,
            model=self.model,
            model_config=dict(self.model_config),
            max_num_seqs=self.max_num_seqs,
            max_num_batched_tokens=self.max_num_batched_tokens,
            max_model_len=self.max_model_len,
            tensor_parallel_size=self.tensor_parallel_size,
            data_parallel_size=1,
            gpu_memory_utilization=self.gpu_memory_utilization,
            enable_prefix_caching=True,
            gpu_name=self.gpu.name,
        )
