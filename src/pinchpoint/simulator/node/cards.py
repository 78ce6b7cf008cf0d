"""The cards under a simulated engine: what NVML would say of them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from uuid import UUID

from pinchpoint.physics import Gpu
from pinchpoint.simulator.engine.loop import Work
from pinchpoint.snapshot import GpuReading, ThrottleReason

_REPORTED = (
    ThrottleReason.SW_POWER_CAP,
    ThrottleReason.HW_SLOWDOWN,
    ThrottleReason.HW_THERMAL_SLOWDOWN,
    ThrottleReason.HW_POWER_BRAKE,
    ThrottleReason.SW_THERMAL_SLOWDOWN,
)
_WARMING_SECONDS = 12.0  # time constant of a heat sink under forced air


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFault:
    """A card whose cooling fails: clocks fall to ``clock_ratio`` of boost, and it says why."""

    clock_ratio: float
    temperature_celsius: float = 91.0
    reasons: tuple[ThrottleReason, ...] = (ThrottleReason.HW_SLOWDOWN, ThrottleReason.HW_THERMAL_SLOWDOWN)


class SimulatedCard:
    """One GPU. ``advance`` integrates what its engine did; ``reading`` is the state after the last ``advance``."""

    def __init__(self, index: str, gpu: Gpu, reserved_by_engine_bytes: float, random: Random) -> None:
        self.index, self.gpu, self._random = index, gpu, random
        self.uuid = f"GPU-{UUID(int=random.getrandbits(128))}"
        self._bus = f"00000000:{int(index) * 16 + 0x18:02X}:00.0"
        self._memory_used = float(round(reserved_by_engine_bytes))
        self._idle_watts = gpu.tdp_watts * random.uniform(0.10, 0.13)
        self._ambient_celsius = random.uniform(27.0, 31.0)
        self._celsius = self._ambient_celsius + 6.0
        self._joules = random.uniform(1e8, 9e8)
        self._throttled = dict.fromkeys(_REPORTED, 0.0)
        self._watts = self._idle_watts
        self._busy = self._tensor = self._dram = 0.0
        self.fault: CardFault | None = None

    @property
    def clock_ratio(self) -> float:
        return self.fault.clock_ratio if self.fault is not None else 1.0

    def advance(self, seconds: float, done: Work) -> None:
        """``done`` is what the engine's rank on this card did in the last ``seconds``."""
        jitter = self._random.uniform(0.985, 1.015)
        self._busy = min(1.0, done.gpu_seconds / seconds)
        # The pipe's duty is what it did over what it could have done at its present clock.
        self._tensor = min(1.0, done.flops / seconds / (self.gpu.bf16_flops * self.clock_ratio) * jitter)
        self._dram = min(1.0, done.moved_bytes / seconds / self.gpu.bandwidth_bytes_per_second * jitter)
        load = min(1.0, 0.18 * self._busy + 1.2 * self._tensor + 0.55 * self._dram) * self.clock_ratio
        self._watts = self._idle_watts + (self.gpu.tdp_watts - self._idle_watts) * load * jitter
        aim = self._ambient_celsius + 45.0 * self._watts / self.gpu.tdp_watts
        if self.fault is not None:
            aim = self.fault.temperature_celsius
            for reason in self.fault.reasons:
                self._throttled[reason] += seconds
        self._celsius += (aim - self._celsius) * min(1.0, seconds / _WARMING_SECONDS)
        self._joules += self._watts * seconds

    def reading(self, at: float) -> GpuReading:
        """Used memory is flat by design: vLLM reserves its pool at start, whatever the load."""
        active = self.fault.reasons if self.fault is not None else ()
        clock = self.gpu.boost_clock_hertz * self.clock_ratio if self._busy > 0 else self.gpu.boost_clock_hertz * 0.175
        return GpuReading(
            gpu=self.index,
            uuid=self.uuid,
            at=at,
            name=self.gpu.name,
            pci_bus_id=self._bus,
            driver="580.95.05",
            utilization_ratio=round(self._busy, 2),
            memory_controller_utilization_ratio=round(self._dram, 2),
            memory_total_bytes=self.gpu.memory_bytes,
            memory_used_bytes=self._memory_used,
            memory_reserved_bytes=float(600 * 2**20),
            sm_active_ratio=round(self._busy * (0.72 + 0.2 * self._tensor), 3),
            tensor_active_ratio=round(self._tensor, 3),
            dram_active_ratio=round(self._dram, 3),
            power_watts=round(self._watts, 1),
            power_limit_watts=float(self.gpu.tdp_watts),
            energy_joules_total=self._joules,
            temperature_celsius={"gpu": float(round(self._celsius)), "memory": float(round(self._celsius + 9))},
            clock_hertz={"sm": clock, "graphics": clock},
            clock_max_hertz={"sm": self.gpu.boost_clock_hertz, "graphics": self.gpu.boost_clock_hertz},
            throttle_active={reason.value: float(reason in active) for reason in _REPORTED},
            throttle_seconds_total={reason.value: total for reason, total in self._throttled.items()},
            pcie_link_generation=5.0,
            pcie_link_generation_max=5.0,
            pcie_link_width=16.0,
            pcie_link_width_max=16.0,
            pcie_receive_bytes_per_second=round(2e5 + 4e6 * self._busy),
            pcie_transmit_bytes_per_second=round(1e5 + 2e6 * self._busy),
            ecc_errors_total={"correctable": 0.0, "uncorrectable": 0.0},
        )
