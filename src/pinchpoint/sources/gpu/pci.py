"""How many GPUs the PCI bus shows, whatever the driver thinks."""

from pathlib import Path

NVIDIA = "0x10de"
DISPLAY_CONTROLLER = "0x03"  # PCI base class: VGA (0x0300) and 3D (0x0302) alike


def count_nvidia_gpus(sysfs: Path = Path("/sys")) -> int | None:
    """NVIDIA display controllers on the bus; ``None`` when there is none to be seen (WSL has GPUs, and no such bus)."""
    return sum(map(_is_gpu, (sysfs / "bus/pci/devices").glob("*"))) or None


def _is_gpu(device: Path) -> bool:
    try:
        vendor, kind = (device / "vendor").read_text(), (device / "class").read_text()
    except OSError:
        return False
    return vendor.strip() == NVIDIA and kind.startswith(DISPLAY_CONTROLLER)
