"""One GPU's cycle: asks what is due (``rows``, and the parts that need more than a row) and makes it a reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Protocol

from pinchpoint.snapshot import GpuReading, GpuState, Reason
from pinchpoint.sources.gpu.gpm import Profile
from pinchpoint.sources.gpu.history import History
from pinchpoint.sources.gpu.memory import Memory
from pinchpoint.sources.gpu.mig import MigInstances
from pinchpoint.sources.gpu.nvlink import NvLinks
from pinchpoint.sources.gpu.nvml import FieldAnswers, GpuDownError, LibraryDownError, NvmlGpu, Versions
from pinchpoint.sources.gpu.pci import numa_node
from pinchpoint.sources.gpu.pcie import PcieRates
from pinchpoint.sources.gpu.processes import Processes, ProcessIds
from pinchpoint.sources.gpu.rows import ROWS, THROUGHPUT, Answer, Row, Tier
from pinchpoint.sources.gpu.site import Site
from pinchpoint.sources.gpu.throttling import Throttling

RECOVERY = "recovery_action"


class Part(Protocol):
    """Some fields of a reading that take more than a row. ``fields`` join the batch of its tier."""

    @property
    def tier(self) -> Tier: ...
    @property
    def fields(self) -> Sequence[int]: ...

    def read(self, at: float, fields: FieldAnswers, so_far: Mapping[str, Answer]) -> Mapping[str, Answer]:
        """Values or Reasons by field of the reading. ``so_far``: what the rows, and the slower tiers, have said."""


class Device:
    """One opened GPU. ``read`` makes the calls of one cycle and never waits for anything else.

    Both constructor and ``read`` raise GpuDownError and LibraryDownError. What a slower tier said holds until it is
    asked again, which is as soon as its time has come; a value that is then refused is gone.
    """

    def __init__(self, nvml: NvmlGpu, versions: Versions, site: Site) -> None:
        self._nvml, self._site = nvml, site
        uuid = nvml.ask("nvmlDeviceGetUUID")
        if isinstance(uuid, Reason):
            raise GpuDownError(GpuState.UNKNOWN, f"GPU {nvml.index}: it doesn't tell its UUID ({uuid}); check dmesg")
        name, pci, minor = (nvml.ask(f"nvmlDeviceGet{what}") for what in ("Name", "PciInfo", "MinorNumber"))
        pci_bus_id = None if isinstance(pci, Reason) else pci.busId
        self._identity: dict[str, Any] = {
            "gpu": str(nvml.index),
            "uuid": uuid,
            "driver": versions.driver,
            "nvml": versions.library,
            "name": None if isinstance(name, Reason) else name,
            "pci_bus_id": pci_bus_id,
            "minor_number": None if isinstance(minor, Reason) else str(minor),
        }
        self._numa_node = numa_node(pci_bus_id, site.sysfs) if pci_bus_id else None
        self.history: History = site.history(uuid)
        settings = site.settings
        rates = () if settings.pcie_throughput else (PcieRates(nvml, site.clock),)
        processes: tuple[Part, ...] = ()
        if settings.processes:
            processes = (Processes(nvml, settings.max_processes, site.host_pids),)
        elif settings.processes is None and site.host_pids.visible:
            processes = (ProcessIds(nvml, site.host_pids),)
        self._holders = profile, mig = Profile(nvml, site.clock), MigInstances(nvml, site.clock)
        self._parts: tuple[Part, ...] = (
            Memory(nvml),
            Throttling(nvml, self.history.throttle),
            NvLinks(nvml, self.history),
            mig,
            *rates,
            *processes,
            profile,
        )
        rows = {**ROWS, **(THROUGHPUT if settings.pcie_throughput else {})}
        self._rows = {tier: {name: row for name, row in rows.items() if row.tier is tier} for tier in Tier}
        self._periods = {
            Tier.SLOW: settings.slow_interval_seconds,
            Tier.MEDIUM: settings.medium_interval_seconds,
            Tier.FAST: 0.0,
        }
        self._due = dict.fromkeys(Tier, -inf)
        self._answers: dict[Tier, dict[str, Answer]] = {tier: {} for tier in Tier}
        self._last: dict[str, Any] = {}  # the fields of the last reading

    @property
    def identity(self) -> GpuReading:
        """Who this is, without a reading."""
        return GpuReading(**self._identity, at=0.0, up=False)

    def read(self, at: float) -> GpuReading:
        """One cycle. ``at`` is its start."""
        was_split = self._answers[Tier.MEDIUM].get("mig_mode")
        for tier in Tier:
            if at >= self._due[tier]:
                self._answers[tier] = self._ask(tier, at)
                self._due[tier] = at + self._periods[tier]
        if was_split is not None and was_split != self._answers[Tier.MEDIUM].get("mig_mode"):
            self._nvml.forget()  # another card than before: all of it anew in the next cycle
            self._due = dict.fromkeys(Tier, at)
        return self._reading(at, {name: answer for tier in Tier for name, answer in self._answers[tier].items()})

    def close(self) -> None:
        """Give back what the library holds for this object."""
        for part in self._holders:
            part.close()

    def recovery_action(self) -> str | None:
        """What the driver asks for, of a GPU that may be past answering anything else."""
        row = ROWS[RECOVERY]
        assert row.field is not None
        try:
            answer = self._nvml.ask_fields((row.field,))[row.field]
        except (GpuDownError, LibraryDownError):
            return None
        action = None if isinstance(answer, Reason) else row.take(answer)
        return None if isinstance(action, Reason) else action

    def _reading(self, at: float, answers: Mapping[str, Answer]) -> GpuReading:
        reading = {
            **self._identity,
            **_nested({field: answer for field, answer in answers.items() if not isinstance(answer, Reason)}),
            "unavailable": {field: str(answer) for field, answer in answers.items() if isinstance(answer, Reason)},
            "numa_node": self._numa_node,
            "missed_cycles_total": self.history.missed_cycles,
            "invalid_samples_total": dict(self.history.invalid),
        }
        # What did not change stays the same object: a window holds hundreds of readings of each GPU.
        self._last = {f: last if (last := self._last.get(f)) == value else value for f, value in reading.items()}
        return GpuReading(at=at, last_success_at=at, **self._last)

    def _ask(self, tier: Tier, at: float) -> dict[str, Answer]:
        """Everything of one tier: one batch of field values, then the calls."""
        split = self._answers[Tier.MEDIUM].get("mig_mode") is True
        guest = self._answers[Tier.SLOW].get("virtualization") == "vgpu"
        asked = self._rows[tier]
        answers: dict[str, Answer] = dict.fromkeys(asked, Reason.NOT_SUPPORTED)
        if split or guest:
            asked = {n: r for n, r in asked.items() if (r.with_mig or not split) and (r.in_guests or not guest)}
        parts = [part for part in self._parts if part.tier is tier]
        before = self._nvml.answers
        fields = self._nvml.ask_fields(
            [*(row.field for row in asked.values() if row.field is not None), *(f for p in parts for f in p.fields)]
        )
        calls: dict[tuple[object, ...], Answer] = {}  # one call may answer several rows
        answers |= {name: self._answer(name, row, fields, calls) for name, row in asked.items()}
        so_far = {name: answer for slower in Tier for name, answer in self._answers[slower].items()} | answers
        for part in parts:
            told = part.read(at, fields, so_far)  # two may know the same; a value is better than a reason
            answers |= {
                n: a for n, a in told.items() if not isinstance(a, Reason) or isinstance(answers.get(n, a), Reason)
            }
        if tier is Tier.FAST and before == self._nvml.answers and Reason.DRIVER_ERROR in answers.values():
            raise GpuDownError(GpuState.UNKNOWN, f"GPU {self._nvml.index}: every call fails with an error; check dmesg")
        for name, answer in answers.items():
            if answer is Reason.INVALID:
                self.history.drop(name)
        return answers

    def _answer(self, name: str, row: Row, fields: FieldAnswers, calls: dict[tuple[object, ...], Answer]) -> Answer:
        raw: Any = Reason.NOT_SUPPORTED if row.field is None else fields[row.field]
        if raw is Reason.NOT_SUPPORTED and row.calls:
            key = (row.calls, row.args)
            if key not in calls:
                calls[key] = self._nvml.ask_first(row.calls, *row.args)
            raw = calls[key]
            if row.part is not None and not isinstance(raw, Reason):
                raw = getattr(raw, row.part) if isinstance(row.part, str) else raw[row.part]
        if isinstance(raw, Reason):
            return raw
        return row.take(self.history.unwrap(name, int(raw)) if row.wraps else raw)


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """``{"clock_hertz.sm": 1}`` as ``{"clock_hertz": {"sm": 1}}``."""
    nested: dict[str, Any] = {}
    for name, value in values.items():
        field, _, key = name.partition(".")
        if key:
            nested.setdefault(field, {})[key] = value
        else:
            nested[field] = value
    return nested
