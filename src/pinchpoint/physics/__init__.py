"""What a model and a card can do: published peaks, shapes of models, FLOPs and bytes. Pure, each with its source.

Is not: a model of any running engine. Nothing here knows an efficiency, a queue or a clock; what a real engine makes of
these limits is measured by the sources or played by the simulator.
"""

from pinchpoint.physics.costs import (
    attention_flops,
    dense_flops,
    kv_budget_bytes,
)
from pinchpoint.physics.gpus import GPUS, Gpu, gpu_by_name, pcie_bytes_per_second, slice_of
from pinchpoint.physics.links import Link, link_peak
from pinchpoint.physics.models import ModelShape
from pinchpoint.physics.precision import dtype_bytes, kv_dtype_bytes, tensor_peak_flops, weight_dtype_bytes
from pinchpoint.physics.published import CONFIGS, LLAMA_3_1_8B, LLAMA_3_3_70B, QWEN_2_5_7B, QWEN_2_5_14B
from pinchpoint.physics.roofline import StepTime, StepWork, communication_seconds, step_time

__all__ = [
    "CONFIGS",
    "GPUS",
    "LLAMA_3_1_8B",
    "LLAMA_3_3_70B",
    "QWEN_2_5_7B",
    "QWEN_2_5_14B",
    "Gpu",
    "Link",
    "ModelShape",
    "StepTime",
    "StepWork",
    "attention_flops",
    "communication_seconds",
    "dense_flops",
    "dtype_bytes",
    "gpu_by_name",
    "kv_budget_bytes",
    "kv_dtype_bytes",
    "link_peak",
    "pcie_bytes_per_second",
    "slice_of",
    "step_time",
    "tensor_peak_flops",
    "weight_dtype_bytes",
]
