"""The two exporters that are measured, as processes: pinchpoint, and nvitop-exporter on the same fake driver."""

import compileall
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pinchpoint as package
from tests.fakes.daemon import RunningDaemon
from tests.fakes.nvml import FakeNvml

GPUS, ENGINES, PROBES = 8, 4, 2
PEER_PACKAGE, PEER_VERSION = "nvitop-exporter", "1.7.2"


@dataclass(frozen=True, slots=True)
class Subject:
    """An exporter that answers at http://127.0.0.1:PORT/metrics."""

    name: str
    version: str
    pid: int
    port: int


class Driver:
    """A fake driver of ``GPUS`` busy GPUs whose readings change every second. Use it as a context.

    ``utilization`` is what all of them say, a random one while it is ``None``; ``faults`` are lines for the fake.
    """

    def __init__(self, folder: Path) -> None:
        self._fake = FakeNvml(folder, gpus=GPUS)
        self.environment = self._fake.env()
        del self.environment["FAKE_NVML_LOG"]  # writing a log of calls would be measured too
        self.utilization: int | None = None
        self.faults: tuple[str, ...] = ()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._live)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _live(self) -> None:
        chance = random.Random()
        while not self._ending.wait(1.0):
            lines = [line for gpu in range(GPUS) for line in self._readings(gpu, chance)]
            self._fake.become(f"gpus {GPUS}", *lines, *self.faults)

    def _readings(self, gpu: int, chance: random.Random) -> Iterator[str]:
        busy = chance.randint(60, 98) if self.utilization is None else self.utilization
        yield f"gpu {gpu} util {busy}"
        yield f"gpu {gpu} mem_used {chance.randint(100, 130) * 10**9}"
        yield f"gpu {gpu} power {chance.randint(400_000, 690_000)}"
        yield f"gpu {gpu} temp {chance.randint(55, 70)}"
        yield f"gpu {gpu} clock.1 {chance.randint(1700, 1980)}"
        yield f"gpu {gpu} energy {time.time_ns() // 10**6}"
        for field in (138, 139):  # NVLink, KiB
            yield f"gpu {gpu} field.{field} {time.time_ns() // 10**3}"


@contextmanager
def pinchpoint(folder: Path, environment: dict[str, str]) -> Iterator[Subject]:
    """``pinchpoint run`` with its default intervals, two of the engines probed as well."""
    compileall.compile_dir(Path(package.__file__).parent, quiet=1)  # as pip leaves it
    child = Path(__file__).with_name("simulated_engines.py")
    command = [sys.executable, str(child), str(ENGINES)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as engines:
        assert engines.stdout is not None
        targets = json.loads(engines.stdout.readline())
        probes = [{"name": t["name"], "url": t["url"], "engine": t["name"]} for t in targets[:PROBES]]
        config = {"engines": {"targets": targets}, "probes": {"targets": probes}, "gpu": {"gpus_expected": GPUS}}
        file = folder / "pinchpoint.yaml"
        file.write_text(json.dumps(config))  # JSON is YAML
        with RunningDaemon(folder, "--config.file", str(file), env=environment) as daemon:
            for target in targets:
                daemon.wait_for_series("pinchpoint_engine_up", 1.0, engine=target["name"])
            (labels,) = daemon.samples()["pinchpoint_build_info"]
            yield Subject("pinchpoint", dict(labels)["version"], daemon.process.pid, int(daemon.url.rpartition(":")[2]))


@contextmanager
def pinchpoint_alone(folder: Path, environment: dict[str, str]) -> Iterator[Subject]:
    """``pinchpoint run`` with its default intervals and nothing but the GPUs to watch."""
    compileall.compile_dir(Path(package.__file__).parent, quiet=1)
    file = folder / "pinchpoint.yaml"
    file.write_text(json.dumps({"gpu": {"gpus_expected": GPUS}, "discovery": {"loopback": False}}))
    with RunningDaemon(folder, "--config.file", str(file), env=environment) as daemon:
        daemon.wait_for_series("pinchpoint_gpus_visible", GPUS)
        (labels,) = daemon.samples()["pinchpoint_build_info"]
        yield Subject("pinchpoint", dict(labels)["version"], daemon.process.pid, int(daemon.url.rpartition(":")[2]))


@contextmanager
def peer(folder: Path, environment: dict[str, str], program: Path) -> Iterator[Subject]:
    """``nvitop-exporter`` with the same interval."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(program), "--bind-address", "127.0.0.1", "--port", str(port), "--interval", "1"]
    with (folder / "peer.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
    try:
        wait_until_it_answers(process, port)
        yield Subject(PEER_PACKAGE, PEER_VERSION, process.pid, port)
    finally:
        process.kill()
        process.wait()


def install_peer(package: str = PEER_PACKAGE, version: str = PEER_VERSION) -> Path | str:
    """A peer's program, in a virtual environment beside the temporary files, made once; or why there is none."""
    home = Path(tempfile.gettempdir()) / f"pinchpoint-bench-{package}-{version}-{os.getuid()}"
    program = home / "bin" / package
    if program.exists():
        return program
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    try:
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, capture_output=True, text=True)
        subprocess.run([*pip, f"{package}=={version}"], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip() or error.stdout.strip() or str(error)).splitlines()[-1]
        return f"{package} {version} can't be installed: {reason}"
    return program


def wait_until_it_answers(process: subprocess.Popen[bytes], port: int, seconds: float = 20.0) -> None:
    """Returns once ``/metrics`` answers; raises ``OSError`` when the process has ended or the time is up."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                answer.read()
                return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
