"""A pinchpoint of its own process, as a user starts it, on a free loopback port."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeVar

from prometheus_client.parser import text_string_to_metric_families

START_SECONDS = 20.0  # generous: two busy cores share everything
POLL_SECONDS = 0.05
LOOPBACK = "127.0.0.1:0"
T = TypeVar("T")


class RunningDaemon:
    """``pinchpoint run`` (or another command) for the length of a ``with``. Its log is a file."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        command: Sequence[str] = ("run",),
        env: Mapping[str, str] | None = None,
        module: str = "pinchpoint",
    ) -> None:
        self.log_file = folder / "pinchpoint.log"
        self._arguments = (*command, "--web.listen-address", LOOPBACK, "--log.format", "logfmt", *arguments)
        self._env = env
        self._module = module
        self.url = ""

    def __enter__(self) -> Self:
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", self._module, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**(self._env or os.environ), "XDG_STATE_HOME": str(self.log_file.parent / "state")},
            )
        self.url = self.wait_for(self._listening, "the daemon to listen", START_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def _listening(self) -> str:
        assert self.process.poll() is None, f"the daemon ended with {self.process.returncode}:\n{self.log}"
        found = re.search(r'msg="pinchpoint is up".* urls=(\S+)', self.log)
        return found[1].strip('"') if found else ""

    def get(self, path: str, timeout: float = 10) -> bytes:
        with urllib.request.urlopen(self.url + path, timeout=timeout) as answer:
            return bytes(answer.read())

    def samples(self, start: str = "") -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
        """The exposition: name → labels (sorted pairs) → value; empty before the first tick.

        Of a fleet's megabytes only the names that ``start`` like this are parsed, for that takes longer than a tick.
        """
        found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        with contextlib.suppress(urllib.error.HTTPError):
            lines = [line for line in self.get("/metrics").decode().split("\n") if line.startswith(start)]
            for family in text_string_to_metric_families("\n".join(lines)):
                for sample in family.samples:
                    found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
        return found

    def series(self, name: str, **labels: str) -> list[float]:
        """The values of ``name`` whose labels include ``labels``."""
        wanted = set(labels.items())
        return [value for key, value in self.samples(name).get(name, {}).items() if wanted <= set(key)]

    def wait_for(self, what: Callable[[], T], description: str, seconds: float = 20.0) -> T:
        """The first true answer of ``what``."""
        deadline = time.monotonic() + seconds
        while not (answer := what()):
            assert time.monotonic() < deadline, f"waited {seconds} s for {description}:\n{self.log[-4000:]}"
            time.sleep(POLL_SECONDS)
        return answer

    def wait_for_series(self, name: str, value: float, seconds: float = 20.0, **labels: str) -> None:
        self.wait_for(lambda: self.series(name, **labels) == [value], f"{name}{labels} to be {value}", seconds)

    def hang_up(self) -> None:
        self.process.send_signal(signal.SIGHUP)

    def terminate(self, timeout: float = 20.0) -> tuple[float, int]:
        """Sends SIGTERM; returns the seconds until the process was gone, and its exit code."""
        started = time.monotonic()
        self.process.terminate()
        code = self.process.wait(timeout)
        return time.monotonic() - started, code


def latencies(daemon: RunningDaemon, scrapes: int) -> Iterator[float]:
    """Seconds of each of some scrapes, one after the other."""
    for _ in range(scrapes):
        started = time.perf_counter()
        daemon.get("/metrics")
        yield time.perf_counter() - started
