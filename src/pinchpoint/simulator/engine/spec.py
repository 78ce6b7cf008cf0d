"""How a simulated engine was started: model, card, flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pinchpoint.physics import (
    Gpu,
    Link,
    ModelShape,
    kv_budget_bytes,
    kv_dtype_bytes,
    link_peak,
    weight_dtype_bytes,
)
from pinchpoint.snapshot import EngineFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """One engine's command line, in vLLM's flag names and with its 0.33 defaults, and the cards it runs on.

    ``overhead_bytes`` is what a rank loses to activations, CUDA graphs and the CUDA context before KV blocks are cut.
    ``link`` is ``nvidia-smi topo -m``'s word for the slowest pair of its cards. ``quantization``: ``None``, ``fp8`` or
    ``int4`` (which is computed in 16 bits). ``mig``: ``gpu`` is a slice of a card, of which the driver tells less.
    """

    name: str
    model: str
    model_config: Mapping[str, object]
    gpu: Gpu
    gpus: tuple[str, ...]
    link: str = "NV18"
    mig: bool = False
    quantization: str | None = None
    kv_cache_dtype: str = "auto"
    enable_prefix_caching: bool = True
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    max_model_len: int = 8192
    gpu_memory_utilization: float = 0.92
    block_size: int = 16
    num_gpu_blocks_override: int | None = None
    overhead_bytes: float = 3e9
    version: str = "0.33.0"

    shape: ModelShape = field(init=False, repr=False, compare=False)
    num_gpu_blocks: int = field(init=False, repr=False, compare=False)  # in the pool, the null block included

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", ModelShape.from_config(self.model_config))
        object.__setattr__(self, "num_gpu_blocks", self._pool_size())
        room = self.kv_capacity_tokens - self.state_blocks_per_request * self.block_size
        if room < self.max_model_len:
            raise ValueError(f"{self.name}: max_model_len {self.max_model_len} does not fit {room} KV tokens: no start")
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ValueError(f"{self.name}: max_num_batched_tokens is less than max_num_seqs")
        if self.tensor_parallel_size > 1 and self.link_peak is None:
            raise ValueError(f"{self.name}: no link {self.link} between two {self.gpu.name}")

    @property
    def tensor_parallel_size(self) -> int:
        return len(self.gpus)

    @property
    def kv_capacity_tokens(self) -> int:
        """What its block pool holds: all but the null block."""
        return (self.num_gpu_blocks - 1) * self.block_size

    @property
    def weight_dtype_bytes(self) -> float:
        return weight_dtype_bytes(self.quantization, self.model_config)

    @property
    def link_peak(self) -> Link | None:
        """What its ranks talk over; ``None`` of a single one."""
        return link_peak(self.link, self.gpu) if self.tensor_parallel_size > 1 else None

    @property
    def block_bytes(self) -> float:
        """Of one KV block on one rank."""
        dtype = kv_dtype_bytes(self.kv_cache_dtype, self.model_config)
        return self.block_size * self.shape.kv_bytes_per_token(dtype, self.tensor_parallel_size)

    @property
    def state_blocks_per_request(self) -> int:
        """What a hybrid's recurrent layers hold for each request, however long it is, in KV blocks."""
        return int(-(-self.shape.state_bytes_per_request(self.tensor_parallel_size) // self.block_bytes))

    def facts(self) -> EngineFacts:
        """What an operator would write down about this engine."""
        return EngineFacts(
            kind="vllm",
            version=self.version,
            model=self.model,
            model_config=dict(self.model_config),
            quantization=self.quantization,
            kv_cache_dtype=self.kv_cache_dtype,
            max_num_seqs=self.max_num_seqs,
            max_num_batched_tokens=self.max_num_batched_tokens,
            max_model_len=self.max_model_len,
            tensor_parallel_size=self.tensor_parallel_size,
            pipeline_parallel_size=1,
            data_parallel_size=1,
            gpu_memory_utilization=self.gpu_memory_utilization,
            enable_prefix_caching=self.enable_prefix_caching,
            gpu_name=self.gpu.name,
        )

    def _pool_size(self) -> int:
        if self.num_gpu_blocks_override is not None:
            return self.num_gpu_blocks_override
        weights = self.shape.weight_bytes(self.weight_dtype_bytes, self.tensor_parallel_size)
        budget = kv_budget_bytes(self.gpu, self.gpu_memory_utilization, weights, self.overhead_bytes)
        return int(budget // self.block_bytes)
