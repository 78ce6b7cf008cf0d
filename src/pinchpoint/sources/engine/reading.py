"""One body of ``/metrics`` becomes one reading: parse, recognise, translate. Pure."""

from dataclasses import replace

from pinchpoint.snapshot import EngineFacts, EngineReading, EngineTarget, ReplicaReading
from pinchpoint.sources.engine.exposition import Families, parse
from pinchpoint.sources.engine.fingerprint import folded, recognise
from pinchpoint.sources.engine.kinds import AUTO, EngineKind
from pinchpoint.sources.engine.recall import Recall


def reading_from_body(
    target: EngineTarget, body: bytes, content_type: str | None, at: float, recall: Recall | None = None
) -> EngineReading:
    """The reading of ``target`` that ``body`` holds, scraped at ``at``; sooner with what is remembered of the last.

    ``epoch`` is the server's own start time where it prints one, else empty: ``EpochTracker`` completes it. Raises
    ``SourceError`` when the body is no engine's exposition, or not that of the kind that the target says.
    """
    families = folded(parse(body, content_type, recall))
    kind = recognise(families, target.facts.kind or AUTO)
    told = kind.read(families, target.facts)
    malformed = families.malformed_lines
    reading = EngineReading(
        engine=target.engine,
        at=at,
        replicas=told.replicas,
        frontend=told.frontend,
        slo=target.slo,
        gpus=target.gpus,
        epoch=_start_time(families),
        url=target.url,
        warnings=told.warnings + ((f"{malformed} malformed lines skipped",) if malformed else ()),
        unavailable=told.unavailable,
    )
    return as_kind(reading.with_facts(_facts(target.facts, kind, families, told.replicas)), kind)


def as_kind(reading: EngineReading, kind: EngineKind) -> EngineReading:
    """``reading`` with what is known of every engine of this kind."""
    return replace(
        reading,
        facts=replace(reading.facts, kind=kind.name),
        tokens_at_end=kind.tokens_at_end,
        running_lag_seconds=kind.running_lag_seconds,
    )


def _facts(
    said: EngineFacts, kind: EngineKind, families: Families, replicas: tuple[ReplicaReading, ...]
) -> EngineFacts:
    """What the operator said, completed and, where the engine prints its real configuration, corrected."""
    printed = kind.facts(families)
    caching, share = printed.enable_prefix_caching, printed.gpu_memory_utilization
    corrected = replace(
        said,
        enable_prefix_caching=said.enable_prefix_caching if caching is None else caching,
        gpu_memory_utilization=said.gpu_memory_utilization if share is None else share,
    )
    model = next((r.model for r in replicas if r.model), None)
    return corrected.completed(replace(printed, model=model), "metrics")


def _start_time(families: Families) -> str:
    started = families.samples.get("process_start_time_seconds", ())
    return f"{started[0].value:.2f}" if started else ""
