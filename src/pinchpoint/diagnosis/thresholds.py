"""The numbers a verdict depends on: unit, default, why that default. How facts weigh against each other, rules say."""

from pydantic import BaseModel, ConfigDict, Field


class Thresholds(BaseModel):
    """Settings of the diagnosis. The objectives (TTFT, TPOT) are the engine's own ``Slo``, not thresholds.

    Where a pair ``x_begins`` / ``x_certain`` exists, a signal below the first counts nothing, above the second fully,
    and in between in proportion.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Time
    window_seconds: float = Field(
        default=20.0, gt=0, description="Seconds of scrapes one verdict looks at: long enough for some first tokens."
    )
    min_scrapes: int = Field(
        default=3, ge=2, description="Distinct scrapes before a verdict on load; the window reaches back for them."
    )
    full_scrapes: int = Field(default=5, ge=2, description="Distinct scrapes from which confidence is not reduced.")
    stale_seconds: float = Field(
        default=60.0, gt=0, description="Age in seconds beyond which a scrape is no data; sources drop theirs earlier."
    )
    idle_seconds: float = Field(
        default=10.0, gt=0, description="Seconds without a request or a token that make idle; less flaps between turns."
    )
    stall_seconds: float = Field(
        default=15.0, gt=0, description="Seconds of work without a token; above one long prompt's unchunked prefill."
    )
    hold_seconds: float = Field(
        default=10.0, ge=0, description="Seconds a new class must last before it is shown; 10 hides a burst's edges."
    )
    recovery_hold_seconds: float = Field(
        default=60.0,
        ge=0,
        description="The same for healthy after a bottleneck: the lull between two bursts is no recovery.",
    )
    fast_hold_seconds: float = Field(
        default=2.0, ge=0, description="The same for no_data, hardware, stalled, sleeping, and for leaving unknown."
    )
    held_margin: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="Score (0..1) that the class shown has ahead of its rivals and of name_score; a tenth is noise.",
    )
    resume_seconds: float = Field(
        default=600.0,
        ge=0,
        description="Seconds nobody looked (a gap, a restart) that a class seen before and after is taken to have "
        "lasted; an upgrade takes minutes.",
    )
    name_score: float = Field(
        default=0.5, gt=0, le=1, description="Score (0..1) from which a class is named; below it the answer is unknown."
    )

    # Queue, latency
    queue_share: float = Field(
        default=0.5, gt=0, le=1, description="Share of scrapes with a queue that makes it sustained: not a blip."
    )
    queue_wait_share: float = Field(
        default=0.5, gt=0, description="Expected wait in the queue, as a share of the TTFT objective, that hurts."
    )
    ttft_p95_observations: int = Field(
        default=20, ge=1, description="First tokens from which p95 is judged; below it a lower quantile: all but one."
    )
    ttft_quantile_observations: int = Field(
        default=6,
        ge=2,
        description="First tokens below which the mean is judged, as any quantile would be one of them.",
    )

    # KV cache
    kv_full_ratio: float = Field(
        default=0.90,
        gt=0,
        le=1,
        description="KV usage (0..1) that counts as full; .90 is vllm-doctor's, .80 is a plan.",
    )
    kv_share_begins: float = Field(default=0.3, ge=0, le=1, description="Share of queued scrapes with a full KV cache.")
    kv_share_certain: float = Field(
        default=0.7, gt=0, le=1, description="Same; a full pool swings each time a request ends, so not 1."
    )
    preemptions_per_second: float = Field(
        default=0.05, gt=0, description="Preemptions per second that hurt for certain (vllmstat warns at .05)."
    )

    preempted_share: float = Field(
        default=0.1, gt=0, description="Preemptions over started requests that hurt for certain; engineering choice."
    )

    # Scheduler
    slots_full_ratio: float = Field(
        default=0.95, gt=0, le=1, description="Running over max_num_seqs that counts as full: a slot refills next step."
    )
    slots_share_begins: float = Field(default=0.5, ge=0, le=1, description="Share of queued scrapes with full slots.")
    slots_share_certain: float = Field(default=0.8, gt=0, le=1, description="Same; engineering choice.")
    plateau_scrapes: int = Field(
        default=5, ge=2, description="Queued scrapes before a flat number of running requests hints at a limit."
    )
    budget_share_begins: float = Field(default=0.75, ge=0, description="Tokens per step over max_num_batched_tokens.")
    budget_share_certain: float = Field(default=0.95, gt=0, description="Same: the budget fills nearly every step.")
    kv_room_ratio: float = Field(
        default=0.80,
        gt=0,
        le=1,
        description="KV usage below which memory is no rival to the scheduler (WVA, GIE: .80).",
    )

    # Compute
    prefill_share_begins: float = Field(
        default=0.5, ge=0, le=1, description="Computed prompt tokens over all computed tokens: half is everyday chat."
    )
    prefill_share_certain: float = Field(default=0.8, gt=0, le=1, description="Same; engineering choice.")
    step_tokens_begins: float = Field(
        default=256.0, ge=0, description="Mean tokens per step; an H100's bf16 ridge is 989 TFLOP/s / 3.35 TB/s = 295."
    )
    step_tokens_certain: float = Field(
        default=1024.0, gt=0, description="Same; three times the ridge, so compute sets the pace of a step."
    )
    tensor_active_begins: float = Field(
        default=0.2, ge=0, le=1, description="Tensor-pipe activity; decode of a small batch stays below .2."
    )
    tensor_active_certain: float = Field(
        default=0.45, gt=0, le=1, description="Same; good prefill kernels keep the pipe about half busy."
    )
    flops_reached_ratio: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="Share of the dense peak that serving kernels reach: .38 to .43 in Llama 3's training on H100s "
        "(arXiv 2407.21783), .76 in the best prefill (Pope et al., arXiv 2211.05102).",
    )
    step_explained_begins: float = Field(
        default=0.45,
        ge=0,
        description="A step at usual efficiency over observed: the GPU's work; below half something else takes longer.",
    )
    step_explained_certain: float = Field(
        default=0.75, gt=0, description="Same; launches and host take some of a step."
    )
    compute_share_begins: float = Field(
        default=0.4, ge=0, le=1, description="Share of a step's time at usual efficiency that is compute; half is even."
    )
    compute_share_certain: float = Field(default=0.6, gt=0, le=1, description="Same; engineering choice.")
    prompt_at_limit_begins: float = Field(
        default=0.15,
        ge=0,
        le=1,
        description="A prompt's time at peak over its observed prefill: others share the steps.",
    )
    prompt_at_limit_certain: float = Field(
        default=0.35, gt=0, le=1, description="Same; kernels reach .4 to .6, the rest of it is one step's waiting."
    )
    bandwidth_begins: float = Field(
        default=0.3, ge=0, le=1, description="Bytes moved over the published bandwidth; below it something else paces."
    )
    bandwidth_certain: float = Field(
        default=0.6, gt=0, le=1, description="Same; decode at its limit reaches .5 to .85 (roofline priors)."
    )
    tpot_room_ratio: float = Field(
        default=0.85, gt=0, le=1, description="Time between tokens over its objective from which a larger batch harms."
    )
    experts_flops_ratio: float = Field(
        default=0.65,
        gt=0,
        le=1,
        description="Share of flops_reached_ratio that a mixture of experts reaches: each expert's product is small.",
    )
    bandwidth_reached_ratio: float = Field(
        default=0.75, gt=0, le=1, description="Share of the published bandwidth that decode reaches: .5 to .85."
    )
    gpu_free_ratio: float = Field(
        default=0.5, ge=0, le=1, description="GPU duty below which the GPU is not what everybody waits for."
    )
    itl_spread: float = Field(
        default=3.0, gt=1, description="Inter-token p99 over p50 that shows prefill breaking into decode (Sarathi)."
    )

    # An engine without metrics: probes and GPUs alone
    probe_window_seconds: float = Field(
        default=180.0, gt=0, description="Seconds of probes and GPU readings looked at: six local probes."
    )
    probe_wait_answers: float = Field(
        default=3.0,
        gt=1,
        description="TTFT of a probe, in lengths of its own answer, that shows a queue for certain: others' requests.",
    )
    gpu_resting_ratio: float = Field(
        default=0.05, ge=0, le=1, description="GPU duty below which a reading shows no work; 0.05 is a desktop's."
    )
    gpu_resting_share: float = Field(
        default=0.8, gt=0, le=1, description="Share of readings without work that makes idle; a short probe is in some."
    )
    gpu_gaps_share: float = Field(
        default=0.2, gt=0, le=1, description="Share of readings without work under load that shows time left over."
    )
    gpu_hot_ratio: float = Field(
        default=0.95, gt=0, le=1, description="GPU duty from which the GPU is never waiting; engineering choice."
    )

    # Probes, local against hosted and against the engine's own word: evidence beside a verdict, none by itself
    hosted_ttft_times: float = Field(
        default=3.0,
        gt=1,
        description="TTFT of a local probe, in those of the hosted API, from which it is told; below, prompts and "
        "distance may explain it. With the GPUs below gpu_free_ratio it speaks against the infrastructure.",
    )
    network_ttft_share: float = Field(
        default=0.5, gt=0, le=1, description="Share of a probe's TTFT outside the engine that is told: the larger half."
    )
    network_ttft_seconds: float = Field(
        default=0.1, ge=0, description="Seconds of TTFT outside the engine below which nobody notices them."
    )

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

    # The way between clients and engine
    way_seconds: float = Field(
        default=0.05, ge=0, description="Seconds of a probe's TTFT outside the engine that may be the server's own."
    )
    way_share: float = Field(
        default=0.2, ge=0, le=1, description="Same, as a share of that TTFT; the larger of the two counts."
    )
    client_missed_begins: float = Field(
        default=0.05, ge=0, le=1, description="Share of requests late at the client alone; an objective is a p95."
    )
    client_missed_certain: float = Field(default=0.1, gt=0, le=1, description="Same; twice that.")
    way_mends_begins: float = Field(
        default=0.3, ge=0, le=1, description="Of the requests late at the client, those in time without the way."
    )
    way_mends_certain: float = Field(default=0.6, gt=0, le=1, description="Same; more than half are the way's.")
    client_pace_times: float = Field(
        default=1.2, gt=1, description="TPOT at the client, in the engine's: a fifth is noise of a few short answers."
    )
    client_burst_ratio: float = Field(
        default=0.25, gt=0, lt=1, description="Same, below which tokens come in a burst: something held them back."
    )

    # Replicas
    spread_share_begins: float = Field(
        default=0.3, ge=0, le=1, description="Share of scrapes in which one replica is overloaded and another has room."
    )
    spread_share_certain: float = Field(default=0.6, gt=0, le=1, description="Same; half of the time is no blip.")
    replica_room_ratio: float = Field(
        default=0.5, gt=0, lt=1, description="Running, over the overloaded replica's or max_num_seqs, that is room."
    )
    spread_demand_certain: float = Field(
        default=0.9, gt=0, description="Even share of all load, over what one replica bears, that would be served."
    )
    spread_demand_ends: float = Field(default=1.1, gt=0, description="Same, from which evenness would not be enough.")
    spread_work_begins: float = Field(
        default=0.7, gt=0, description="Tokens of the overloaded replica, over another's: less, and it is slow itself."
    )
    spread_work_certain: float = Field(default=1.1, gt=0, description="Same: it is asked for more than the other.")

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
