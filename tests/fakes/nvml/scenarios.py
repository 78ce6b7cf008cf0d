"""Named nodes and mishaps for the fake driver. Each makes the node anew, so that one test can go through all of them.

Values are those of the cards' data sheets and of public ``nvidia-smi -q`` output. The codes that real cards answer
where a thing is not supported are known for a few platforms only; elsewhere it is NOT_SUPPORTED.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

from tests.fakes.nvml import FakeNvml

PIX, PXB, PHB, NODE, SYS = 10, 20, 30, 40, 50  # nvmlGpuTopologyLevel_t
MIG_CONFIG_CHANGE = 0x100  # nvmlEventMigConfigChange
OLD_DRIVER_LACKS = (  # symbols that came after the 470 branch
    "nvmlDeviceGetTemperatureV",
    "nvmlDeviceGetMarginTemperature",
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetSupportedClocksEventReasons",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvmlDeviceGetGpuFabricInfoV",
    "nvmlDeviceGetNumaNodeId",
    "nvmlDeviceGetAddressingMode",
    "nvmlGpmQueryDeviceSupport",
    "nvmlGpmSampleAlloc",
    "nvmlGpmSampleFree",
    "nvmlGpmSampleGet",
    "nvmlGpmMigSampleGet",
    "nvmlGpmMetricsGet",
)
NO_NVLINK = {"nvlinks": -1, "fabric_state": -1, "p2p.2": 5, **{f"field.{i}": -1 for i in (138, 139, 140, 141)}}
NO_ECC = {"ecc_mode": -1, "rows.correctable": -1, "rows.uncorrectable": -1, "rows.pending": -1, "rows.failure": -1}
NO_GPM = {"gpm": 0}


class Node:
    """What a scenario has made of the fake. ``step`` lets one cycle's worth of change happen, where there is any."""

    def __init__(self, fake: FakeNvml) -> None:
        self.fake = fake

    def step(self) -> None:
        """Nothing changes on its own here."""


def _card(facts: Mapping[str, object], gpu: int | str = "*") -> Iterator[str]:
    return (f"gpu {gpu} {key} {value}" for key, value in facts.items())


def _sockets(gpus: int, cores: int) -> Iterator[str]:
    """GPUs in equal halves on two sockets of ``cores`` cores."""
    for gpu in range(gpus):
        socket = gpu * 2 // gpus
        yield f"gpu {gpu} cpus {socket * cores}-{(socket + 1) * cores - 1}"
        yield f"gpu {gpu} memory_node {socket}"


def _addresses(buses: Sequence[str]) -> Iterator[str]:
    return (f"gpu {gpu} pci 00000000:{bus}:00.0" for gpu, bus in enumerate(buses))


H100 = {
    "name": "NVIDIA H100 80GB HBM3",
    "pci_device_id": 0x233010DE,
    "mem_total": 85520809984,
    "mem_reserved": 577175552,
    "bar1_total": 137438953472,
    "power": 71000,
    "clock.2": 2619,
    "clock_max.2": 2619,
    "temp": 31,
    "field.82": 41,
    "field.147": 18,
    "rows.max": 2560,
}


def h100x8_nvswitch(fake: FakeNvml) -> Node:
    """An HGX board: eight H100 SXM, 18 NVLinks each to four NVSwitches, two sockets."""
    links = (f"gpu * nvlink_pci@{link} 00000000:{5 + link % 4:02X}:00.0" for link in range(18))
    buses = ("1B", "43", "52", "61", "9D", "C3", "D1", "DF")
    fake.become("gpus 8", *_card(H100), *_addresses(buses), *_sockets(8, 56), *links)
    return Node(fake)


L40S = {
    "name": "NVIDIA L40S",
    "architecture": 8,
    "capability_major": 8,
    "capability_minor": 9,
    "pci_device_id": 0x26B910DE,
    "mem_total": 48305799168,
    "mem_reserved": 609222656,
    "power": 35000,
    "limit": 350000,
    "limit_default": 350000,
    "limit_min": 100000,
    "limit_max": 350000,
    "clock.0": 210,
    "clock.1": 210,
    "clock.2": 405,
    "clock_max.0": 2520,
    "clock_max.1": 2520,
    "clock_max.2": 9001,
    "clock_max.3": 1965,
    "pstate": 8,
    "pcie_gen": 1,  # idle: the link is slow until there is work
    "pcie_gen_max": 4,
    "pcie_gen_gpu_max": 4,
    "field.82": -1,
    "rows.max": 192,
    "mig": -1,
    **NO_NVLINK,
    **NO_GPM,
}


def l40s_x4_two_sockets(fake: FakeNvml) -> Node:
    """Four L40S on PCIe only: 0 and 1 behind one switch (PIX), 2 and 3 on one socket (NODE), the rest across (SYS)."""
    near = {(0, 1): PIX, (2, 3): NODE}
    pairs = []
    for one, other in combinations(range(4), 2):
        level = near.get((one, other), SYS)
        for gpu, peer in ((one, other), (other, one)):
            pairs.append(f"gpu {gpu} topo@{peer} {level}")
            pairs += [f"gpu {gpu} p2p.{index}@{peer} {int(level == SYS)}" for index in (0, 1, 3, 4)]
    fake.become("gpus 4", *_card(L40S), *_addresses(("16", "17", "98", "B8")), *_sockets(4, 32), *pairs)
    return Node(fake)


T4 = {
    "name": "Tesla T4",
    "architecture": 6,
    "capability_major": 7,
    "capability_minor": 5,
    "pci_device_id": 0x1EB810DE,
    "mem_total": 15843721216,
    "mem_reserved": 0,
    "power": 9900,
    "limit": 70000,
    "limit_default": 70000,
    "limit_min": 60000,
    "limit_max": 70000,
    "clock.0": 300,
    "clock.1": 300,
    "clock.2": 405,
    "clock_max.0": 1590,
    "clock_max.1": 1590,
    "clock_max.2": 5001,
    "clock_max.3": 1470,
    "pcie_gen": 1,
    "pcie_gen_max": 3,
    "pcie_gen_gpu_max": 3,
    "pstate": 8,
    "field.82": 0,  # no HBM, and yet an answer
    "retired.0": 0,
    "retired.1": 0,
    "retired_pending": 0,
    "mig": -1,
    "recovery_action": -1,
    **{f"rows.{what}": -1 for what in ("correctable", "uncorrectable", "pending", "failure", "max")},
    **{f"field.{i}": -1 for i in (*range(161, 184), 197, 198, 269, 270, 271)},
    **NO_NVLINK,
    **NO_GPM,
}


def t4_old_driver(fake: FakeNvml) -> Node:
    """A T4 under the 470 branch: whatever came later is missing from the library (``OLD_DRIVER_LACKS``)."""
    fake.become("gpus 1", "driver 470.256.02", "nvml 11.470.256.02", "cuda 11040", *_card(T4))
    fake.miss(*OLD_DRIVER_LACKS)
    return Node(fake)


class MigNode(Node):
    """GPU 0 is split, GPU 1 is not."""

    def __init__(self, fake: FakeNvml) -> None:
        super().__init__(fake)
        fake.become("gpus 2", *_card(H100), "gpu 0 mig 1")
        self._turn = 0
        self.slice(*((slot, 7 + slot, 1, 10) for slot in range(7)))

    def slice(self, *instances: tuple[int, int, int, int]) -> None:
        """Instances as (slot, GPU instance id, slices, GB), in place of those there are."""
        lines = []
        for slot, gi, slices, gigabytes in instances:
            facts = {
                "uuid": f"MIG-{slot:08x}-{gi:04x}-5000-8000-{slices:012x}",
                "name": f"NVIDIA H100 80GB HBM3 MIG {slices}g.{gigabytes}gb",
                "gi": gi,
                "ci": 0,
                "slices": slices,
                "sms": 16 * slices,
                "mem_total": gigabytes * 1033 << 20,
                "mem_reserved": 0,
                "mem_used": 38 << 20,
                **{f"gpm.{metric}": 0 for metric in (1, 2, 3, 5, 10)},
            }
            lines += _card({f"mig.{slot}.{key}": value for key, value in facts.items()}, gpu=0)
        self.fake.replace("gpu 0 mig.", *lines)

    def reconfigure(self) -> None:
        """Seven small instances become two, with empty slots between them, or the other way round."""
        self._turn += 1
        self.slice()  # they are destroyed first
        if self._turn % 2:
            self.slice((0, 1, 4, 40), (3, 2, 3, 40))
        else:
            self.slice(*((slot, 7 + slot, 1, 10) for slot in range(7)))
        self.fake.replace("event ")
        self.fake.event(0, 0, MIG_CONFIG_CHANGE)

    step = reconfigure


def mig_7x1g(fake: FakeNvml) -> MigNode:
    """Two H100, the first in seven instances 1g.10gb. Handles of instances that are gone answer INVALID_ARGUMENT."""
    return MigNode(fake)


def gb200_18_links(fake: FakeNvml) -> Node:
    """A GB200 tray: four Blackwell GPUs that are NUMA nodes; the links after the last answer INVALID_ARGUMENT."""
    facts = {
        "name": "NVIDIA GB200",
        "architecture": 10,
        "capability_major": 10,
        "pci_device_id": 0x294110DE,
        "mem_total": 198674743296,
        "power": 170000,
        "limit": 1200000,
        "limit_default": 1200000,
        "limit_max": 1200000,
        "clock_max.0": 2062,
        "clock_max.1": 2062,
        "clock_max.2": 3996,
        "clock.2": 3996,
        "nvlink_version": 7,
        "nvlink_speed": 50000,
        "nvlink_beyond": "!2",
        "addressing_mode": 2,  # ATS
        "fabric_clique": 32766,
        "field.147": 18,
        "field.170": 10,  # C2C links, their state and MB/s
        "field.171": 1,
        "field.172": 44712,
        **{f"field.{i}": -1 for i in (161, 162, 163)},
        **{f"field.{i}": 0 for i in (202, 204, *range(206, 216), 219, 221, 231, 232, 233)},
        **{f"field.{i}": 15 << 8 | 15 for i in (220, 222)},  # a bit-error rate of 15e-15, packed
    }
    nodes = (f"gpu {gpu} numa_node {2 + 8 * gpu}" for gpu in range(4))
    fake.become("gpus 4", *_card(facts), *_sockets(4, 72), *nodes)
    return Node(fake)


def gb10_unified(fake: FakeNvml) -> Node:
    """A GB10 (DGX Spark): memory is the system's, so no framebuffer; the PCIe link is nonsense, gen 1 of width 1."""
    facts = {
        "name": "NVIDIA GB10",
        "architecture": 10,
        "capability_major": 12,
        "capability_minor": 1,
        "addressing_mode": 2,
        "pci_device_id": 0x2E1210DE,
        "power": 4500,
        "clock.0": 208,
        "clock.1": 208,
        "clock_max.0": 3003,
        "clock_max.1": 3003,
        "clock_max.3": 3003,
        "pcie_gen": 1,
        "pcie_gen_max": 1,
        "pcie_gen_gpu_max": 1,
        "pcie_width": 1,
        "pcie_width_max": 1,
        "field.82": 0,
        "mig": -1,
        **dict.fromkeys(("mem_total", "mem_reserved", "mem_used", "bar1_total", "bar1_used"), -1),
        **dict.fromkeys(("limit", "limit_default", "limit_min", "limit_max", "clock.2", "clock_max.2"), -1),
        **{f"rows.{what}": -1 for what in ("max", "high", "partial", "low", "none")},
        **NO_ECC,
        **NO_NVLINK,
        **NO_GPM,
    }
    fake.become("gpus 1", *_card(facts), "gpu 0 cpus 0-19")
    return Node(fake)


def lost_at_call(fake: FakeNvml, calls: int = 40, gpu: int = 3) -> Node:
    """One of eight falls off the bus after its ``calls``-th call, in the middle of whatever cycle that is."""
    node = h100x8_nvswitch(fake)
    fake.fault(gpu=gpu, code=15, after=calls)
    return node


READINGS = (
    "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetTemperatureV",
    "nvmlDeviceGetTemperature",
    "nvmlDeviceGetClockInfo",
    "nvmlDeviceGetTotalEnergyConsumption",
)


def reset_required(fake: FakeNvml, gpu: int = 5) -> Node:
    """One of eight must be reset: its readings say so, while identity and the recovery action are still answered."""
    node = h100x8_nvswitch(fake)
    fake.set(f"gpu {gpu} recovery_action 1")
    for function in READINGS:
        fake.fault(function, gpu=gpu, code=16)
    return node


def one_hung(fake: FakeNvml, gpu: int = 3) -> Node:
    """A call about one of eight does not return until ``fake.clear()``."""
    node = h100x8_nvswitch(fake)
    fake.fault("nvmlDeviceGetPowerUsage", gpu=gpu, hang=True)
    return node


def one_slow(fake: FakeNvml, gpu: int = 3, ms: float = 100) -> Node:
    """Each call about one of eight takes ``ms``."""
    node = h100x8_nvswitch(fake)
    fake.fault(gpu=gpu, sleep_ms=ms)
    return node


def init_hung(fake: FakeNvml) -> Node:
    """nvmlInit does not return until ``fake.clear()``."""
    node = h100x8_nvswitch(fake)
    fake.fault("nvmlInitWithFlags", hang=True)
    return node


class XidNode(Node):
    """Xid 94 (contained memory error) five times at each step; the file keeps the last burst only."""

    def burst(self, count: int = 50, gpu: int = 3, xid: int = 94) -> None:
        self.fake.replace("event ")
        for _ in range(count):
            self.fake.event(gpu, xid)

    def step(self) -> None:
        self.burst(5)


def xid_burst(fake: FakeNvml) -> XidNode:
    """Eight H100; ``burst()`` sends the same Xid many times over."""
    return XidNode(h100x8_nvswitch(fake).fake)


def persistent_wait_error(fake: FakeNvml) -> Node:
    """Waiting for events fails at once, every time, while everything else works."""
    node = h100x8_nvswitch(fake)
    fake.fault("nvmlEventSetWait_v2", code=999)
    return node


class WrappingNode(Node):
    """Counters of 32 bits about to wrap; every fourth step the driver was reloaded and all begin at 0 again."""

    PCIE_STEP, KIB_STEP = 300_000_000, 4_000_000

    def __init__(self, fake: FakeNvml) -> None:
        super().__init__(h100x8_nvswitch(fake).fake)
        self._pcie, self._replays, self._kib, self._steps = 2**32 - 100_000_000, 2**32 - 1, 10**12, 0
        self._tell()

    def step(self) -> None:
        self._steps += 1
        if self._steps % 4 == 0:
            self._pcie = self._replays = self._kib = 0
        else:
            self._pcie, self._replays = self._pcie + self.PCIE_STEP, self._replays + 1
            self._kib += self.KIB_STEP
        self._tell()

    def _tell(self) -> None:
        pcie, replays = self._pcie % 2**32, self._replays % 2**32
        counters = {"field.197": pcie, "field.198": pcie, "pcie_replay": replays, "energy": self._kib}
        links = {f"field.{i}": self._kib for i in (138, 139)}
        keys = tuple(f"gpu * {key} " for key in (*counters, *links))
        self.fake.unset(*keys)
        self.fake.set(*_card(counters | links))


def counter_wrap_and_reset(fake: FakeNvml) -> WrappingNode:
    """Eight H100 whose PCIe counters wrap at the first step and whose driver is reloaded at the fourth."""
    return WrappingNode(fake)


class ChurningNode(Node):
    """1,000 processes in all, of which each step replaces 100; none of a PID comes back."""

    COUNT, REPLACED = 1000, 100

    def __init__(self, fake: FakeNvml) -> None:
        super().__init__(h100x8_nvswitch(fake).fake)
        self._first = 100_000
        self._tell()

    def step(self) -> None:
        self._first += self.REPLACED
        self._tell()

    def pids(self) -> range:
        return range(self._first, self._first + self.COUNT)

    def _tell(self) -> None:
        processes = (f"gpu {pid % 8} proc {pid} {(pid % 64 + 1) << 20} C {pid % 3} 1" for pid in self.pids())
        self.fake.unset(*(f"gpu {gpu} proc " for gpu in range(8)))
        self.fake.set(*processes)


def thousand_pids(fake: FakeNvml) -> ChurningNode:
    """Eight H100 with 125 short-lived processes each."""
    return ChurningNode(fake)


def vgpu_guest(fake: FakeNvml) -> Node:
    """A virtual machine with half an L40S: no power, temperature, ECC or PCIe; the row histogram would spam its log."""
    absent = ("power", "limit", "limit_default", "limit_min", "limit_max", "energy", "temp", "margin", "fan")
    pcie = ("pcie_gen", "pcie_gen_max", "pcie_gen_gpu_max", "pcie_width", "pcie_width_max", "pcie_replay", "pcie_speed")
    facts = {
        **L40S,
        "name": "NVIDIA L40S-24Q",
        "virtualization": 2,
        "mem_total": 25769803776,
        "mem_reserved": 1073741824,
        **dict.fromkeys((*absent, *pcie, "pcie_kbps.0", "pcie_kbps.1", "recovery_action", "events"), -1),
        **{f"field.{i}": -1 for i in (74, 76, *range(169, 184), 197, 198, 269, 270, 271)},
        **NO_ECC,
    }
    fake.become("gpus 1", *_card(facts))
    return Node(fake)


ALL: Mapping[str, Callable[[FakeNvml], Node]] = {
    scenario.__name__: scenario
    for scenario in (
        h100x8_nvswitch,
        l40s_x4_two_sockets,
        t4_old_driver,
        mig_7x1g,
        gb200_18_links,
        gb10_unified,
        lost_at_call,
        reset_required,
        one_hung,
        one_slow,
        xid_burst,
        persistent_wait_error,
        counter_wrap_and_reset,
        thousand_pids,
        vgpu_guest,
        init_hung,
    )
}
