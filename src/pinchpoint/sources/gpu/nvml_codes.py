"""What NVML's error codes mean here: for the node, for a GPU, for one call. A table a meaning, with the remedy.

Source: NVML API reference, ``nvmlReturn_t``.
"""

from collections.abc import Mapping

import pynvml

from pinchpoint.snapshot import GpuState, Reason

NODE_FAULTS: Mapping[int, tuple[Reason, str]] = {
    pynvml.NVML_ERROR_UNINITIALIZED: (Reason.DRIVER_ERROR, "NVML lost the driver; it is started again"),
    pynvml.NVML_ERROR_NO_PERMISSION: (
        Reason.ACCESS_DENIED,
        "the NVIDIA device files may not be opened; run as a user who may, or pass the GPUs to the container",
    ),
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: (
        Reason.NO_DRIVER,
        "the NVIDIA kernel driver is not loaded; load it (modprobe nvidia), it is tried again by itself",
    ),
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: (
        Reason.NO_LIBRARY,
        "libnvidia-ml.so.1 was not found; install the NVIDIA driver, or pass it to the container (--gpus all)",
    ),
    pynvml.NVML_ERROR_OPERATING_SYSTEM: (
        Reason.ACCESS_DENIED,
        "the operating system blocks the NVIDIA devices (cgroup); recreate the container with its GPUs",
    ),
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
        Reason.DRIVER_MISMATCH,
        "the driver was upgraded under this process, which can't change its library; restart pinchpoint",
    ),
    pynvml.NVML_ERROR_GPU_NOT_FOUND: (Reason.NO_DEVICES, "the driver sees no GPU; check lspci and dmesg"),
    pynvml.NVML_ERROR_UNKNOWN: (
        Reason.DRIVER_ERROR,
        "NVML answers Unknown Error; in a container recreate it with its GPUs, on a host check dmesg",
    ),
}
# The codes that mean the same from whichever call they come.
LIFECYCLE = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)
GPU_FAULTS: Mapping[int, tuple[GpuState, str]] = {
    pynvml.NVML_ERROR_GPU_IS_LOST: (
        GpuState.LOST,
        "it has fallen off the bus; look for its Xid in dmesg, drain the node, reboot or reseat it",
    ),
    pynvml.NVML_ERROR_RESET_REQUIRED: (
        GpuState.RESET_REQUIRED,
        "it must be reset; stop what uses it, then nvidia-smi --gpu-reset",
    ),
    pynvml.NVML_ERROR_OPERATING_SYSTEM: (
        GpuState.ACCESS_DENIED,
        "the operating system blocks it (cgroup); recreate the container with its GPUs",
    ),
}
OPENING_FAULTS: Mapping[int, tuple[GpuState, str]] = {
    **GPU_FAULTS,
    pynvml.NVML_ERROR_NO_PERMISSION: (
        GpuState.ACCESS_DENIED,
        "its device file may not be opened; run as a user who may, or pass it to the container",
    ),
    **dict.fromkeys(
        (pynvml.NVML_ERROR_INVALID_ARGUMENT, pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_GPU_NOT_FOUND),
        (GpuState.LOST, "NVML doesn't enumerate it any more; look for its Xid in dmesg"),
    ),
}
CALL_REASONS: Mapping[int, Reason] = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: Reason.NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: Reason.NOT_SUPPORTED,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH: Reason.NOT_SUPPORTED,
    pynvml.NVML_ERROR_DEPRECATED: Reason.NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_PERMISSION: Reason.ACCESS_DENIED,
    pynvml.NVML_ERROR_TIMEOUT: Reason.TIMEOUT,
}
NOTHING_FOUND = frozenset({pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_NOT_FOUND})  # both mean an empty list
