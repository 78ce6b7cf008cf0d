"""The GPUs: whether they are well, what holds them back, what they do, how they are connected."""

from pinchpoint.outputs.dashboards.frame import dashboard
from pinchpoint.outputs.dashboards.looks import GPU_STATES, GREEN, HELD_DOWN, ORANGE, RED, UP
from pinchpoint.outputs.dashboards.panel import empty_means, lines, query, stacked, stat, steps, timeline
from pinchpoint.outputs.dashboards.queries import GPU, rate
from pinchpoint.outputs.dashboards.table import Column, joined, labels
from pinchpoint.outputs.dashboards.variables import GPU as GPU_CHOICE
from pinchpoint.snapshot import GpuState

_EACH = "instance, gpu"
_NAME = "{{instance}} GPU {{gpu}}"
_NO_GPU = "no GPU in sight"
_SM = f'{GPU}, domain="sm"'
# One number a GPU, where the metric has a series for each state it could be in.
_STATE = " or ".join(
    f'{number} * (max by ({_EACH}) (pinchpoint_gpu_state{{{GPU}, state="{state}"}}) == 1)'
    for number, state in enumerate(GpuState)
)


def _most(name: str, matchers: str = GPU, by: str = _EACH) -> str:
    return f"max by ({by}) ({name}{{{matchers}}})"


def _worst_errors(name: str, label: str, value: str) -> str:
    return f'sum by ({_EACH}) ({name}{{{GPU}, {label}="{value}"}})'


_NOW = (
    stat("GPUs down", "Lost, hung or closed to us.", query(f"sum(pinchpoint_gpu_up{{{GPU}}} == bool 0)"), bad_from=1),
    stat("GPUs missing", "GPUs that a node should have and its driver does not show.",
         query("sum(clamp_min(pinchpoint_gpus_expected{@} - pinchpoint_gpus_visible{@}, 0))"), bad_from=1),
    stat("Held down by hardware", "GPUs whose clocks are held down by heat or the power brake now.",
         query(f"count(max by ({_EACH}) (pinchpoint_gpu_throttle_active{{{GPU}, "
               'reason=~"hw_thermal_slowdown|hw_power_brake"}) == 1) or 0 * count(pinchpoint_gpu_throttle_active{@})'),
         bad_from=1),
    stat("Uncorrectable errors", "Memory errors that ECC could not correct, since the drivers were loaded.",
         query(f'sum(pinchpoint_gpu_ecc_errors_total{{{GPU}, severity="uncorrectable"}})'), bad_from=1),
    stat("Power", "All GPUs together.", query(f"sum(pinchpoint_gpu_power_watts{{{GPU}}})"), unit="watt"),
    stat("Device memory in use", "All GPUs together. Engines take their share at start.",
         query(f"sum(pinchpoint_gpu_memory_used_bytes{{{GPU}}}) / sum(pinchpoint_gpu_memory_total_bytes{{{GPU}}})"),
         unit="percentunit"),
)  # fmt: skip

_COLUMNS = (
    Column(name="", shown=False, expr=_most("pinchpoint_gpu_info", by=f"{_EACH}, name")),
    Column(name="State", expr=_STATE, words=GPU_STATES),
    Column(name="Busy", unit="percentunit", expr=_most("pinchpoint_gpu_utilization_ratio")),
    Column(name="Held down", words=HELD_DOWN,
           expr=_most("pinchpoint_gpu_throttle_active", f'{GPU}, reason!="sw_power_cap"')),
    Column(name="Clock", unit="percentunit",
           expr=f"{_most('pinchpoint_gpu_clock_hertz', _SM)} / {_most('pinchpoint_gpu_clock_max_hertz', _SM)}"),
    Column(name="Power", unit="watt", expr=_most("pinchpoint_gpu_power_watts")),
    Column(name="Temperature", unit="celsius", thresholds=steps(GREEN, (80, ORANGE), (88, RED)),
           expr=_most("pinchpoint_gpu_temperature_celsius", f'{GPU}, sensor="gpu"')),
    Column(name="Memory", unit="percentunit",
           expr=f"{_most('pinchpoint_gpu_memory_used_bytes')} / {_most('pinchpoint_gpu_memory_total_bytes')}"),
    Column(name="PCIe lanes", expr=_most("pinchpoint_gpu_pcie_link_width")),
    Column(name="Uncorrectable", thresholds=steps(GREEN, (1, RED)),
           expr=_worst_errors("pinchpoint_gpu_ecc_errors_total", "severity", "uncorrectable")),
    Column(name="Remap failures", thresholds=steps(GREEN, (1, RED)),
           expr=_worst_errors("pinchpoint_gpu_remapped_rows", "kind", "failure")),
)  # fmt: skip

_HEALTH = (
    empty_means(_NO_GPU, joined(
        "GPUs", "Each GPU now. A lost one keeps its state; its readings are gone. The clock falls while a GPU idles.",
        _COLUMNS, sort="State")),
    empty_means(_NO_GPU, timeline(
        "State", "Whether the GPU answers, and why not.", query(_STATE, _NAME), words=GPU_STATES, width=16, height=8)),
    empty_means("no Xid since the daemons started", labels(
        "Xid errors", "Age in seconds of the last of each Xid. NVIDIA's catalogue says what a code asks for; errors of "
        "programs (13, 31, 43, 45) are no defect of the GPU.",
        query(f"time() - max by ({_EACH}, xid) (pinchpoint_gpu_xid_last_timestamp_seconds{{{GPU}}})", instant=True),
        "instance", "gpu", "xid", value="age", unit="s")),
    empty_means("the driver asks for nothing", labels(
        "Recovery", "What the driver asks for to bring a GPU back.",
        query(f'max by ({_EACH}, action) (pinchpoint_gpu_recovery_action{{{GPU}, action!="none"}}) == 1',
              instant=True), "instance", "gpu", "action")),
    empty_means("no memory was repaired, or the GPUs don't tell", labels(
        "Repaired memory", "Rows remapped, pages retired, by cause. Pending: at the next reset. Failure: replace it.",
        query(f"max by ({_EACH}, kind) (pinchpoint_gpu_remapped_rows{{{GPU}}}) > 0 or max by ({_EACH}, cause) "
              f"(pinchpoint_gpu_retired_pages{{{GPU}}}) > 0", instant=True),
        "instance", "gpu", "kind", "cause", value="count", unit="short")),
    empty_means("none in this time", lines(
        "Memory errors", "Found by ECC, by severity.",
        query(f"{rate('pinchpoint_gpu_ecc_errors_total', f'{_EACH}, severity', GPU)} > 0", f"{_NAME} {{{{severity}}}}"),
        unit="cps")),
)  # fmt: skip

_HELD_BACK = (
    empty_means("nothing holds a clock down", timeline(
        "Held down by", "Reasons that hold the clocks down. The software power cap is normal at full load.",
        query(f"max by ({_EACH}, reason) (pinchpoint_gpu_throttle_active{{{GPU}}}) == 1", f"{_NAME} {{{{reason}}}}"),
        words=HELD_DOWN, width=16, height=8)),
    empty_means("nothing held a clock down", lines(
        "Time held down", "Share of time, exactly: from the driver's own counter. It shows what falls between samples.",
        query(f"{rate('pinchpoint_gpu_throttle_seconds_total', f'{_EACH}, reason', GPU)} > 0",
              f"{_NAME} {{{{reason}}}}"), unit="percentunit", most=1)),
    lines("SM clock", "Clock of the streaming multiprocessors over the highest there is. Low while the GPU idles.",
          query(f"pinchpoint_gpu_clock_hertz{{{_SM}}} / pinchpoint_gpu_clock_max_hertz{{{_SM}}}", _NAME),
          unit="percentunit", most=1),
    lines("Temperature", "By sensor.",
          query(f"pinchpoint_gpu_temperature_celsius{{{GPU}}}", f"{_NAME} {{{{sensor}}}}"), unit="celsius"),
    lines("Power over limit", "Power drawn over the limit that is enforced.",
          query(f"pinchpoint_gpu_power_watts{{{GPU}}} / pinchpoint_gpu_power_limit_watts{{{GPU}}}", _NAME),
          unit="percentunit"),
)  # fmt: skip

_WORK = (
    lines("GPU utilisation", "Share of time with a kernel resident. 100 % may still be far from the card's peak.",
          query(f"pinchpoint_gpu_utilization_ratio{{{GPU}}}", _NAME), unit="percentunit", most=1),
    empty_means("no profiling counters (GPM) are read", lines(
        "Tensor pipes", "Share of cycles in which the tensor pipes were busy: how much of its computing is used.",
        query(f"pinchpoint_gpu_tensor_active_ratio{{{GPU}}}", _NAME), unit="percentunit", most=1)),
    empty_means("no profiling counters (GPM) are read", lines(
        "Memory interface", "Share of cycles in which device memory moved data: how much of its bandwidth is used.",
        query(f"pinchpoint_gpu_dram_active_ratio{{{GPU}}}", _NAME), unit="percentunit", most=1)),
    lines("Device memory", "In use, without what the driver reserves.",
          query(f"pinchpoint_gpu_memory_used_bytes{{{GPU}}} / pinchpoint_gpu_memory_total_bytes{{{GPU}}}", _NAME),
          unit="percentunit", most=1),
    empty_means("engines' GPUs are not known", labels(
        "Whose GPU", "Which engine has which GPU.",
        query(f"max by ({_EACH}, engine, replica) (pinchpoint_engine_gpu_info{{{GPU}}})", instant=True),
        "instance", "gpu", "engine", "replica")),
    empty_means("no process is listed (gpu.processes is off), or none runs", labels(
        "Processes", "Device memory of each process.",
        query(f"max by ({_EACH}, pid, kind) (pinchpoint_gpu_process_memory_bytes{{{GPU}}})", instant=True),
        "instance", "gpu", "pid", "kind", value="memory", unit="bytes")),
)  # fmt: skip

_NO_NVLINK = "no NVLink, or no counters of it"
_LINKS = (
    empty_means("one GPU, or nobody knows how they are connected", labels(
        "Topology", "How two GPUs are connected, in nvidia-smi topo's words: NV is NVLink; PIX and PXB a PCIe switch; "
        "PHB, NODE and SYS through the CPU. p2p: whether one can read the other's memory.",
        query(f"max by (instance, gpu, peer, link, p2p) (pinchpoint_gpu_peer_link_info{{{GPU}}})", instant=True),
        "instance", "gpu", "peer", "link", "p2p", width=10)),
    empty_means(_NO_NVLINK, lines(
        "NVLink traffic", "Into and out of each GPU, over all its links.",
        query(rate("pinchpoint_gpu_nvlink_receive_bytes_total", _EACH, GPU), f"{_NAME} in"),
        query(rate("pinchpoint_gpu_nvlink_transmit_bytes_total", _EACH, GPU), f"{_NAME} out"), unit="Bps", width=14)),
    empty_means("no counters of NVLink, or all links are up", timeline(
        "NVLinks down", "Links that are down.",
        query(f"max by ({_EACH}, link) (pinchpoint_gpu_nvlink_up{{{GPU}}}) == 0", f"{_NAME} link {{{{link}}}}"),
        words=UP, width=10)),
    empty_means("none in this time", lines(
        "NVLink errors", "By kind.",
        query(f"{rate('pinchpoint_gpu_nvlink_errors_total', f'{_EACH}, kind', GPU)} > 0", f"{_NAME} {{{{kind}}}}"),
        unit="cps", width=14)),
    empty_means("no PCIe counters are read", lines(
        "PCIe traffic", "Into and out of each GPU.",
        query(f"pinchpoint_gpu_pcie_receive_bytes_per_second{{{GPU}}}", f"{_NAME} in"),
        query(f"pinchpoint_gpu_pcie_transmit_bytes_per_second{{{GPU}}}", f"{_NAME} out"), unit="Bps")),
    lines("PCIe lanes", "Lanes in use over what card and slot can do. Below 1 the card sits badly, or shares its slot.",
          query(f"pinchpoint_gpu_pcie_link_width{{{GPU}}} / pinchpoint_gpu_pcie_link_width_max{{{GPU}}}", _NAME),
          unit="percentunit", most=1),
    empty_means("none in this time, or the GPUs don't tell", lines(
        "PCIe replays", "Packets sent again: a bad contact, a long riser.",
        query(f"{rate('pinchpoint_gpu_pcie_replay_total', _EACH, GPU)} > 0", _NAME), unit="cps")),
)  # fmt: skip

_PARTS = (
    empty_means("no GPU is split (MIG)", stacked(
        "MIG: memory in use", "By instance.",
        query(f"pinchpoint_gpu_mig_memory_used_bytes{{{GPU}}}", f"{_NAME} {{{{gpu_instance}}}}"),
        unit="bytes", width=12)),
    empty_means("no GPU is split (MIG), or no profiling counters are read", lines(
        "MIG: SM activity", "By instance.",
        query(f"pinchpoint_gpu_mig_sm_active_ratio{{{GPU}}}", f"{_NAME} {{{{gpu_instance}}}}"),
        unit="percentunit", most=1, width=12)),
)  # fmt: skip

GPU_DASHBOARD = dashboard(
    "gpu",
    "Whether the GPUs are well, what holds them back, what they do and how they are connected.",
    (GPU_CHOICE,),
    (
        ("Now", _NOW),
        ("Health", _HEALTH),
        ("What holds them back", _HELD_BACK),
        ("Work", _WORK),
        ("Links", _LINKS),
        ("Split GPUs", _PARTS),
    ),
)
