"""The JSON of /api/v1/status and /api/v1/diagnosis. Keys are stable: they are added, not renamed."""

from collections.abc import Mapping

from pinchpoint.diagnosis.upkeep import findings
from pinchpoint.diagnosis.verdict import Objective
from pinchpoint.outputs.scene import Scene
from pinchpoint.outputs.web.as_json import as_json
from pinchpoint.outputs.web.recent import fullest, total
from pinchpoint.outputs.web.view import EngineView, View, headline, view
from pinchpoint.snapshot import EngineFacts, GpuReading, HostReading, ProbeReading


def status(scene: Scene) -> dict[str, object]:
    """Everything the page shows, as JSON types. Unknown is null; times are Unix seconds, ages seconds.

    ``alerting`` is null where alerts are not evaluated here. An engine's ``timeline`` is what was shown of it in the
    last hours; where nobody looked it has a gap.
    """
    seen = view(scene)
    snapshot, report, now = scene.snapshot, scene.self_report, seen.now
    owner = {gpu.uuid: engine.engine for engine in seen.engines for gpu in engine.gpus}
    absent = ({**_row(absence), "for_seconds": max(0.0, now - absence.at)} for absence in snapshot.absences)
    return {
        "at_unix_seconds": seen.at_unix_seconds,
        "version": report.version,
        "simulated": report.simulated,
        "headline": headline(seen),
        "engines": [_engine(seen, engine) for engine in seen.engines],
        "gpus": [{**_reading(gpu, now), "engine": owner.get(gpu.uuid)} for gpu in snapshot.gpus],
        "links": as_json(snapshot.links),
        "topology": as_json(scene.topology),
        "findings": as_json(findings(snapshot.gpus, snapshot.links)),
        "probes": [_reading(probe, now) for probe in snapshot.probes],
        "comparisons": as_json(snapshot.comparisons),
        "host": _reading(snapshot.host, now) if snapshot.host else None,
        "missing": [{key: value for key, value in row.items() if key != "at"} for row in absent],
        "alerting": as_json(report.alerting),
        "sources": as_json(report.sources),
        "self": {
            key: value
            for key, value in _row(report).items()
            if key not in ("sources", "alerting", "version", "simulated")
        },
    }


def diagnoses(scene: Scene) -> dict[str, object]:
    """The whole verdict of each engine, scores and measured signals included."""
    return {
        "at_unix_seconds": scene.snapshot.at + scene.unix_offset_seconds,
        "engines": {
            name: {
                **_verdict(scene, name),
                "scores": as_json(settled.diagnosis.scores),
                "signals": as_json(settled.diagnosis.signals),
            }
            for name, settled in scene.verdicts.items()
        },
    }


def probe_result(scene: Scene, target: str) -> dict[str, object] | None:
    """The last result of one target; ``None`` when there is none."""
    reading = next((probe for probe in scene.snapshot.probes if probe.target == target), None)
    return _reading(reading, scene.snapshot.at) if reading else None


def _engine(seen: View, engine: EngineView) -> dict[str, object]:
    facts = engine.last.facts if engine.last else None
    return {
        "engine": engine.engine,
        "model": engine.model,
        "kind": facts.kind if facts else None,
        "version": facts.version if facts else None,
        "facts": _facts(engine),
        "up": engine.now is not None,
        "severity": engine.severity.value,
        "words": engine.words,
        "starting": engine.starting,
        **_verdict(seen.scene, engine.engine),
        "kv_cache_usage_ratio": fullest(engine.now) if engine.now else None,
        "kv_cache_over_alert_line": engine.over_alert_line,
        "kv_cache_capacity_tokens": total(engine.now, lambda r: r.kv_cache_capacity_tokens) if engine.now else None,
        "requests_running": total(engine.now, lambda r: r.requests_running) if engine.now else None,
        "requests_waiting": total(engine.now, lambda r: r.requests_waiting) if engine.now else None,
        "prompt_tokens_per_second": engine.prompt_tokens_per_second,
        "generation_tokens_per_second": engine.generation_tokens_per_second,
        "ttft": _latency(engine, engine.ttft),
        "tpot": _latency(engine, engine.tpot),
        "history": as_json(engine.history),
        "gpus": [gpu.gpu for gpu in engine.gpus],
        "gpus_by_replica": as_json(engine.last.gpus_by_replica) if engine.last else {},
        "replicas": [
            {
                "replica": replica.replica,
                "kv_cache_usage_ratio": as_json(replica.kv_cache_usage_ratio),
                "requests_running": as_json(replica.requests_running),
                "requests_waiting": as_json(replica.requests_waiting),
            }
            for replica in (engine.now.replicas if engine.now else ())
        ],
        "warnings": list(engine.now.warnings) if engine.now else [],
        "unavailable": as_json(engine.now.unavailable) if engine.now else {},
        "lora": {
            "max": as_json(engine.now.frontend.lora_adapters_max),
            "running": list(engine.now.frontend.lora_running),
            "waiting": list(engine.now.frontend.lora_waiting),
        }
        if engine.now and engine.now.frontend.lora_adapters
        else None,
    }


def _facts(engine: EngineView) -> dict[str, object]:
    """Each known fact with who said it; what is only inferred says so."""
    facts = engine.last.facts if engine.last else EngineFacts()
    inferred = engine.settled.diagnosis.signals.get("inferred_max_num_seqs") if engine.settled else None
    if inferred is not None:
        facts = facts.completed(EngineFacts(max_num_seqs=int(inferred)), "inferred")
    return {
        name: {"value": as_json(value), "origin": facts.origins.get(name)}
        for name, value in facts.known().items()
        if name != "model_config"
    }


def _latency(engine: EngineView, seen: Objective | None) -> dict[str, object] | None:
    """A quantile in the lowest or the open bucket is null, and the edge that is known says what it is."""
    if seen is None:
        return None
    signals = engine.settled.diagnosis.signals if engine.settled else {}
    quantiles = {
        f"{name}_{key}seconds": as_json(getattr(found, field)) if found else None
        for name, found in (("p50", seen.p50), ("p95", seen.p95))
        for key, field in (("", "value"), ("at_least_", "at_least"), ("at_most_", "at_most"))
    }
    return {
        "slo_seconds": seen.slo_seconds,
        "judged_seconds": as_json(seen.judged_seconds),
        "judged_by": seen.judged_by,
        "over_slo": engine.late(seen),
        "window_seconds": signals.get("span_seconds"),
        **quantiles,
    }


def _verdict(scene: Scene, engine: str) -> dict[str, object]:
    settled, scaling, offset = scene.verdicts.get(engine), scene.scaling.get(engine), scene.unix_offset_seconds
    diagnosis = settled.diagnosis if settled else None
    runner_up = diagnosis.runner_up if diagnosis else None
    return {
        "class": diagnosis.bottleneck.value if diagnosis else None,
        "since_unix_seconds": settled.since + offset if settled else None,
        "why": diagnosis.why if diagnosis else None,
        "confidence": as_json(diagnosis.confidence_ratio) if diagnosis else None,
        "score": as_json(diagnosis.scores.get(diagnosis.bottleneck)) if diagnosis else None,
        "runner_up": runner_up.value if runner_up else None,
        "runner_up_score": as_json(diagnosis.scores.get(runner_up)) if diagnosis and runner_up else None,
        "candidate": settled.candidate.value if settled and settled.candidate else None,
        "evidence": as_json(diagnosis.evidence) if diagnosis else [],
        "contradicted_by": as_json(diagnosis.contradicted_by) if diagnosis else [],
        "missing": list(diagnosis.missing) if diagnosis else [],
        "advice": as_json(diagnosis.advice) if diagnosis else [],
        "more_gpus_help": scaling.more_gpus_help if scaling else None,
        "more_gpus_reason": scaling.reason if scaling else None,
        "timeline": [
            {"start": each.start + offset, "end": each.end + offset, "class": each.bottleneck.value}
            for each in scene.courses.get(engine, ())
        ],
    }


def _row(value: object) -> dict[str, object]:
    row = as_json(value)
    assert isinstance(row, Mapping)
    return dict(row)


def _reading(reading: GpuReading | ProbeReading | HostReading, now: float) -> dict[str, object]:
    """A reading with its age in place of its time on our private clock."""
    row = _row(reading)
    for time in ("at", "last_success_at"):
        row.pop(time, None)
    return {**row, "age_seconds": max(0.0, now - reading.at)}
