"""Device memory that climbs without KV demand: vLLM reserves its pool at start, so what grows is something else."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Of the card that will be full first; ``None`` is unknown, or nothing grows."""

    memory_growth_bytes_per_second: float | None = None
    memory_growth_gpu: str = ""
    memory_free_bytes: float | None = None
    memory_full_in_seconds: float | None = None  # at this pace
