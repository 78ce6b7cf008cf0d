"""What a model and a card can do: published peaks, shapes of models, FLOPs and bytes. Pure, each with its source.

Is not: a model of any running engine. Nothing here knows an efficiency, a queue or a clock; what a real engine makes of
these limits is measured by the sources or played by the simulator.
"""

from pinchpoint.physics.costs import (
    attention_flops,
    dense_flops,
    kv_budget_bytes,
)
from pinchpoint.physics.gpus import GPUS, Gpu, gpu_by_name
from pinchpoint.physics.models import LLAMA_3_1_8B, LLAMA_3_3_70B, QWEN_2_5_7B, QWEN_2_5_14B, ModelShape

__all__ = [
    "GPUS",
    "LLAMA_3_1_8B",
    "LLAMA_3_3_70B",
    "QWEN_2_5_7B",
    "QWEN_2_5_14B",
    "Gpu",
    "ModelShape",
    "attention_flops",
    "dense_flops",
    "gpu_by_name",
    "kv_budget_bytes",
]
