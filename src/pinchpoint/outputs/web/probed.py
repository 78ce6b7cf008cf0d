"""The part of an exposition that tells of one probe target. Pure."""

from collections.abc import Iterator

from pinchpoint.outputs.catalog import CATALOG, Metric
from pinchpoint.outputs.catalog.metric import PREFIX
from pinchpoint.outputs.label import label_value

_END = "# EOF"  # of OpenMetrics


def of_target(exposition: bytes, target: str, *, openmetrics: bool = False) -> bytes:
    """The probe families of a rendered exposition, with the series of ``target`` alone."""
    lines = [line for part in _families(f"\n{exposition.decode()}") for line in _series(part, target)]
    return "".join(f"{line}\n" for line in (*lines, *([_END] if openmetrics else ()))).encode()


def _families(exposition: str) -> Iterator[list[str]]:
    """The lines of each probe family: HELP, TYPE and series."""
    for metric in CATALOG:
        if not _is_of_target(metric):
            continue
        begin = max(exposition.find(f"\n# HELP {name} ") for name in {metric.full_name, metric.family})
        if begin >= 0:
            begin += 1
            end = exposition.find("\n# HELP ", begin)
            yield exposition[begin : end if end >= 0 else len(exposition)].splitlines()


def _is_of_target(metric: Metric) -> bool:
    return metric.full_name.startswith(f"{PREFIX}probe_") and metric.labels[:1] == ("target",)


def _series(family: list[str], target: str) -> list[str]:
    """The family's header and the target's series; nothing when it has none."""
    label = f'{{target="{label_value(target)}",'
    series = [line for line in family[2:] if line[line.find("{") :].startswith(label)]
    return [*family[:2], *series] if series else []
