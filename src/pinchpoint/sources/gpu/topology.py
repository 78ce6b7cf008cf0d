"""How the GPUs are connected: the matrix of ``nvidia-smi topo -m``, walked once per NVML generation.

A walk can take the driver half a second for each pair, so it has a thread of its own: no reading waits for it. A GPU
that doesn't answer its own worker is left alone; its pairs are walked when it does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import structlog

from pinchpoint.snapshot import GpuReading, PeerLink, Reason
from pinchpoint.sources.gpu.history import Remote
from pinchpoint.sources.gpu.nvlink import LINK_COUNT_FIELD, count_links, is_up
from pinchpoint.sources.gpu.nvml import GpuDownError, LibraryDownError, NvmlGpu
from pinchpoint.sources.gpu.site import Site

log = structlog.get_logger(__name__)

LONGEST_LOOK_SECONDS = 1.0
ANCESTORS: Mapping[int, str] = {  # nvmlGpuTopologyLevel_t; INTERNAL is one board of two GPUs
    0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS",
}  # fmt: skip
P2P: Mapping[int, str] = {  # nvmlGpuP2PStatus_t
    0: "ok",
    1: "chipset_not_supported",
    2: "gpu_not_supported",
    3: "topology_not_supported",
    4: "disabled_by_regkey",
    5: "not_supported",
}
REMOTES: Mapping[int, str] = {0: "gpu", 1: "cpu", 2: "switch"}  # nvmlIntNvLinkDeviceType_t
_READ = 0  # nvmlGpuP2PCapsIndex_t
SWITCH_LINKS_FIELD = 147  # NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT


@dataclass(frozen=True, slots=True)
class Seen:
    """One GPU as the walk found it."""

    nvml: NvmlGpu
    pci_bus_id: str
    up: tuple[int, ...]  # its active NVLinks
    remotes: Mapping[int, Remote]  # their other ends
    to_switches: int


class Topology:
    """Walks in a daemon thread from ``start`` to ``end``; ``links`` are what it knows so far.

    ``views`` gives each worker's last reading, by index. A GPU is walked when it answers, and again when it is back or
    other NVLinks of it are up; what was known stays until then. The other ends of its links go into its history.
    """

    def __init__(self, site: Site) -> None:
        self.links: tuple[PeerLink, ...] = ()  # one for each pair that is known, the lower index first
        self._site, self._settings, self._clock = site, site.settings, site.clock
        self._calls = site.calls.ledger("topology")
        self._seen: dict[int, Seen] = {}
        self._pairs: dict[tuple[int, int], PeerLink | None] = {}  # None: the driver can't say
        self._due: set[tuple[int, int]] = set()  # pairs that may have changed
        self._not_before: dict[tuple[int, ...], float] = {}  # of a GPU, or a pair that failed
        self._ending = threading.Event()
        self._busy_since: float | None = None
        self._thread = threading.Thread(target=self._run, name="nvml-topology", daemon=True)

    def start(self, views: Callable[[], Mapping[int, GpuReading | None]]) -> None:
        self._views = views
        self._thread.start()

    def end(self) -> None:
        """Ask the thread to end after the call in progress. Does not wait."""
        self._ending.set()

    def ended(self) -> bool:
        return not self._thread.is_alive()

    def hung(self, now: float) -> bool:
        """Whether walking one GPU or one pair has taken longer than the deadline."""
        began = self._busy_since
        return began is not None and now - began > self._settings.deadline_seconds

    def _run(self) -> None:
        while not self._ending.wait(min(self._settings.interval_seconds, LONGEST_LOOK_SECONDS)):
            try:
                self._look()
            except LibraryDownError:  # the workers meet it too, and theirs ends the generation
                return
            except Exception:  # the thread's one guard: without a matrix everything else goes on
                log.exception("walking the GPUs' topology failed")
                return

    def _look(self) -> None:
        """Walk what is due: GPUs first, then the pairs of those."""
        views = self._views()
        answering = {index for index, view in views.items() if view and view.up}
        for index in self._seen.keys() - answering:
            del self._seen[index]  # its handle may be dead by now; its pairs stay as they were
        for index in sorted(answering):
            view = views[index]
            if view and (index not in self._seen or self._changed(index, view)):
                self._try((index,), partial(self._walk, index, view.uuid))
        for pair in combinations(sorted(self._seen), 2):
            if pair not in self._pairs or pair in self._due:
                self._try(pair, partial(self._connect, *pair))

    def _changed(self, index: int, view: GpuReading) -> bool:
        up = tuple(int(link.link) for link in view.nvlinks if link.up)
        return bool(view.nvlinks) and up != self._seen[index].up

    def _try(self, what: tuple[int, ...], walk: Callable[[], None]) -> None:
        """At most once per ``retry_seconds``: for what fails, and for a worker whose view is older than the walk."""
        now = self._clock()
        if self._ending.is_set() or now < self._not_before.get(what, now):
            return
        self._busy_since = now
        try:
            with suppress(GpuDownError):  # its worker meets that too, and tells it
                walk()
        finally:
            self._busy_since = None
            self._not_before[what] = self._clock() + self._settings.retry_seconds

    def _walk(self, index: int, uuid: str) -> None:
        nvml = NvmlGpu(index, self._clock, self._calls)
        pci = nvml.ask("nvmlDeviceGetPciInfo")
        fields = nvml.ask_fields([LINK_COUNT_FIELD, SWITCH_LINKS_FIELD])
        up = tuple(link for link in range(count_links(nvml, fields[LINK_COUNT_FIELD])) if is_up(nvml, link))
        history, remotes = self._site.history(uuid), {link: _remote(nvml, link) for link in up}
        history.remotes = {**history.remotes, **remotes}  # a link that is down doesn't tell where it went
        to_switches = sum(remote.kind == "switch" for remote in remotes.values())
        if not any(remote.kind for remote in remotes.values()):
            told = fields[SWITCH_LINKS_FIELD]
            to_switches = 0 if isinstance(told, Reason) else min(int(told), len(up))
        self._seen[index] = Seen(nvml, "" if isinstance(pci, Reason) else _address(pci.busId), up, remotes, to_switches)
        self._due |= {pair for pair in self._pairs if index in pair}
        for pair in self._due:
            self._not_before.pop(pair, None)

    def _connect(self, first: int, second: int) -> None:
        one, other = self._seen[first], self._seen[second]
        level = one.nvml.ask("nvmlDeviceGetTopologyCommonAncestor", other.nvml)
        statuses = (
            one.nvml.ask("nvmlDeviceGetP2PStatus", other.nvml, _READ),
            other.nvml.ask("nvmlDeviceGetP2PStatus", one.nvml, _READ),
        )
        nvlinks = _nvlinks(one, other)
        word = f"NV{nvlinks}" if nvlinks else ANCESTORS.get(level)
        if word or level is Reason.NOT_SUPPORTED:
            self._pairs[first, second] = PeerLink(str(first), str(second), word, _both_ways(statuses)) if word else None
            self._due.discard((first, second))
            self.links = tuple(link for _, link in sorted(self._pairs.items()) if link)


def _remote(nvml: NvmlGpu, link: int) -> Remote:
    kind = nvml.ask("nvmlDeviceGetNvLinkRemoteDeviceType", link)
    pci = nvml.ask("nvmlDeviceGetNvLinkRemotePciInfo", link)
    return Remote(REMOTES.get(kind), None if isinstance(pci, Reason) else _address(pci.busId) or None)


def _address(bus_id: str | bytes) -> str:
    return (bus_id.decode("ascii", "replace") if isinstance(bus_id, bytes) else bus_id).upper()


def _nvlinks(one: Seen, other: Seen) -> int:
    """How many NVLinks lie between two GPUs: their own, or those that both have to the switches."""
    direct = sum(remote.pci_bus_id == other.pci_bus_id != "" for remote in one.remotes.values())
    return direct or min(one.to_switches, other.to_switches)


def _both_ways(statuses: tuple[int | Reason, int | Reason]) -> str:
    """Fine when both are; else why the first that isn't is not; empty when one is unknown."""
    words = ["" if isinstance(status, Reason) else P2P.get(status, "") for status in statuses]
    return next((word for word in words if word not in ("ok", "")), "ok" if all(words) else "")
