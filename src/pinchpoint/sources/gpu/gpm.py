"""What a GPU's units really do, by GPM (Hopper and newer): the share of SMs, tensor cores and memory that is busy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pinchpoint.snapshot import Reason
from pinchpoint.sources.gpu.nvml import FieldAnswers, NvmlGpu
from pinchpoint.sources.gpu.nvml_gpm import GpmSamples
from pinchpoint.sources.gpu.rows import Answer, Tier

SHORTEST_SECONDS = 0.1  # nvml.h: samples that are closer make no metric
STUCK_SECONDS = 10.0  # far beyond the second over which NVML's own utilisation is taken
_LOOK_AGAIN_SECONDS = 3600.0

_PERCENT, _MEBIBYTES = (0.01, 1.0), (2.0**20, 1e13)  # scale, highest
METRICS: Mapping[str, tuple[int, tuple[float, float]]] = {  # nvmlGpmMetricId_t
    "sm_active_ratio": (2, _PERCENT),
    "sm_occupancy_ratio": (3, _PERCENT),
    "tensor_active_ratio": (5, _PERCENT),
    "dram_active_ratio": (10, _PERCENT),
    "pcie_transmit_bytes_per_second": (20, _MEBIBYTES),
    "pcie_receive_bytes_per_second": (21, _MEBIBYTES),
    "nvlink_receive_bytes_per_second": (60, _MEBIBYTES),
    "nvlink_transmit_bytes_per_second": (61, _MEBIBYTES),
}
IDS = tuple(metric_id for metric_id, _ in METRICS.values())

Answers = dict[str, float | Reason]


class Profile:
    """Profiles one GPU, or one GPU instance of it. Never sleeps: it measures since the time before.

    Counters can get stuck at zero (after an Xid, or after days): NVML calls the GPU busy without a break, and no SM is.
    Then ``stuck`` is true, the metrics are invalid until an SM shows work again, and every ``STUCK_SECONDS`` the
    samples are made anew.
    """

    tier = Tier.FAST
    fields = ()

    def __init__(self, nvml: NvmlGpu, clock: Callable[[], float], instance: int | None = None) -> None:
        self._samples, self._clock = GpmSamples(nvml, instance), clock
        self._refused: Reason | None = None
        self._look_again = 0.0
        self._supported = False
        self._taken_at: float | None = None
        self._answers: Answers = {}
        self._idle_sms_since: float | None = None
        self.stuck: bool | None = None  # None: can't be profiled

    def read(self, _at: float, _fields: FieldAnswers, so_far: Mapping[str, Answer]) -> dict[str, Answer]:
        """The metrics, and whether they are stuck."""
        metrics = self.measure(so_far["utilization_ratio"])
        return {**metrics, "profile_stuck": Reason.NOT_SUPPORTED if self.stuck is None else self.stuck}

    def measure(self, utilization_ratio: float | Reason = Reason.NOT_SUPPORTED) -> Answers:
        """Every field of ``METRICS``, since the last time. Raises GpuDownError and LibraryDownError."""
        now = self._clock()
        if not self._is_supported(now):
            return self._all(self._refused or Reason.NOT_SUPPORTED)
        if self._taken_at is not None and now - self._taken_at < SHORTEST_SECONDS:
            return self._answers
        if refused := self._samples.take():
            self._answers = self._all(refused)
            return self._answers
        self._taken_at = self._clock()
        self._answers = self._measured()
        self._mistrust(utilization_ratio, now)
        return self._answers

    def close(self) -> None:
        """Free the samples."""
        self._samples.close()
        self._taken_at = None

    def _is_supported(self, now: float) -> bool:
        if not self._supported and now >= self._look_again:
            answer = self._samples.supported()
            self._supported = answer is True
            self._refused = answer if isinstance(answer, Reason) else None
            final = answer in (False, Reason.NOT_SUPPORTED)
            self._look_again = now + (_LOOK_AGAIN_SECONDS if final else 0.0)
            self.stuck = False if self._supported else None
        return self._supported

    def _measured(self) -> Answers:
        raw = self._samples.metrics(IDS)
        return {field: _scaled(raw[metric_id], *unit) for field, (metric_id, unit) in METRICS.items()}

    def _mistrust(self, utilization: float | Reason, now: float) -> None:
        sm = self._answers["sm_active_ratio"]
        if isinstance(sm, Reason) or isinstance(utilization, Reason):
            return
        if sm > 0:
            self.stuck, self._idle_sms_since = False, None
        elif utilization == 0:
            self._idle_sms_since = None
        elif self._idle_sms_since is None:
            self._idle_sms_since = now
        elif now - self._idle_sms_since >= STUCK_SECONDS:
            self.stuck, self._idle_sms_since = True, now
            self.close()
        if self.stuck:
            self._answers = self._all(Reason.INVALID)

    def _all(self, reason: Reason) -> Answers:
        return dict.fromkeys(METRICS, reason)


def _scaled(raw: float | Reason, scale: float, highest: float) -> float | Reason:
    if isinstance(raw, Reason):
        return raw
    value = round(raw * scale, 6)
    return value if 0 <= value <= highest else Reason.INVALID
