"""What the PCI bus shows of the GPUs, whatever the driver thinks: how many there are, and where one is."""

from pathlib import Path

NVIDIA = "0x10de"
DISPLAY_CONTROLLER = "0x03"  # PCI base class: VGA (0x0300) and 3D (0x0302) alike


def count_nvidia_gpus(sysfs: Path = Path("/sys")) -> int | None:
    """NVIDIA display controllers on the bus; ``None`` when there is none to be seen (WSL has GPUs, and no such bus)."""
    return sum(map(_is_gpu, (sysfs / "bus/pci/devices").glob("*"))) or None


def numa_node(bus_id: str, sysfs: Path = Path("/sys")) -> float | None:
    """The NUMA node of a GPU (``bus_id`` as NVML writes it, its domain in eight digits); ``None`` without one."""
    domain, _, rest = bus_id.lower().partition(":")
    try:
        node = int((sysfs / "bus/pci/devices" / f"{int(domain, 16):04x}:{rest}" / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return float(node) if node >= 0 else None


def _is_gpu(device: Path) -> bool:
    try:
        vendor, kind = (device / "vendor").read_text(), (device / "class").read_text()
    except OSError:
        return False
    return vendor.strip() == NVIDIA and kind.startswith(DISPLAY_CONTROLLER)
