"""The table: which NVML answer fills which field of a reading, in which unit and range, and how often it is asked for.

A value outside its range is dropped, never clamped: drivers answer blanks such as 2^32-1 or 808334905 %.
Ids of fields and meanings of numbers: NVML API reference, ``nvmlFieldValue_t`` and the enums named here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pinchpoint.snapshot import Reason

Answer = Any  # a value in base units, or the Reason why there is none
Take = Callable[[Any], Answer]


class Tier(Enum):
    """How often; slower ones are asked first, for the faster depend on what they say."""

    SLOW = "slow"
    MEDIUM = "medium"
    FAST = "fast"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A field value of the tier's batch, or else ``calls``: names of one thing, newest first.

    ``part`` is what of the answer is meant: an attribute or an index. ``wraps``: a counter of 32 bits.
    """

    take: Take
    tier: Tier = Tier.FAST
    field: int | None = None
    calls: tuple[str, ...] = ()
    args: tuple[int, ...] = ()
    part: str | int | None = None
    wraps: bool = False
    with_mig: bool = True  # false: means nothing while the GPU is split
    in_guests: bool = True  # false: each question writes a line to the kernel log of a virtual machine


def number(scale: float = 1.0, highest: float = 1.0, above: float = -1.0, none: float | None = None) -> Take:
    """In base units ``raw * scale``, more than ``above``, at most ``highest``; a raw ``none`` means there is none."""

    def take(raw: float) -> Answer:
        if raw == none:
            return Reason.NOT_SUPPORTED
        value = round(raw * scale, 9)  # 0.41, not 0.41000000000000003
        return value if above < value <= highest and value >= 0 else Reason.INVALID

    return take


def named(names: Mapping[int, str]) -> Take:
    """The name of a number; one that is newer than this table is told as it is."""
    return lambda raw: names.get(int(raw), f"code_{int(raw)}") if 0 <= raw < 100 else Reason.INVALID


def flag(raw: float) -> Answer:
    """Off or on."""
    return bool(raw) if raw in (0, 1) else Reason.INVALID


_DOMAINS = {"graphics": 0, "sm": 1, "memory": 2, "video": 3}  # nvmlClockType_t
_ARCHITECTURES = {  # NVML_DEVICE_ARCH_*
    2: "kepler",
    3: "maxwell",
    4: "pascal",
    5: "volta",
    6: "turing",
    7: "ampere",
    8: "ada",
    9: "hopper",
    10: "blackwell",
    13: "rubin",
}
_VIRTUALIZATION = {
    0: "none",
    1: "passthrough",
    2: "vgpu",
    3: "host_vgpu",
    4: "host_vsga",
}  # nvmlGpuVirtualizationMode_t
_RECOVERY_ACTIONS = {  # nvmlDeviceGpuRecoveryAction_t
    0: "none",
    1: "gpu_reset",
    2: "node_reboot",
    3: "drain_p2p",
    4: "drain_and_reset",
    5: "recover_imex_domain",
    6: "bus_reset",
    7: "system_reboot",
}
_percent, _milliwatts, _megahertz = number(0.01), number(1e-3, 1e4), number(1e6, 1e10)
_positive_milliwatts, _positive_megahertz = number(1e-3, 1e4, above=0), number(1e6, 1e10, above=0)
_errors, _few = number(highest=1e12), number(highest=1e5)
_generation, _lanes = number(highest=10, above=0), number(highest=32, above=0)

# A dotted name is an entry of a field that is a mapping.
ROWS: Mapping[str, Row] = {
    "virtualization": Row(tier=Tier.SLOW, calls=("nvmlDeviceGetVirtualizationMode",), take=named(_VIRTUALIZATION)),
    "architecture": Row(tier=Tier.SLOW, calls=("nvmlDeviceGetArchitecture",), take=named(_ARCHITECTURES)),
    "power_limit_default_watts": Row(
        tier=Tier.SLOW, calls=("nvmlDeviceGetPowerManagementDefaultLimit",), take=_positive_milliwatts
    ),
    **{
        f"clock_max_hertz.{domain}": Row(
            tier=Tier.SLOW, calls=("nvmlDeviceGetMaxClockInfo",), args=(code,), take=_positive_megahertz
        )
        for domain, code in _DOMAINS.items()
    },
    "pcie_link_generation_max": Row(tier=Tier.SLOW, calls=("nvmlDeviceGetMaxPcieLinkGeneration",), take=_generation),
    "pcie_link_width_max": Row(tier=Tier.SLOW, calls=("nvmlDeviceGetMaxPcieLinkWidth",), take=_lanes),
    "c2c_links": Row(tier=Tier.SLOW, field=170, take=number(highest=64)),  # NVML_FI_DEV_C2C_LINK_COUNT
    "mig_mode": Row(tier=Tier.MEDIUM, calls=("nvmlDeviceGetMigMode",), part=0, take=flag),
    "ecc_mode": Row(tier=Tier.MEDIUM, calls=("nvmlDeviceGetEccMode",), part=0, take=flag),
    "persistence_mode": Row(tier=Tier.MEDIUM, calls=("nvmlDeviceGetPersistenceMode",), take=flag),
    "ecc_errors_total.correctable": Row(
        tier=Tier.MEDIUM, field=3, calls=("nvmlDeviceGetTotalEccErrors",), args=(0, 0), take=_errors
    ),
    "ecc_errors_total.uncorrectable": Row(
        tier=Tier.MEDIUM, field=4, calls=("nvmlDeviceGetTotalEccErrors",), args=(1, 0), take=_errors
    ),
    **{
        f"remapped_rows.{kind}": Row(
            tier=Tier.MEDIUM,
            field=142 + place,  # NVML_FI_DEV_REMAPPED_*
            calls=("nvmlDeviceGetRemappedRows",),
            part=place,
            take=_few,
            in_guests=False,
        )
        for place, kind in enumerate(("correctable", "uncorrectable", "pending", "failure"))
    },
    **{
        f"retired_pages.{cause}": Row(tier=Tier.MEDIUM, field=29 + place, take=_few)  # NVML_FI_DEV_RETIRED_*
        for place, cause in enumerate(("single_bit", "double_bit", "pending"))
    },
    "recovery_action": Row(tier=Tier.MEDIUM, field=230, take=named(_RECOVERY_ACTIONS)),
    "pcie_replay_total": Row(
        tier=Tier.MEDIUM, field=94, calls=("nvmlDeviceGetPcieReplayCounter",), wraps=True, take=_errors
    ),
    "utilization_ratio": Row(calls=("nvmlDeviceGetUtilizationRates",), part="gpu", take=_percent, with_mig=False),
    "memory_controller_utilization_ratio": Row(
        calls=("nvmlDeviceGetUtilizationRates",), part="memory", take=_percent, with_mig=False
    ),
    "power_watts": Row(calls=("nvmlDeviceGetPowerUsage",), take=_milliwatts),
    "power_limit_watts": Row(calls=("nvmlDeviceGetEnforcedPowerLimit",), take=_positive_milliwatts),
    "energy_joules_total": Row(calls=("nvmlDeviceGetTotalEnergyConsumption",), take=number(1e-3, 1e13)),
    "temperature_celsius.gpu": Row(
        calls=("nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature"), args=(0,), take=number(highest=150, above=0)
    ),
    "temperature_celsius.memory": Row(field=82, take=number(highest=150, none=0)),  # 0 on cards without HBM
    **{
        f"clock_hertz.{domain}": Row(calls=("nvmlDeviceGetClockInfo",), args=(code,), take=_megahertz)
        for domain, code in _DOMAINS.items()
    },
    # As often as the utilisation, for it is judged under load only: an idle GPU lets its link down.
    "pcie_link_generation": Row(calls=("nvmlDeviceGetCurrPcieLinkGeneration",), take=_generation),
    "pcie_link_width": Row(calls=("nvmlDeviceGetCurrPcieLinkWidth",), take=_lanes),
}
# In the place of the counters' rates, when asked for: each call blocks its thread for 20 ms.
THROUGHPUT: Mapping[str, Row] = {
    f"pcie_{direction}_bytes_per_second": Row(
        calls=("nvmlDeviceGetPcieThroughput",), args=(code,), take=number(1e3, 1e12), in_guests=False
    )
    for direction, code in (("transmit", 0), ("receive", 1))  # nvmlPcieUtilCounter_t; KB/s
}
