"""The two that scrape many engines, as processes: pinchpoint, and Debian's vmagent with the same targets."""

import compileall
import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import pinchpoint as package
from bench.subjects import Subject, wait_until_it_answers
from pinchpoint import __version__
from tests.fakes.daemon import RunningDaemon

VMAGENT_PACKAGE = "victoria-metrics"


class Farm:
    """``engines`` engines of 400 series in a process of their own. Use it as a context."""

    def __init__(self, engines: int) -> None:
        self._command = [sys.executable, str(Path(__file__).with_name("engine_farm.py")), str(engines)]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ports: list[int] = json.loads(self._line())
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def gaps(self) -> dict[str, list[float]]:
        """By scraper, the seconds between two scrapes of one engine, of all engines, since this was last asked."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        told: dict[str, list[float]] = json.loads(self._line())
        return told

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextmanager
def pinchpoint(folder: Path, ports: list[int], interval: float) -> Iterator[Subject]:
    """``pinchpoint run`` off the node: engines, and nothing beside them."""
    compileall.compile_dir(Path(package.__file__).parent, quiet=1)  # as pip leaves it
    targets = [{"name": f"engine-{n}", "url": f"http://127.0.0.1:{port}"} for n, port in enumerate(ports)]
    config = {
        "gpu": {"enabled": False},
        "host": {"enabled": False},
        "discovery": {"loopback": False},
        "processes": {"enabled": False},  # the engines are elsewhere, as it were
        "engines": {"interval_seconds": interval, "stale_after_seconds": 3 * interval, "targets": targets},
    }
    file = folder / "fleet.yaml"
    file.write_text(json.dumps(config))  # JSON is YAML
    with RunningDaemon(folder, "--config.file", str(file)) as daemon:
        daemon.wait_for(lambda: _all_up(daemon, len(ports)), "all engines to be up", 20 * interval)
        yield Subject("pinchpoint", __version__, daemon.process.pid, int(daemon.url.rpartition(":")[2]))


def _all_up(daemon: RunningDaemon, engines: int) -> bool:
    """Looked at once a second, and not parsed: it is many megabytes."""
    time.sleep(1.0)
    try:
        body = daemon.get("/metrics")
    except OSError:  # no tick yet
        return False
    return len(re.findall(rb"^pinchpoint_engine_up\{.*\} 1\.0$", body, re.MULTILINE)) == engines


@contextmanager
def vmagent(folder: Path, ports: list[int], interval: float, program: str) -> Iterator[Subject]:
    """vmagent; what it scrapes it sends to one of the engines' ports, where it is swallowed."""
    targets = [f"127.0.0.1:{port}" for port in ports]
    job = {"job_name": "engines", "scrape_interval": f"{interval:g}s", "static_configs": [{"targets": targets}]}
    file = folder / "vmagent.yaml"
    file.write_text(json.dumps({"scrape_configs": [job]}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        program,
        f"-promscrape.config={file}",
        f"-httpListenAddr=127.0.0.1:{port}",
        f"-remoteWrite.url=http://127.0.0.1:{ports[0]}/api/v1/write",
        f"-remoteWrite.tmpDataPath={folder / 'vmagent'}",
    ]
    with (folder / "vmagent.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_until_it_answers(process, port)
        yield Subject("vmagent", _version(), process.pid, port)
    finally:
        process.kill()
        process.wait()


def find_vmagent() -> str | None:
    """The program, where the Debian package is installed."""
    return shutil.which("vmagent")


def _version() -> str:
    """Debian's build does not know its own."""
    command = ["dpkg-query", "--show", "--showformat=${Version}", VMAGENT_PACKAGE]
    asked = subprocess.run(command, check=False, capture_output=True, text=True)
    return asked.stdout.partition("+")[0] or "of unknown version"
