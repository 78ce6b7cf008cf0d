"""What is known to be wrong in what some vLLM says: words for the operator, and whether the numbers may be believed.

Sources: the issues and pull requests of vllm-project/vllm that each quirk names.
"""

import re
from collections.abc import Iterable
from itertools import chain

from pinchpoint.snapshot import ReplicaReading
from pinchpoint.sources.engine.exposition import Families

_V0 = frozenset({"vllm:num_requests_swapped", "vllm:cpu_cache_usage_perc", "vllm:gpu_prefix_cache_hit_rate"})
_OF_ONE_PROCESS = ("process_start_time_seconds", "python_info")

Version = tuple[int, int, int]


def version_of(text: str | None) -> Version | None:
    """The release's numbers. ``None`` where there are none: builds without tags call themselves 0.1.dev."""
    found = re.match(r"v?([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?", text or "", re.ASCII)
    numbers = (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None
    return None if numbers is None or numbers < (0, 2, 0) else numbers


def quirks(
    version: Version | None, families: Families, replicas: Iterable[ReplicaReading], hybrid: bool
) -> tuple[str, ...]:
    """One sentence for each quirk that bears on this exposition."""
    replicas = tuple(replicas)
    return tuple(chain(_swapped_phases(version, families), _hits(version, replicas), _hybrids(replicas, hybrid)))


def counts_contradict(version: Version | None, families: Families) -> bool:
    """Several API servers on 0.8 and 0.9 each count a part (pull 18053). They are told by what one process prints."""
    if version is None or not (0, 8, 0) <= version < (0, 10, 0):
        return False
    return not any(name in families.samples for name in _OF_ONE_PROCESS)


def _swapped_phases(version: Version | None, families: Families) -> Iterable[str]:
    """Pull 10853, merged in December 2024."""
    if not families.names & _V0 or "vllm:request_prefill_time_seconds_sum" not in families.samples:
        return
    if version is None:
        yield "before vLLM 0.6.5 prefill and decode time are swapped, and its version is not known"
    elif version < (0, 6, 5):
        yield "this vLLM swaps prefill and decode time (fixed in 0.6.5)"


def _hits(version: Version | None, replicas: Iterable[ReplicaReading]) -> Iterable[str]:
    """Issue 25780."""
    if version is not None and (0, 8, 0) <= version <= (0, 11, 0) and any(r.preemptions_total for r in replicas):
        yield "up to vLLM 0.11.0 prefix cache hits include what was preempted and computed again"


def _hybrids(replicas: Iterable[ReplicaReading], hybrid: bool) -> Iterable[str]:
    """Issues 28228, 40691 and 42966, pull 55624."""
    if hybrid and any(r.kv_cache_capacity_tokens for r in replicas):
        yield "a hybrid model: its KV capacity in tokens is the engine's estimate over caches of several kinds"
    if hybrid and any(r.estimated_flops_per_gpu_total for r in replicas):
        yield "a hybrid model: vLLM's estimates of its FLOPs and bytes were wrong for a while"
