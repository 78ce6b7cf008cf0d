"""What is known to be wrong in what some release says: words for the operator, and whether its counts may be believed.

Sources: the issues and pull requests of vllm-project/vllm that each quirk names.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from pinchpoint.snapshot import EngineReading, ReplicaReading

Version = tuple[int, int, int]


def with_quirks(reading: EngineReading) -> EngineReading:
    """``reading`` with a warning for each quirk of its release that bears on it. The release is the facts' to know."""
    if reading.facts.kind != "vllm":
        return reading
    version = version_of(reading.facts.version)
    doubtful = _counts_contradict(version, reading)
    words = tuple(_words(version, reading, doubtful))
    return replace(reading, warnings=reading.warnings + words, doubtful=doubtful) if words else reading


def version_of(text: str | None) -> Version | None:
    """The release's numbers. ``None`` where there are none: builds without tags call themselves 0.1.dev."""
    found = re.match(r"v?([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?", text or "", re.ASCII)
    numbers = (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None
    return None if numbers is None or numbers < (0, 2, 0) else numbers


def _counts_contradict(version: Version | None, reading: EngineReading) -> bool:
    """Several API servers on 0.8 and 0.9 each count a part (pull 18053); they, unlike one, print no start time."""
    several = not reading.epoch.partition("#")[0]
    return several and version is not None and (0, 8, 0) <= version < (0, 10, 0)


def _words(version: Version | None, reading: EngineReading, doubtful: bool) -> Iterator[str]:
    replicas = reading.replicas
    if doubtful:
        yield "several API servers before vLLM 0.10: each counts a part, and the parts contradict each other"
    if any(_is_v0(r) and r.prefill_seconds is not None for r in replicas):  # pull 10853, merged in December 2024
        if version is None:
            yield "before vLLM 0.6.5 prefill and decode time are swapped, and its version is not known"
        elif version < (0, 6, 5):
            yield "this vLLM swaps prefill and decode time (fixed in 0.6.5)"
    recounts = version is not None and (0, 8, 0) <= version <= (0, 11, 0)  # issue 25780
    if recounts and any(r.preemptions_total for r in replicas):
        yield "up to vLLM 0.11.0 prefix cache hits include what was preempted and computed again"


def _is_v0(replica: ReplicaReading) -> bool:
    """Only the old engine swaps, and has gauges for the hit rate."""
    return any(
        value is not None
        for value in (replica.requests_swapped, replica.kv_cache_cpu_usage_ratio, replica.prefix_cache_hit_ratio)
    )
