"""Where an engine answers, and what its operator said of it: what discovery hands to the engine source."""

from dataclasses import dataclass, field

from pinchpoint.snapshot.engine import EngineFacts, Slo


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTarget:
    """One engine endpoint to watch.

    ``url`` is the base URL without a trailing slash (``http://127.0.0.1:8000``). ``bearer_token`` never prints.
    """

    engine: str
    url: str
    metrics_path: str = "/metrics"
    facts: EngineFacts = field(default_factory=EngineFacts)
    slo: Slo = field(default_factory=Slo)
    gpus: tuple[str, ...] = ()
    bearer_token: str = field(default="", repr=False)
