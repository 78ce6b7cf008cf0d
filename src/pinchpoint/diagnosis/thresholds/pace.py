"""What paces a step: computing, reading memory; and when a GPU is free."""

from pydantic import BaseModel, Field


class PaceThresholds(BaseModel):
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
