"""The cards under a simulated engine: what NVML would say of them."""

from __future__ import annotations

from random import Random
from uuid import UUID

from pinchpoint.physics import tensor_peak_flops
from pinchpoint.simulator.engine.spec import EngineSpec
from pinchpoint.simulator.engine.work import Work
from pinchpoint.simulator.world import Throttle
from pinchpoint.snapshot import GpuReading, GpuState, ThrottleReason

_REPORTED = (
    ThrottleReason.SW_POWER_CAP,
    ThrottleReason.HW_SLOWDOWN,
    ThrottleReason.HW_THERMAL_SLOWDOWN,
    ThrottleReason.HW_POWER_BRAKE,
    ThrottleReason.SW_THERMAL_SLOWDOWN,
)
_CAPPED_LOAD = 0.97  # of its power range, where the limit is felt
_NCCL_SMS = 0.2  # share of the SMs that an all-reduce occupies: a block for each of at most 32 channels
_ASLEEP_SHARE = 0.04  # of its memory that an engine keeps in level 1 sleep: context and graphs
_WARMING_SECONDS = 12.0  # time constant of a heat sink under forced air
_RESERVED_BYTES = float(600 * 2**20)  # by the driver


class SimulatedCard:
    """One GPU. ``advance`` integrates what its engine did; ``reading`` is the state after the last ``advance``.

    Set from outside: ``throttle``, what holds it back now; ``neighbour_bytes``, what another process has of its memory;
    ``lost``, off the bus; ``asleep`` and ``dead``, its engine.
    """

    def __init__(self, index: str, spec: EngineSpec, random: Random) -> None:
        gpu = spec.gpu
        self.index, self._spec, self._gpu, self._random = index, spec, gpu, random
        self.uuid = f"GPU-{UUID(int=random.getrandbits(128))}"
        self._bus = f"00000000:{(int(index) * 16 + 0x18) % 256:02X}:00.0"
        self._peak_flops = tensor_peak_flops(gpu, spec.quantization, spec.model_config)
        self.pool_bytes = float(round(gpu.memory_bytes * spec.gpu_memory_utilization * random.uniform(0.99, 1.01)))
        self._idle_watts = gpu.tdp_watts * random.uniform(0.10, 0.13)
        self._ambient_celsius = random.uniform(27.0, 31.0)
        self._celsius = self._ambient_celsius + 6.0
        self._joules = random.uniform(1e8, 9e8)
        self._nvlink_bytes = random.uniform(1e12, 9e12)
        self._throttled = dict.fromkeys(_REPORTED, 0.0)
        self._reasons: tuple[ThrottleReason, ...] = ()
        self._watts = self._idle_watts
        self._busy = self._computing = self._tensor = self._dram = self._pcie = self._nvlink = 0.0
        self._clock = 1.0  # over its boost clock
        self.throttle: Throttle | None = None
        self.neighbour_bytes = 0.0
        self.lost = self.asleep = self.dead = False

    @property
    def clock_ratio(self) -> float:
        return self.throttle.clock_ratio if self.throttle is not None else 1.0

    @property
    def free_bytes(self) -> float:
        """What neighbours could take before the engine finds none."""
        return self._gpu.memory_bytes - _RESERVED_BYTES - self.pool_bytes - self.neighbour_bytes

    def advance(self, seconds: float, done: Work) -> None:
        """``done`` is what the engine's rank on this card did in the last ``seconds``.

        A kernel that waits in an all-reduce is resident and draws little: busy by NVML's word, and cool. At its power
        limit a card lowers its clock a little, which is how it is meant to be: the efficiencies hold for that clock.
        """
        jitter = self._random.uniform(0.985, 1.015)
        self._busy = min(1.0, done.gpu_seconds / seconds)
        self._computing = max(0.0, self._busy - done.communication_seconds / seconds)
        # The pipe's duty is what it did over what it could have done at its present clock.
        self._tensor = min(1.0, done.flops / seconds / (self._peak_flops * self.clock_ratio) * jitter)
        self._dram = min(1.0, done.moved_bytes / seconds / self._gpu.bandwidth_bytes_per_second * jitter)
        self._pcie = done.pcie_communication_bytes / seconds
        self._nvlink = done.nvlink_communication_bytes / seconds
        self._nvlink_bytes += done.nvlink_communication_bytes
        waiting = self._busy - self._computing
        load = self.clock_ratio * (0.18 * self._computing + 0.1 * waiting + 1.6 * self._tensor + 0.55 * self._dram)
        capped = load > _CAPPED_LOAD
        drawn = 1.0 if capped else load * min(1.0, jitter)
        self._watts = self._idle_watts + (self._gpu.tdp_watts - self._idle_watts) * drawn
        aim = self._ambient_celsius + 45.0 * self._watts / self._gpu.tdp_watts
        self._reasons = (ThrottleReason.SW_POWER_CAP,) if capped else ()
        self._clock = self.clock_ratio * (_CAPPED_LOAD / load if capped else 1.0)
        if self.throttle is not None:
            aim = max(aim, self.throttle.temperature_celsius)
            self._reasons = self.throttle.reasons
        for reason in self._reasons:
            self._throttled[reason] = self._throttled.get(reason, 0.0) + seconds
        self._celsius += (aim - self._celsius) * min(1.0, seconds / _WARMING_SECONDS)
        self._joules += self._watts * seconds

    def reading(self, at: float) -> GpuReading:
        """While its engine lives, used memory is flat: vLLM reserves its pool at start, whatever the load."""
        gpu, spec = self._gpu, self._spec
        if self.lost:
            detail = f"GPU {self.index}: is lost (fallen off the bus); reset the node"
            return GpuReading(gpu=self.index, uuid=self.uuid, at=at, up=False, state=GpuState.LOST, detail=detail)
        boost = gpu.boost_clock_hertz
        clock = boost * (self._clock if self._busy > 0 else 0.175)
        held = 0.0 if self.dead else self.pool_bytes * (_ASLEEP_SHARE if self.asleep else 1.0)
        waiting = self._busy - self._computing
        sm_active = self._computing * (0.72 + 0.2 * self._tensor) + _NCCL_SMS * waiting
        told, profiled = not spec.mig, gpu.gpm
        over_nvlink = spec.tensor_parallel_size > 1 and spec.link.startswith("NV")
        lanes = float(gpu.pcie_lanes)
        return GpuReading(
            gpu=self.index,
            uuid=self.uuid,
            at=at,
            name=gpu.name,
            pci_bus_id=self._bus,
            driver="580.95.05",
            utilization_ratio=round(self._busy, 2) if told else None,
            memory_controller_utilization_ratio=round(self._dram, 2) if told else None,
            memory_total_bytes=gpu.memory_bytes,
            memory_used_bytes=held + self.neighbour_bytes,
            memory_reserved_bytes=_RESERVED_BYTES,
            sm_active_ratio=round(sm_active, 3) if profiled else None,
            tensor_active_ratio=round(self._tensor, 3) if profiled else None,
            dram_active_ratio=round(self._dram, 3) if profiled else None,
            power_watts=round(self._watts, 1),
            power_limit_watts=float(gpu.tdp_watts),
            energy_joules_total=self._joules,
            temperature_celsius={"gpu": float(round(self._celsius)), "memory": float(round(self._celsius + 9))},
            clock_hertz={"sm": clock, "graphics": clock},
            clock_max_hertz={"sm": boost, "graphics": boost},
            throttle_active={reason.value: float(reason in self._reasons) for reason in _REPORTED},
            throttle_seconds_total={reason.value: self._throttled[reason] for reason in _REPORTED},
            pcie_link_generation=float(gpu.pcie_generation),
            pcie_link_generation_max=float(gpu.pcie_generation),
            pcie_link_width=lanes,
            pcie_link_width_max=lanes,
            pcie_receive_bytes_per_second=round(2e5 + 4e6 * self._busy + self._pcie),
            pcie_transmit_bytes_per_second=round(1e5 + 2e6 * self._busy + self._pcie),
            nvlink_receive_bytes_total=self._nvlink_bytes if over_nvlink else None,
            nvlink_transmit_bytes_total=self._nvlink_bytes if over_nvlink else None,
            nvlink_receive_bytes_per_second=round(self._nvlink) if over_nvlink else None,
            nvlink_transmit_bytes_per_second=round(self._nvlink) if over_nvlink else None,
            ecc_errors_total={"correctable": 0.0, "uncorrectable": 0.0},
        )
