"""The GPUs of this node, through NVML.

Is: the one door to NVML (``nvml``), one GPU's cycle (``device``) in a thread of its own (``worker``), and the source
that supervises them. Every NVML call runs in a daemon thread: one that hangs delays no other GPU, scrape or exit.

Is not: a judge. It doesn't say whether a reading is good or bad, and it never changes anything on a card.
"""

from pinchpoint.sources.gpu.settings import GpuSettings
from pinchpoint.sources.gpu.source import GpuSource

__all__ = ["GpuSettings", "GpuSource"]
