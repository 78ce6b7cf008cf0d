"""The fake driver has the binding's ABI, has what the source calls, and does what its scenarios promise."""

import ctypes
import inspect
import math
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pynvml
import pytest

import pinchpoint.sources.gpu
from tests.fakes.nvml import FOLDER, FakeNvml, build, scenarios

STRUCTS = {  # ours, with its fields in the order of pynvml's
    "pci": ("nvmlPciInfo_t", "legacy domain bus device device_id subsystem_id bus_id"),
    "memory": ("c_nvmlMemory_t", "total free used"),
    "memory_v2": ("c_nvmlMemory_v2_t", "version total reserved free used"),
    "utilization": ("c_nvmlUtilization_t", "gpu memory"),
    "temperature": ("c_nvmlTemperature_v1_t", "version sensor celsius"),
    "versioned": ("c_nvmlMarginTemperature_v1_t", "version value"),
    "histogram": ("c_nvmlRowRemapperHistogramValues", "values"),
    "fabric": ("c_nvmlGpuFabricInfoV_t", "version cluster status clique state health"),
    "field": ("c_nvmlFieldValue_t", "id scope timestamp_us latency_us type code value"),
    "process_info": ("c_nvmlProcessInfo_v3_t", "pid bytes gi ci"),
    "process_use": ("c_nvmlProcessUtilizationSample_t", "pid at_us sm memory encoder decoder"),
    "attributes": (
        "c_nvmlDeviceAttributes",
        "sms copy_engines decoders encoders jpegs ofas gpu_slices compute_slices megabytes",
    ),
    "metric": ("c_nvmlGpmMetric_t", "id code value texts"),
    "support": ("c_nvmlGpmSupport_t", "version supported"),
    "event_data": ("c_nvmlEventData_t", "device type data gi ci"),
}


def test_the_structs_of_the_fake_are_those_of_the_binding(tmp_path: Path) -> None:
    program = tmp_path / "abi.c"
    prints = [
        f'printf("{name} %zu{" %zu" * len(names.split())}\\n", sizeof(struct {name}), '
        + ", ".join(f"offsetof(struct {name}, {field})" for field in names.split())
        + ");"
        for name, (_, names) in STRUCTS.items()
    ]
    includes = "".join(f'#include "{FOLDER}/{part}.c"\n' for part in ("device", "links", "parts"))
    program.write_text(f"{includes}int main(void) {{ {' '.join(prints)} }}\n")
    others = [str(FOLDER / "gate.c"), str(FOLDER / "state.c")]
    subprocess.run(["cc", "-O0", "-pthread", "-o", str(tmp_path / "abi"), str(program), *others], check=True)
    said = subprocess.run([str(tmp_path / "abi")], capture_output=True, text=True, check=True).stdout
    for line in said.splitlines():
        ours, *numbers = line.split()
        theirs = getattr(pynvml, STRUCTS[ours][0])
        offsets = [getattr(theirs, name).offset for name, *_ in theirs._fields_]
        wanted = [ctypes.sizeof(theirs), *offsets[: len(numbers) - 1]]
        assert [int(number) for number in numbers] == wanted, ours
    assert ctypes.sizeof(pynvml.c_nvmlGpmMetricsGet_t) == 24 + 40 * pynvml.NVML_GPM_METRIC_MAX


def symbols_behind(function: str) -> set[str]:
    """The C symbols that a function of pynvml looks up, by itself or through others of pynvml."""
    found: set[str] = set()
    waiting, seen = [function], set()
    while waiting:
        name = waiting.pop()
        if name in seen or not inspect.isfunction(getattr(pynvml, name, None)):
            continue
        seen.add(name)
        source = inspect.getsource(getattr(pynvml, name))
        found |= set(re.findall(r'_nvmlGetFunctionPointer\("(\w+)"\)', source))
        waiting += re.findall(r"\b(nvml[A-Z]\w+)\(", source)
    return found


def test_every_function_that_the_source_calls_is_in_the_fake() -> None:
    folder = Path(pinchpoint.sources.gpu.__file__).parent
    text = "".join(file.read_text() for file in folder.rglob("*.py"))
    wanted = {symbol for name in set(re.findall(r"\bnvml[A-Z]\w+", text)) for symbol in symbols_behind(name)}
    library = ctypes.CDLL(str(build()))
    assert "nvmlDeviceGetUtilizationRates" in wanted
    assert {symbol for symbol in wanted if not hasattr(library, symbol)} == set()


@pytest.fixture
def nvml(fake: FakeNvml) -> Iterator[FakeNvml]:
    """The fake, with NVML up in this process."""
    pynvml.nvmlInit()
    yield fake
    fake.clear()
    pynvml.nvmlShutdown()


def gpu(index: int) -> Any:
    return pynvml.nvmlDeviceGetHandleByIndex(index)


def code_of(call: Callable[..., object], *args: object) -> int:
    """The NVML code that a call raises; 0 for none."""
    try:
        call(*args)
    except pynvml.NVMLError as error:
        return int(error.value)
    return 0


def test_a_library_without_a_symbol_is_to_the_binding_what_a_missing_one_in_process_is(
    nvml: FakeNvml, tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    old = FakeNvml(tmp_path / "old", 1, missing=["nvmlDeviceGetTemperatureV"])
    program = "import pynvml as n; n.nvmlInit(); n.nvmlDeviceGetTemperatureV(n.nvmlDeviceGetHandleByIndex(0), 0)"
    command = [sys.executable, "-c", program]
    outcome = subprocess.run(command, env=old.env(), capture_output=True, text=True, check=False)
    assert "NVMLError_FunctionNotFound" in outcome.stderr
    nvml.miss("nvmlDeviceGetTemperatureV")
    assert code_of(pynvml.nvmlDeviceGetTemperatureV, gpu(0), 0) == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND


@pytest.mark.parametrize("name", scenarios.ALL)
def test_every_scenario_can_be_set_up_and_goes_on(fake: FakeNvml, name: str) -> None:
    node = scenarios.ALL[name](fake)
    for _ in range(5):
        node.step()
    fake.clear()
    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetCount() >= 1
    assert pynvml.nvmlDeviceGetName(gpu(0)).startswith(("NVIDIA ", "Tesla "))
    pynvml.nvmlShutdown()


def test_the_last_link_of_a_gb200_is_followed_by_an_invalid_argument_and_that_of_an_h100_by_not_supported(
    nvml: FakeNvml,
) -> None:
    codes = []
    for scenario in (scenarios.gb200_18_links, scenarios.h100x8_nvswitch, scenarios.l40s_x4_two_sockets):
        scenario(nvml)
        field = pynvml.nvmlDeviceGetFieldValues(gpu(0), [(pynvml.NVML_FI_DEV_NVLINK_GET_STATE, 18)])[0]
        codes.append([code_of(pynvml.nvmlDeviceGetNvLinkState, gpu(0), link) for link in (17, 18)])
        assert field.nvmlReturn == codes[-1][1]
    assert codes == [[0, 2], [0, 3], [3, 3]]


def test_a_field_value_is_of_64_bits_and_of_a_link_or_of_all(nvml: FakeNvml) -> None:
    large = 2**63 - 14  # a blank of the driver's, which no double holds
    nvml.set(f"gpu 0 field.139@3 {large}", "gpu 0 field.138 5", "gpu 0 field.138@2 7", "gpu 0 field.94 !19")
    every = 2**32 - 1
    values = pynvml.nvmlDeviceGetFieldValues(gpu(0), [(139, 3), (138, 0), (138, 2), (138, every), 94, 82])
    read = [(value.nvmlReturn, value.valueType, value.value.ullVal) for value in values]
    assert read == [(0, 3, large), (0, 3, 5), (0, 3, 7), (0, 3, 17 * 5 + 7), (19, 1, 0), (0, 1, 44)]
    assert [value.latencyUsec for value in values] == [1] * 6


def test_the_process_list_may_grow_between_the_two_calls(nvml: FakeNvml) -> None:
    nvml.set("gpu 0 proc 4711 5000 C 30 10", "gpu 0 proc 4712 -1", "gpu 0 proc 4713 1 G")
    processes = pynvml.nvmlDeviceGetComputeRunningProcesses_v3(gpu(0))
    assert [(process.pid, process.usedGpuMemory) for process in processes] == [(4711, 5000), (4712, None)]
    assert [use.pid for use in pynvml.nvmlDeviceGetProcessUtilization(gpu(0), 0)] == [4711]
    nvml.fault("nvmlDeviceGetComputeRunningProcesses_v3", code=7, after=1, times=1)
    assert code_of(pynvml.nvmlDeviceGetComputeRunningProcesses_v3, gpu(0)) == pynvml.NVML_ERROR_INSUFFICIENT_SIZE
    assert code_of(pynvml.nvmlDeviceGetComputeRunningProcesses_v3, gpu(0)) == 0


def test_calls_are_counted_over_a_reload_and_anew_in_another_node(nvml: FakeNvml) -> None:
    nvml.fault("nvmlDeviceGetPowerUsage", code=19, after=2, times=1)
    codes = []
    for power in range(4):
        nvml.set(f"gpu 0 power {power}")
        codes.append(code_of(pynvml.nvmlDeviceGetPowerUsage, gpu(0)))
    nvml.become("gpus 1", "fault nvmlDeviceGetPowerUsage code=19 after=2 times=1")
    codes += [code_of(pynvml.nvmlDeviceGetPowerUsage, gpu(0)) for _ in range(4)]
    assert codes == [0, 0, 19, 0] * 2


def test_a_delay_may_be_shorter_than_a_millisecond_and_pcie_throughput_takes_its_twenty(nvml: FakeNvml) -> None:
    def seconds(call: Callable[..., object], *args: object) -> float:
        began = time.perf_counter()
        call(gpu(0), *args)
        return time.perf_counter() - began

    nvml.fault("nvmlDeviceGetPowerUsage", sleep_ms=0.25)
    assert min(seconds(pynvml.nvmlDeviceGetPowerUsage) for _ in range(20)) < 0.002
    assert seconds(pynvml.nvmlDeviceGetPowerUsage) >= 0.00025
    assert seconds(pynvml.nvmlDeviceGetPcieThroughput, 0) >= 0.02


def test_a_mig_device_that_is_gone_answers_invalid_argument_and_its_handle_is_used_again(nvml: FakeNvml) -> None:
    node = scenarios.mig_7x1g(nvml)
    devices = [pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu(0), slot) for slot in range(7)]
    assert {pynvml.nvmlDeviceGetName(device) for device in devices} == {"NVIDIA H100 80GB HBM3 MIG 1g.10gb"}
    assert [pynvml.nvmlDeviceGetGpuInstanceId(device) for device in devices] == list(range(7, 14))
    assert code_of(pynvml.nvmlDeviceGetUtilizationRates, gpu(0)) == pynvml.NVML_ERROR_NOT_SUPPORTED
    assert code_of(pynvml.nvmlDeviceGetUtilizationRates, gpu(1)) == 0
    events = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(gpu(0), scenarios.MIG_CONFIG_CHANGE, events)
    node.reconfigure()
    assert pynvml.nvmlEventSetWait_v2(events, 1000).eventType == scenarios.MIG_CONFIG_CHANGE
    pynvml.nvmlEventSetFree(events)
    slots = [code_of(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu(0), slot) for slot in range(7)]
    assert slots == [0, 6, 6, 0, 6, 6, 6]
    assert code_of(pynvml.nvmlDeviceGetName, devices[1]) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert pynvml.nvmlDeviceGetName(devices[3]) == "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
    assert pynvml.nvmlDeviceGetAttributes_v2(devices[3]).gpuInstanceSliceCount == 3


def metrics_between(first: Any, second: Any, *ids: int) -> Any:
    request = pynvml.c_nvmlGpmMetricsGet_t(version=1, numMetrics=len(ids), sample1=first, sample2=second)
    for position, metric in enumerate(ids):
        request.metrics[position].metricId = metric
    return request


def test_two_samples_make_metrics_when_they_are_a_tenth_of_a_second_apart(nvml: FakeNvml) -> None:
    nvml.set("gpu 0 gpm.2 71.5", "gpu 0 gpm.5 nan")
    samples = [pynvml.nvmlGpmSampleAlloc() for _ in range(2)]
    for sample in samples:
        pynvml.nvmlGpmSampleGet(gpu(0), sample)
    request = metrics_between(*samples, 2, 5, 77)
    assert code_of(pynvml.nvmlGpmMetricsGet, request) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    time.sleep(0.11)
    pynvml.nvmlGpmSampleGet(gpu(0), samples[1])
    pynvml.nvmlGpmMetricsGet(request)
    assert [(m.nvmlReturn, m.value) for m in request.metrics[:3]] == [
        (0, 71.5),
        (0, pytest.approx(math.nan, nan_ok=True)),
        (3, 0),
    ]
    assert (nvml.count("samples"), nvml.count("gpm_overlaps")) == (2, 0)
    for sample in samples:
        pynvml.nvmlGpmSampleFree(sample)
    assert nvml.count("samples") == 0
    assert code_of(pynvml.nvmlGpmMetricsGet, request) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_two_profiling_calls_at_once_are_counted(nvml: FakeNvml, capfd: pytest.CaptureFixture[str]) -> None:
    nvml.fault("nvmlGpmQueryDeviceSupport", sleep_ms=50)
    threads = [threading.Thread(target=pynvml.nvmlGpmQueryDeviceSupport, args=(gpu(i),)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert nvml.count("gpm_overlaps") == 1
    assert "while another GPM call" in capfd.readouterr().err
    pynvml.nvmlShutdown()
    nvml.load()  # counts anew: the fixture minds an overlap
    pynvml.nvmlInit()


def test_an_event_is_delivered_once_to_sets_that_were_there_before(nvml: FakeNvml) -> None:
    nvml.event(0, 31)
    events = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(gpu(3), 8, events)
    threading.Timer(0.05, nvml.event, (3, 79)).start()
    event = pynvml.nvmlEventSetWait_v2(events, 5000)
    assert (event.eventType, event.eventData, event.gpuInstanceId) == (8, 79, 2**32 - 1)
    assert ctypes.cast(event.device, ctypes.c_void_p).value == ctypes.cast(gpu(3), ctypes.c_void_p).value
    nvml.event(0, 13)  # not of a GPU of the set
    nvml.event(3, 1, kind=4)  # not of a kind of the set
    assert code_of(pynvml.nvmlEventSetWait_v2, events, 30) == pynvml.NVML_ERROR_TIMEOUT
    threading.Timer(0.05, nvml.fault, ("nvmlEventSetWait_v2",), {"code": 15}).start()
    began = time.monotonic()
    assert code_of(pynvml.nvmlEventSetWait_v2, events, 5000) == pynvml.NVML_ERROR_GPU_IS_LOST
    assert time.monotonic() - began < 2
    pynvml.nvmlEventSetFree(events)
    assert nvml.count("event_sets") == 0


def test_the_topology_of_a_node_is_symmetrical(nvml: FakeNvml) -> None:
    scenarios.l40s_x4_two_sockets(nvml)
    levels = [[pynvml.nvmlDeviceGetTopologyCommonAncestor(gpu(i), gpu(j)) for j in range(4)] for i in range(4)]
    assert levels == [[0, 10, 50, 50], [10, 0, 50, 50], [50, 50, 0, 40], [50, 50, 40, 0]]
    assert pynvml.nvmlDeviceGetP2PStatus(gpu(0), gpu(1), pynvml.NVML_P2P_CAPS_INDEX_NVLINK) == 5
    assert list(pynvml.nvmlDeviceGetCpuAffinity(gpu(3), 1)) == [(2**32 - 1) << 32]
