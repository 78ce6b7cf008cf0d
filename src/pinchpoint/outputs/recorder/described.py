"""Readings as JSON objects: ``meta.json`` and the lines beside the scrapes. What is unknown is left out."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from pinchpoint.snapshot import NVLINK_FAMILIES, EngineReading, GpuReading, GpuState, PeerLink

_TIMES = ("at", "last_success_at")  # on this process's clock


def described(
    folders: Mapping[str, str], first: Mapping[str, EngineReading], links: Iterable[PeerLink]
) -> dict[str, Any]:
    """What ``meta.json`` says of the engines: ``folders`` and the ``first`` reading of those that answered, by name.

    ``numbered``: a scrape's name is the number of its step. ``services``: no balancer stands before the engines, so
    each has an answer of its own. Where there is one engine its facts are at the root too, as in any recording.
    """
    about = {
        engine: {"gpus": list(reading.gpus), "engine": known(reading.facts), "slo": known(reading.slo)}
        for engine, reading in first.items()
    }
    only = next(iter(about.values()), {}) if len(folders) == 1 else {}
    return {
        "numbered": True,
        "services": True,
        **only,
        "engines": [{"name": folder, **about.get(engine, {})} for engine, folder in folders.items()],
        "links": [asdict(link) for link in links],
    }


def known(reading: Any) -> dict[str, Any]:
    """A reading's fields without the time, and without what is unknown or empty."""
    said = ((name, value) for name, value in asdict(reading).items() if name not in _TIMES)
    return {name: value for name, value in said if value not in (None, "", {}, ())}


def gpu_line(gpu: GpuReading) -> dict[str, Any]:
    """A line's entry of one GPU; that it is well goes without saying."""
    entry = known(gpu) | _nvlinks(gpu)
    for what in ("nvlinks", "process_ids"):  # the first are told by family, the others mean nothing elsewhere
        entry.pop(what, None)
    if gpu.up and gpu.state is GpuState.OK:
        del entry["up"], entry["state"]
    return entry


def _nvlinks(gpu: GpuReading) -> dict[str, dict[str, Any]]:
    """Each family of the links as an object by link."""
    families: dict[str, dict[str, Any]] = {}
    for link in gpu.nvlinks:
        for family, field in NVLINK_FAMILIES.items():
            if (value := getattr(link, field)) not in (None, "", {}):
                families.setdefault(family, {})[link.link] = int(value) if isinstance(value, bool) else value
    return families
