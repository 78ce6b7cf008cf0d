"""The discovery family: what the finders of engines have, and which part of a fleet is watched here."""

from collections.abc import Iterable

from pinchpoint.outputs.catalog.metric import Sample, counter, gauge, info
from pinchpoint.outputs.scene import Scene


def _targets(scene: Scene) -> Iterable[Sample]:
    return (((d.discovery,), d.targets) for d in scene.self_report.discoveries)


def _refused(scene: Scene) -> Iterable[Sample]:
    return (((d.discovery,), d.refused) for d in scene.self_report.discoveries)


def _failures(scene: Scene) -> Iterable[Sample]:
    for d in scene.self_report.discoveries:
        yield from (((d.discovery, reason), number) for reason, number in d.failures_total.items())


def _shard(scene: Scene) -> Iterable[Sample]:
    report = scene.self_report
    if report.shard is not None:
        yield (str(report.shard), str(report.shards)), 1


DISCOVERY_METRICS = (
    gauge(
        "discovery_targets",
        ("discovery",),
        _targets,
        "Engines in the list in force, before names are compared and shards taken; source_up says whether it is fresh.",
    ),
    gauge(
        "discovery_refused_targets",
        ("discovery",),
        _refused,
        "Items of the list that are no engine, left out; the log names them.",
    ),
    counter(
        "discovery_failures_total",
        ("discovery", "reason"),
        _failures,
        "Looks that gave no whole new list, so that the last good one stayed in force.",
    ),
    info("shard_info", ("shard", "shards"), _shard, "Which part of the engines is watched here; absent: all of them."),
)
