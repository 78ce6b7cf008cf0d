"""One body of ``/metrics`` becomes one reading: parse, recognise, translate. Pure."""

from dataclasses import replace

from pinchpoint.snapshot import EngineFacts, EngineReading, EngineTarget, ReplicaReading
from pinchpoint.sources.engine.exposition import Families, parse
from pinchpoint.sources.engine.fingerprint import folded, require_vllm
from pinchpoint.sources.engine.vllm import cache_config, read_replicas


def reading_from_body(target: EngineTarget, body: bytes, content_type: str | None, at: float) -> EngineReading:
    """The reading of ``target`` that ``body`` holds, scraped at ``at``.

    ``epoch`` is the server's own start time where it prints one, else empty: ``EpochTracker`` completes it. Raises
    ``SourceError`` when the body is not a vLLM exposition.
    """
    families = folded(parse(body, content_type))
    require_vllm(families)
    replicas, warnings = read_replicas(families)
    if families.malformed_lines:
        warnings += (f"{families.malformed_lines} malformed lines skipped",)
    return EngineReading(
        engine=target.engine,
        at=at,
        replicas=replicas,
        facts=_facts(target.facts, families, replicas),
        slo=target.slo,
        gpus=target.gpus,
        epoch=_start_time(families),
        url=target.url,
        warnings=warnings,
    )


def _facts(said: EngineFacts, families: Families, replicas: tuple[ReplicaReading, ...]) -> EngineFacts:
    """What the operator said, completed and, where the engine prints its real configuration, corrected."""
    config = cache_config(families)
    caching = {"True": True, "False": False}.get(config.get("enable_prefix_caching", ""))
    return replace(
        said,
        model=said.model or next((r.model for r in replicas if r.model), None),
        enable_prefix_caching=said.enable_prefix_caching if caching is None else caching,
        gpu_memory_utilization=_ratio(config.get("gpu_memory_utilization")) or said.gpu_memory_utilization,
    )


def _ratio(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 < value <= 1 else None


def _start_time(families: Families) -> str:
    started = families.samples.get("process_start_time_seconds", ())
    return f"{started[0].value:.2f}" if started else ""
