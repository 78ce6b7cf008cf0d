"""What an engine runs on: host, links, device memory, cards."""

from pydantic import BaseModel, Field


class NodeThresholds(BaseModel):
    # Host and links
    cpu_throttled_begins: float = Field(
        default=0.05, ge=0, le=1, description="Share of cgroup CPU periods in which the quota was used up."
    )
    cpu_throttled_certain: float = Field(default=0.25, gt=0, le=1, description="Same; engineering choice.")
    cpu_pressure_begins: float = Field(
        default=0.1, ge=0, le=1, description="PSI some: share of time in which a task waited for a CPU."
    )
    cpu_pressure_certain: float = Field(default=0.3, gt=0, le=1, description="Same; engineering choice.")
    host_gap_begins: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="Part of a step in which no kernel runs; a millisecond or two of a short step is everyday.",
    )
    host_gap_certain: float = Field(default=0.4, gt=0, le=1, description="Same; two fifths of the GPU are lost.")
    admission_share_begins: float = Field(
        default=0.4, ge=0, le=1, description="Part of the mean TTFT that passes before a request is queued."
    )
    admission_share_certain: float = Field(default=0.7, gt=0, le=1, description="Same; engineering choice.")
    communication_share_begins: float = Field(
        default=0.15, ge=0, le=1, description="Part of a step that all-reduces take; over NVLink 5 to 15 % is common."
    )
    communication_share_certain: float = Field(default=0.4, gt=0, le=1, description="Same; engineering choice.")
    link_reached_ratio: float = Field(
        default=0.65, gt=0, le=1, description="Share of a link's published peak that all-reduces of a step reach."
    )
    pcie_traffic_bytes: float = Field(
        default=4e9,
        gt=0,
        description="PCIe bytes per second, both directions, that ranks cause and prompts never do.",
    )

    # Device memory
    memory_full_minutes: float = Field(
        default=30.0, gt=0, description="Minutes until a card's memory is full that are soon: time to act on a page."
    )
    memory_growth_seconds: float = Field(
        default=30.0, gt=0, description="Seconds of readings that show a slope; an allocator grows in steps."
    )
    memory_growth_bytes: float = Field(
        default=64 * 2.0**20, gt=0, description="Bytes gained meanwhile; a CUDA library's workspaces take 8 to 32 MiB."
    )
    memory_growth_noise_times: float = Field(
        default=6.0,
        gt=0,
        description="What the newer half gains, in standard deviations about its slope; a step has 4.",
    )

    # Hardware
    throttle_share_begins: float = Field(
        default=0.05, ge=0, le=1, description="Share of readings with a fault throttle; one reading may be a glitch."
    )
    throttle_share_certain: float = Field(default=0.2, gt=0, le=1, description="Same; engineering choice.")
    clock_slow_ratio: float = Field(
        default=0.9, gt=0, le=1, description="SM clock over its maximum below which a fault throttle takes effect."
    )
    clock_crawl_ratio: float = Field(
        default=0.6, gt=0, le=1, description="Same, below which even a power cap is no longer normal operation."
    )
    clock_fills_memory_ratio: float = Field(
        default=0.75,
        gt=0,
        le=1,
        description="SM clock over its maximum that still keeps memory busy; below, reading takes longer too.",
    )
    throttle_settles_score: float = Field(
        default=0.75,
        gt=0,
        le=1,
        description="Score from which a throttle settles it; below, rivals count.",
    )
    clock_costs_begins: float = Field(
        default=1.05, ge=1, description="Times as fast as steps would be at full clock; less is noise."
    )
    clock_costs_certain: float = Field(default=1.5, gt=1, description="Same: a third of each step is the slow clock's.")
    power_limit_lowered_ratio: float = Field(
        default=0.7, gt=0, description="Power limit over the card's published power: below, somebody lowered it far."
    )
    link_busy_begins: float = Field(
        default=0.05, ge=0, description="PCIe traffic over what the link can do; prompts and tokens take next to none."
    )
    link_busy_certain: float = Field(
        default=0.25, gt=0, description="Same; all-reduces take turns with computing, so it is never busy all the time."
    )
