"""How the cards of a tensor-parallel engine reach each other, and what that costs a step."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Of the engine's own pairs of GPUs; ``None`` is unknown, or the engine has one GPU a replica."""

    tensor_parallel_size: float | None = None
    link_worst_bytes_per_second: float | None = None  # the slowest pair, published
    link_without_p2p: float | None = None  # pairs that go through the host
    communication_step_seconds: float | None = None  # what the all-reduces of a mean step take over that link at peak
    communication_share: float | None = None  # of an observed step
    pcie_bytes_per_second: float | None = None  # the busiest GPU, both directions
