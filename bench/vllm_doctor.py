"""The peer: vllm-doctor, as its user runs it on an engine's ``/metrics``, in an environment of its own.

It reads one exposition and has no history, so it is shown the last scrape of a recording. Where replicas are servers of
their own it is shown all of them at once, told apart by ``instance`` as in a Prometheus that federates: more than its
scrape mode would see, for otherwise it could not find them uneven.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from bench.subjects import install_peer

PACKAGE, VERSION = "vllm-doctor", "0.6.0"
# Its rules, and the classes that each may be taken to name: those that its own title and its list of likely causes
# speak of. Any of them counts. A queue without a cause may be short of slots or of compute.
CLASSES: Mapping[str, tuple[str, ...]] = {
    "queue_pressure": ("scheduler", "compute"),
    "queue_latency": ("scheduler", "compute", "kv_capacity"),
    "kv_cache_pressure": ("kv_capacity",),
    "preemption_pressure": ("kv_capacity",),
    "low_throughput": ("idle", "scheduler"),
    "error_rate": (),
    "ttft_bottleneck": ("compute", "scheduler"),
    "tpot_bottleneck": ("memory_bandwidth",),
    "prefix_cache_efficiency": ("compute",),
    "replica_imbalance": ("imbalance",),
}
NOTHING_FOUND = ("healthy", "idle", "sleeping")
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")


@dataclass(frozen=True, slots=True)
class Doctor:
    """``program`` is its command. ``examine`` may be called from several processes."""

    program: Path

    @property
    def name(self) -> str:
        return f"{PACKAGE} {VERSION}"

    def examine(self, folder: Path) -> dict[str, tuple[str, ...]]:
        """What it says of a recording: the classes of its first finding, by severity and then by confidence as it sorts
        them, and of all others. Where there is nothing to scrape, it says that."""
        body = last_scrape(folder)
        if body is None:
            return {"named": ("no_data",)}
        with _served(body) as url, tempfile.TemporaryDirectory() as home:
            ended = subprocess.run(
                [self.program, "diagnose", url, "--output", "json"],
                env={**os.environ, "HOME": home, "NO_COLOR": "1"}, cwd=home, capture_output=True, text=True, check=True,
                timeout=60,
            )  # fmt: skip
        return classes_of(json.loads(ended.stdout))


def classes_of(report: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """Its report in our classes."""
    checks = report["checks"]
    assert isinstance(checks, list)
    found = [CLASSES[check["id"]] for check in checks if check["finding"] is not None]
    if not found:
        return {"named": NOTHING_FOUND}
    return {"named": found[0], "others": tuple(name for classes in found[1:] for name in classes)}


def last_scrape(folder: Path) -> bytes | None:
    """Of the recording in ``folder``; of several servers, one exposition of all."""
    own = sorted(folder.glob("*.prom"))
    if own:
        return own[-1].read_bytes()
    last = {replica.name: max(replica.glob("*.prom"), default=None) for replica in sorted(folder.iterdir())}
    bodies = {name: path.read_text() for name, path in last.items() if path is not None}
    return _federated(bodies).encode() if bodies else None


def _federated(bodies: Mapping[str, str]) -> str:
    """One family after the other, as the text format asks for."""
    families: dict[str, list[str]] = {}
    for name, body in bodies.items():
        family = ""
        for line in body.splitlines():
            if line.startswith(("# HELP ", "# TYPE ")):
                family = line.split(" ", 3)[2]
                lines = families.setdefault(family, [])
                if line not in lines:
                    lines.append(line)
            elif match := _SAMPLE.match(line.replace("vllm:", "vllm_colon_")):
                sample, labels, value = match.groups()
                both = ",".join(filter(None, (labels, f'instance="{name}"')))
                families[family].append(f"{sample.replace('vllm_colon_', 'vllm:')}{{{both}}} {value}")
    return "\n".join(line for lines in families.values() for line in lines) + "\n"


@contextmanager
def _served(body: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/metrics"
        finally:
            server.shutdown()
            thread.join()


def find() -> Doctor | str:
    """It, installed once beside the temporary files; or why it can't be."""
    program = install_peer(PACKAGE, VERSION)
    return program if isinstance(program, str) else Doctor(program)
