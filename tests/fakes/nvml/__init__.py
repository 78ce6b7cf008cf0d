"""A real C library in the place of NVIDIA's: the way through ctypes is the real one, and a hang is a hang."""

import ctypes
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("fake_nvml.c")
FLAGS = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-Wl,-soname,libnvidia-ml.so.1"]


def build() -> Path:
    """The compiled library, built once per content of its source."""
    key = hashlib.sha256(SOURCE.read_bytes() + " ".join(FLAGS).encode()).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"pinchpoint-fake-nvml-{os.getuid()}-{key}" / "libnvidia-ml.so.1"
    if not library.exists():
        library.parent.mkdir(exist_ok=True)
        partial = library.with_suffix(f".{os.getpid()}")
        subprocess.run(["cc", *FLAGS, "-o", str(partial), str(SOURCE)], check=True)
        partial.rename(library)
    return library


class FakeNvml:
    """A node's GPUs as the fake library shows them. Each change takes effect at the next NVML call.

    ``load()`` makes this process's ``pynvml`` find the fake; a subprocess gets there by ``env()``.
    """

    def __init__(self, folder: Path, gpus: int = 8) -> None:
        self.library = build()
        self.state = folder / "nvml.state"
        self.log = folder / "nvml.log"
        self._lines: list[str] = [f"gpus {gpus}"]
        self._write()

    def load(self) -> None:
        """Load the fake before pynvml asks for its soname, and point it at this object's state."""
        library = ctypes.CDLL(str(self.library), mode=ctypes.RTLD_GLOBAL)
        library.fake_nvml_use(os.fsencode(self.state), os.fsencode(self.log))

    def unload(self) -> None:
        """A library can't be unloaded; from now on this process has no NVML."""
        self.clear()
        self.fault("nvmlInitWithFlags", code=12)

    def env(self) -> dict[str, str]:
        """What a subprocess needs in its environment to find the fake."""
        return {
            **os.environ,
            "LD_LIBRARY_PATH": str(self.library.parent),
            "FAKE_NVML_STATE": str(self.state),
            "FAKE_NVML_LOG": str(self.log),
        }

    def set(self, *lines: str) -> None:
        """Add lines, e.g. ``gpu 3 temp 71`` or ``gpus 7``; a later line wins. The C file lists them."""
        self._lines += lines
        self._write()

    def fault(
        self,
        function: str = "*",
        *,
        gpu: int | None = None,
        code: int | None = None,
        sleep_ms: int | None = None,
        after: int | None = None,
        hang: bool = False,
        hold: bool = False,
    ) -> None:
        """Make calls of ``function`` (of one GPU) fail with ``code``, be slow, or hang until ``clear()``."""
        numbers = {"gpu": gpu, "code": code, "sleep_ms": sleep_ms, "after": after}
        words = [f"{key}={value}" for key, value in numbers.items() if value is not None]
        self.set(" ".join(["fault", function, *words, *["hang"] * hang, *["hold"] * hold]))

    def clear(self) -> None:
        """Take every fault away; what hangs returns."""
        self._lines = [line for line in self._lines if not line.startswith("fault ")]
        self._write()

    def calls(self, function: str | None = None, gpu: int | None = None) -> list[tuple[int, str, int]]:
        """Each call so far as (thread id, function, GPU index or -1)."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        every = [(int(tid), name, int(index)) for tid, name, index in map(str.split, lines)]
        return [call for call in every if function in (None, call[1]) and gpu in (None, call[2])]

    def init_count(self) -> int:
        """``nvmlInit`` calls minus ``nvmlShutdown`` calls, in this process."""
        return int(ctypes.CDLL(str(self.library)).fake_nvml_init_count())

    def _write(self) -> None:
        partial = self.state.with_suffix(".partial")
        partial.write_text("\n".join(self._lines) + "\n", errors="surrogateescape")
        partial.rename(self.state)
