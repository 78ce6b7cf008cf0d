"""How long is looked at, and how long a class has to last."""

from pydantic import BaseModel, Field


class TimeThresholds(BaseModel):
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
