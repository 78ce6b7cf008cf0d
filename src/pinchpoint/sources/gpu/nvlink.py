"""A GPU's NVLinks: which are up, what has gone over them, what went wrong. Facts: one may be meant to be down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pinchpoint.snapshot import NvLink, Reason
from pinchpoint.sources.gpu.history import History, Remote
from pinchpoint.sources.gpu.nvml import EVERY_LINK, FieldAnswers, NvmlGpu
from pinchpoint.sources.gpu.rows import Answer, Tier

MAX_LINKS = 36  # NVML_NVLINK_MAX_LINKS
LINK_COUNT_FIELD = 91
VERSIONS: Mapping[int, float] = {1: 1.0, 2: 2.0, 3: 2.2, 4: 3.0, 5: 3.1, 6: 4.0, 7: 5.0, 8: 6.0}  # nvmlNvlinkVersion_t

# NVML_FI_DEV_NVLINK_*: what there is, else the next. Scale to bytes; the older counters are in KiB.
_KIBIBYTES, _BYTES = 1024.0, 1.0
TRANSMITTED = ((138, _KIBIBYTES), (202, _BYTES))
RECEIVED = ((139, _KIBIBYTES), (204, _BYTES))
ERRORS: Mapping[str, tuple[int, ...]] = {
    "replay": (161,),
    "recovery": (162, 215),
    "crc": (163,),
    "recovery_failed": (214,),
    "malformed_packet": (206,),
    "buffer_overrun": (207,),
    "receive": (208,),
    "receive_remote": (209,),
    "receive_general": (210,),
    "link_integrity": (211,),
    "transmit_discard": (212,),
    "symbol": (221,),
}
LINK_FIELDS = (
    *(field_id for field_id, _ in (*TRANSMITTED, *RECEIVED)),
    *(field_id for ids in ERRORS.values() for field_id in ids),
)
OLD_ERRORS: Mapping[str, int] = {"replay": 0, "recovery": 1, "crc": 2, "crc_data": 3}  # nvmlNvLinkErrorCounter_t
_HIGHEST_COUNT = 2.0**60  # beyond it a blank

Fields = Mapping[tuple[int, int], float | Reason]


class NvLinks:
    """One GPU's links. What is at their other ends is in its history: another thread finds that out."""

    tier = Tier.MEDIUM
    fields = (LINK_COUNT_FIELD,)

    def __init__(self, nvml: NvmlGpu, history: History) -> None:
        self._nvml, self._history = nvml, history
        self._versions: dict[int, float] = {}
        self._up: list[bool | None] = []
        self._told_by: dict[tuple[int, int], int] = {}  # (first of several counters, link) -> the one that answers

    def read(self, _at: float, fields: FieldAnswers, _so_far: Mapping[str, Answer]) -> dict[str, Answer]:
        """The links, and what went over all of them."""
        count = count_links(self._nvml, fields[LINK_COUNT_FIELD])
        if not count:
            names = ("nvlinks", "nvlink_receive_bytes_total", "nvlink_transmit_bytes_total")
            return dict.fromkeys(names, Reason.NOT_SUPPORTED)
        before, self._up = self._up, [is_up(self._nvml, link) for link in range(count)]
        if any(now and was is False for was, now in zip(before, self._up, strict=False)):
            self._nvml.forget()  # a link that came up may tell what it refused to tell before
        scopes = (*range(count), EVERY_LINK)
        totals = [(field_id, EVERY_LINK) for field_id, _ in (*TRANSMITTED, *RECEIVED)]
        each = [(field_id, link) for link in range(count) for field_id in LINK_FIELDS]
        counts = self._nvml.ask_fields([*each, *totals])
        received = {scope: self._counted(counts, RECEIVED, scope) for scope in scopes}
        transmitted = {scope: self._counted(counts, TRANSMITTED, scope) for scope in scopes}
        remotes = self._history.remotes
        return {
            "nvlinks": tuple(
                self._link(link, counts, _known(received[link]), _known(transmitted[link]), remotes.get(link, Remote()))
                for link in range(count)
            ),
            "nvlink_receive_bytes_total": received[EVERY_LINK],
            "nvlink_transmit_bytes_total": transmitted[EVERY_LINK],
        }

    def _link(
        self, link: int, fields: Fields, received: float | None, transmitted: float | None, remote: Remote
    ) -> NvLink:
        return NvLink(
            link=str(link),
            up=self._up[link],
            version=self._version(link),
            remote=remote.kind,
            remote_pci_bus_id=remote.pci_bus_id,
            receive_bytes_total=received,
            transmit_bytes_total=transmitted,
            errors_total=self._errors(link, fields),
        )

    def _version(self, link: int) -> float | None:
        if link not in self._versions:
            code = self._nvml.ask("nvmlDeviceGetNvLinkVersion", link)
            if code not in VERSIONS:
                return None
            self._versions[link] = VERSIONS[code]
        return self._versions[link]

    def _errors(self, link: int, fields: Fields) -> dict[str, float]:
        found = {kind: self._counted(fields, [(field, 1.0) for field in ids], link) for kind, ids in ERRORS.items()}
        if all(isinstance(found[kind], Reason) for kind in ("replay", "recovery", "crc")):
            found |= {
                kind: self._nvml.ask("nvmlDeviceGetNvLinkErrorCounter", link, n) for kind, n in OLD_ERRORS.items()
            }
        return {kind: float(count) for kind, count in found.items() if not isinstance(count, Reason)}

    def _counted(self, fields: Fields, ids: Sequence[tuple[int, float]], scope: int) -> float | Reason:
        """The first of several counters that has an answer, in its unit; else why the first has none.

        Once one has answered it alone counts: another counts otherwise, so an error would look like a leap.
        """
        key = ids[0][0], scope
        told_by = self._told_by.get(key)
        for field_id, scale in ids:
            raw = fields[field_id, scope]
            if told_by not in (None, field_id) or isinstance(raw, Reason):
                continue
            self._told_by[key] = field_id
            return raw * scale if 0 <= raw <= _HIGHEST_COUNT else Reason.INVALID
        reason = fields[told_by or ids[0][0], scope]
        return reason if isinstance(reason, Reason) else Reason.INVALID


def count_links(nvml: NvmlGpu, told: float | Reason) -> int:
    """How many links the GPU has, up or down; ``told`` is the answer of ``LINK_COUNT_FIELD``.

    Where the driver doesn't say, asking ends at the first link that is none: past it the answer is NOT_SUPPORTED on
    some GPUs and INVALID_ARGUMENT on others.
    """
    if not isinstance(told, Reason):
        return int(told) if 0 <= told <= MAX_LINKS else 0
    links = 0
    while links < MAX_LINKS and not isinstance(nvml.ask("nvmlDeviceGetNvLinkState", links), Reason):
        links += 1
    return links


def is_up(nvml: NvmlGpu, link: int) -> bool | None:
    """Whether a link is active; ``None`` when the driver can't say."""
    state = nvml.ask("nvmlDeviceGetNvLinkState", link)
    return None if isinstance(state, Reason) else bool(state)


def _known(value: float | Reason) -> float | None:
    return None if isinstance(value, Reason) else value
