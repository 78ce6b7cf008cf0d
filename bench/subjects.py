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

import pinchpoint as package
from tests.fakes.daemon import RunningDaemon
from tests.fakes.nvml import FakeNvml

GPUS, NODES, PROBES = 8, 2, 2
PEER_PACKAGE, PEER_VERSION = "nvitop-exporter", "1.7.2"


@dataclass(frozen=True, slots=True)
class Subject:
    """An exporter that answers at http://127.0.0.1:PORT/metrics."""

    name: str
    version: str
    pid: int
    port: int


@contextmanager
def fake_driver(folder: Path) -> Iterator[dict[str, str]]:
    """The environment in which ``GPUS`` busy GPUs are found, whose readings change every second."""
    fake = FakeNvml(folder, gpus=GPUS)
    environment = fake.env()
    del environment["FAKE_NVML_LOG"]  # writing a log of calls would be measured too
    ending = threading.Event()

    def live() -> None:
        while not ending.wait(1.0):
            partial = fake.state.with_suffix(".next")
            partial.write_text("\n".join([f"gpus {GPUS}", *_readings(random.Random())]) + "\n")
            partial.rename(fake.state)

    thread = threading.Thread(target=live)
    thread.start()
    try:
        yield environment
    finally:
        ending.set()
        thread.join()


def _readings(chance: random.Random) -> Iterator[str]:
    for gpu in range(GPUS):
        yield f"gpu {gpu} util {chance.randint(60, 100)}"
        yield f"gpu {gpu} mem_used {chance.randint(100, 130) * 10**9}"
        yield f"gpu {gpu} power {chance.randint(400_000, 690_000)}"
        yield f"gpu {gpu} temp {chance.randint(55, 70)}"
        yield f"gpu {gpu} clock.1 {chance.randint(1700, 1980)}"
        yield f"gpu {gpu} energy {time.time_ns() // 10**6}"


@contextmanager
def pinchpoint(folder: Path, environment: dict[str, str]) -> Iterator[Subject]:
    """``pinchpoint run`` with its default intervals, two of the engines probed as well."""
    compileall.compile_dir(Path(package.__file__).parent, quiet=1)  # as pip leaves it
    child = Path(__file__).with_name("engines.py")
    command = [sys.executable, str(child), str(NODES)]
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
def peer(folder: Path, environment: dict[str, str], program: Path) -> Iterator[Subject]:
    """``nvitop-exporter`` with the same interval."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(program), "--bind-address", "127.0.0.1", "--port", str(port), "--interval", "1"]
    with (folder / "peer.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
    try:
        _wait_until_it_answers(process, port)
        yield Subject(PEER_PACKAGE, PEER_VERSION, process.pid, port)
    finally:
        process.kill()
        process.wait()


def install_peer() -> Path | str:
    """The peer's program, in a virtual environment beside the temporary files, made once; or why there is none."""
    home = Path(tempfile.gettempdir()) / f"pinchpoint-bench-{PEER_PACKAGE}-{PEER_VERSION}-{os.getuid()}"
    program = home / "bin" / PEER_PACKAGE
    if program.exists():
        return program
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    try:
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, capture_output=True, text=True)
        subprocess.run([*pip, f"{PEER_PACKAGE}=={PEER_VERSION}"], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip() or error.stdout.strip() or str(error)).splitlines()[-1]
        return f"{PEER_PACKAGE} {PEER_VERSION} can't be installed: {reason}"
    return program


def _wait_until_it_answers(process: subprocess.Popen[bytes], port: int, seconds: float = 20.0) -> None:
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
