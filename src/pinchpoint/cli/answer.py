"""What ``pinchpoint diagnose`` answers, as a JSON object and as text."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape

from pinchpoint.capacity import judge_scaling
from pinchpoint.cli.topology import print_topology
from pinchpoint.diagnosis.timeline import RecordingVerdict
from pinchpoint.diagnosis.upkeep import findings
from pinchpoint.snapshot import Snapshot


def answer_of(verdict: RecordingVerdict) -> dict[str, Any]:
    """The verdict on one engine as the JSON object that is printed."""
    diagnosis = verdict.diagnosis
    scaling = judge_scaling(diagnosis)
    return {
        "engine": diagnosis.engine,
        "class": str(diagnosis.bottleneck),
        "why": diagnosis.why,
        "runner_up": None if diagnosis.runner_up is None else str(diagnosis.runner_up),
        "confidence": round(diagnosis.confidence_ratio, 3),
        "scores": {str(name): round(score, 3) for name, score in diagnosis.scores.items()},
        "evidence": [
            {
                "signal": fact.signal,
                "text": fact.text,
                **({} if fact.value is None else {"value": fact.value}),
                **({} if fact.threshold is None else {"threshold": fact.threshold}),
            }
            for fact in diagnosis.evidence
        ],
        "missing": list(diagnosis.missing),
        "advice": [{"action": lever.action, "text": lever.text} for lever in diagnosis.advice],
        "more_gpus_help": scaling.more_gpus_help,
        "more_gpus_reason": scaling.reason,
        "timeline": [
            {"start": interval.start, "end": interval.end, "class": str(interval.bottleneck)}
            for interval in verdict.timeline
        ],
    }


def findings_of(snapshots: Sequence[Snapshot]) -> list[dict[str, Any]]:
    """What the GPUs of the last snapshot that has any need, and what is not alike among them, as JSON objects."""
    last = next((snapshot for snapshot in reversed(snapshots) if snapshot.gpus), None)
    return [asdict(finding) for finding in findings(last.gpus, last.links)] if last else []


def print_answer(answer: dict[str, Any]) -> None:
    """The answer, or one for each engine, as text for people."""
    console = Console(highlight=False)
    for one in ([answer] if "class" in answer else []) + list(answer.get("engines", {}).values()):
        helps = {True: "yes", False: "no", None: "can't tell"}[one["more_gpus_help"]]
        steps = ", ".join(f"{t['start']:.0f}–{t['end']:.0f} s {t['class']}" for t in one["timeline"])
        console.print(
            f"[bold]{escape(one['engine'])}: {one['class']}[/bold]  (confidence {one['confidence']:.0%})",
            soft_wrap=True,
        )
        console.print(f"  {one['why']}", markup=False, soft_wrap=True)
        for title, lines in (
            ("evidence", [fact["text"] for fact in one["evidence"]]),
            ("missing", one["missing"]),
            ("advice", [lever["text"] for lever in one["advice"]]),
            ("runner-up", [one["runner_up"]] if one["runner_up"] else []),
            ("more GPUs", [f"{helps}: {one['more_gpus_reason']}"]),
            ("timeline", [steps]),
        ):
            for number, line in enumerate(lines):
                console.print(f"  {title if number == 0 else '':<10}{line}", markup=False, soft_wrap=True)
    if answer["topology"]:
        print_topology(answer["topology"], console)
    if answer["findings"]:
        console.print("[bold]GPUs of this node[/bold]")
    for finding in answer["findings"]:
        console.print(f"  {'finding':<10}{finding['text']}", markup=False, soft_wrap=True)
        console.print(f"  {'remedy':<10}{finding['remedy']}", markup=False, soft_wrap=True)
