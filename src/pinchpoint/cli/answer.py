"""What ``pinchpoint diagnose`` answers, as a JSON object."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pinchpoint.capacity import judge_scaling
from pinchpoint.cli.how_to_see import how_to_see
from pinchpoint.diagnosis.timeline import RecordingVerdict
from pinchpoint.diagnosis.upkeep import findings
from pinchpoint.diagnosis.verdict import Evidence
from pinchpoint.snapshot import Snapshot


def answer_of(verdict: RecordingVerdict) -> dict[str, Any]:
    """The verdict on one engine as the JSON object that is printed."""
    diagnosis = verdict.diagnosis
    scaling = judge_scaling(diagnosis)
    score = diagnosis.scores.get(diagnosis.bottleneck)
    return {
        "engine": diagnosis.engine,
        "class": str(diagnosis.bottleneck),
        "why": diagnosis.why,
        "runner_up": None if diagnosis.runner_up is None else str(diagnosis.runner_up),
        "confidence": round(diagnosis.confidence_ratio, 3),
        "score": None if score is None else round(score, 3),
        "scores": {str(name): round(score, 3) for name, score in diagnosis.scores.items()},
        "evidence": [_fact(fact) for fact in diagnosis.evidence],
        "contradicted_by": [_fact(fact) for fact in diagnosis.contradicted_by],
        "missing": list(diagnosis.missing),
        "how_to_see": {signal: how_to_see(signal) for signal in diagnosis.missing},
        "advice": [_known(asdict(lever)) for lever in diagnosis.advice],
        "more_gpus_help": scaling.more_gpus_help,
        "more_gpus_reason": scaling.reason,
        "timeline": [
            {"start": interval.start, "end": interval.end, "class": str(interval.bottleneck)}
            for interval in verdict.timeline
        ],
    }


def _fact(fact: Evidence) -> dict[str, Any]:
    return _known(asdict(fact))


def _known(values: dict[str, Any]) -> dict[str, Any]:
    """What is not known is not there."""
    return {name: value for name, value in values.items() if value is not None}


def findings_of(snapshots: Sequence[Snapshot]) -> list[dict[str, Any]]:
    """What the GPUs of the last snapshot that has any need, and what is not alike among them, as JSON objects."""
    last = next((snapshot for snapshot in reversed(snapshots) if snapshot.gpus), None)
    return [asdict(finding) for finding in findings(last.gpus, last.links)] if last else []
