"""The clients' side: probes, a hosted API beside them, the way to the engine, an engine that has no metrics."""

from pydantic import BaseModel, Field


class ClientThresholds(BaseModel):
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
