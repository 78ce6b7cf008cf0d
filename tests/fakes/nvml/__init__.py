"""A real C library in the place of NVIDIA's: the way through ctypes is the real one, and a hang is a hang."""

import ctypes
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
FLAGS = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-Wl,-soname,libnvidia-ml.so.1"]
COUNTERS = ("inits", "samples", "event_sets", "gpm_overlaps")  # enum counter in fake.h


def build(*, without: Sequence[str] = ()) -> Path:
    """The compiled library, built once per content of its sources. As an old one it lacks the symbols ``without``."""
    sources = [*sorted(FOLDER.glob("*.c")), *sorted(FOLDER.glob("*.h"))]
    content = b"".join(source.read_bytes() for source in sources) + " ".join([*FLAGS, *without]).encode()
    key = hashlib.sha256(content).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"pinchpoint-fake-nvml-{os.getuid()}-{key}" / "libnvidia-ml.so.1"
    if not library.exists():
        library.parent.mkdir(exist_ok=True)
        partial = library.with_suffix(f".{os.getpid()}")
        symbols = library.parent / f"symbols.{os.getpid()}"
        symbols.write_text(f"{{ global: nvml*; fake_nvml_*; local: *; {''.join(f'{name}; ' for name in without)}}};\n")
        files = [str(source) for source in sources if source.suffix == ".c"]
        subprocess.run(["cc", *FLAGS, f"-Wl,--version-script={symbols}", "-o", str(partial), *files], check=True)
        partial.rename(library)
    return library


class FakeNvml:
    """A node's GPUs as the fake library shows them. Each change takes effect at the next NVML call.

    ``load()`` makes this process's ``pynvml`` find the fake; a subprocess gets there by ``env()``. ``missing`` are
    functions that this node's library lacks.
    """

    def __init__(self, folder: Path, gpus: int = 8, *, missing: Sequence[str] = ()) -> None:
        self.library = build(without=missing)
        self.state = folder / "nvml.state"
        self.log = folder / "nvml.log"
        self._lines: list[str] = [f"gpus {gpus}"]
        self._sequence = self._epoch = 0
        self._write()

    def load(self, *, log: bool = True) -> None:
        """Load the fake before pynvml asks for its soname, and point it at this object's state.

        Only the first library of a process counts: here ``missing`` is for subprocesses, ``miss()`` for this process.
        """
        library = ctypes.CDLL(str(self.library), mode=ctypes.RTLD_GLOBAL)
        library.fake_nvml_use(os.fsencode(self.state), os.fsencode(self.log) if log else b"")

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

    @property
    def lines(self) -> tuple[str, ...]:
        """What is set."""
        return tuple(self._lines)

    def set(self, *lines: str) -> None:
        """Add lines, e.g. ``gpu 3 temp 71`` or ``gpus 7``; a later line wins. ``state.c`` lists them."""
        self._lines += lines
        self._write()

    def become(self, *lines: str) -> None:
        """Another node: everything that was set before is forgotten. The first line should be ``gpus N``."""
        self._epoch += 1
        self._lines = [f"epoch {self._epoch}", *lines]
        self._write()

    def unset(self, *prefixes: str) -> None:
        """Take away the lines that begin with one of these."""
        self._lines = [line for line in self._lines if not line.startswith(prefixes)]
        self._write()

    def replace(self, prefix: str, *lines: str) -> None:
        """``unset`` and ``set`` in one step."""
        self._lines = [line for line in self._lines if not line.startswith(prefix)]
        self.set(*lines)

    def miss(self, *functions: str) -> None:
        """The library lacks these from now on. pynvml has the same error for it."""
        self.set(*(f"missing {function}" for function in functions))

    def event(self, gpu: int, data: int, kind: int = 8, *, gi: int | None = None, ci: int | None = None) -> None:
        """One event for the event sets that exist; ``kind`` 8 is an Xid, whose code is ``data``."""
        self._sequence += 1
        instance = "" if gi is None else f" {gi} {ci or 0}"
        self.set(f"event {self._sequence} {gpu} {kind} {data}{instance}")

    def fault(
        self,
        function: str = "*",
        *,
        gpu: int | None = None,
        code: int | None = None,
        sleep_ms: float | None = None,
        after: int | None = None,
        times: int | None = None,
        hang: bool = False,
        hold: bool = False,
    ) -> None:
        """Make calls of ``function`` (of one GPU) fail with ``code``, be slow, or hang until ``clear()``.

        Not the first ``after`` calls, and only ``times`` of them; both are counted over other changes of the state.
        """
        numbers = {"gpu": gpu, "code": code, "sleep_ms": sleep_ms, "after": after, "times": times}
        words = [f"{key}={value}" for key, value in numbers.items() if value is not None]
        self.set(" ".join(["fault", function, *words, *["hang"] * hang, *["hold"] * hold]))

    def clear(self) -> None:
        """Take every fault away; what hangs returns."""
        self._lines = [line for line in self._lines if not line.startswith("fault ")]
        self._write()

    def calls(self, function: str | None = None, gpu: int | None = None) -> list[tuple[int, str, int]]:
        """Each call so far as (thread id, function, GPU index or -1)."""
        text = self.log.read_text() if self.log.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()  # a line may be half written
        every = [(int(tid), name, int(index)) for tid, name, index in map(str.split, lines)]
        return [call for call in every if function in (None, call[1]) and gpu in (None, call[2])]

    def count(self, what: str) -> int:
        """In this process: ``inits`` minus shutdowns, live GPM ``samples`` and ``event_sets``, ``gpm_overlaps``.

        An overlap is a GPM call that began while another was in progress, which may crash a real driver.
        """
        return int(ctypes.CDLL(str(self.library)).fake_nvml_count(COUNTERS.index(what)))

    def init_count(self) -> int:
        """``nvmlInit`` calls minus ``nvmlShutdown`` calls, in this process."""
        return self.count("inits")

    def _write(self) -> None:
        partial = self.state.with_suffix(".partial")
        partial.write_text("\n".join(self._lines) + "\n", errors="surrogateescape")
        partial.rename(self.state)
