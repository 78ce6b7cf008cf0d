"""A real process that looks like an engine to the kernel: its command line, its port, its children and their titles."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

_SERVER = """
import http.server, os, re, subprocess, sys, time
given = dict(zip(sys.argv, sys.argv[1:]))
body, began = open(os.environ["FAKE_BODY"], "rb").read(), time.time()
def now(): return re.sub(rb"\\{\\{(\\d+)\\}\\}", lambda m: str(int(int(m[1]) * (time.time() - began))).encode(), body)
MODELS = b'{"data": [{"id": "m", "parent": null, "max_model_len": 2048}]}'
children = [subprocess.Popen([title, "600"], executable=os.path.join(os.environ["FAKE_TITLES"], title))
            for title in os.environ["FAKE_CHILDREN"].split()]
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        answers = {"/metrics": now(), "/health": b"", "/version": b'{"version": "0.32.0"}', "/v1/models": MODELS}
        text = answers.get(self.path)
        self.send_response(200 if text is not None else 404)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(text or b"")))
        self.end_headers()
        self.wfile.write(text or b"")
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(given["--port"])), Handler)
print("(APIServer pid=%d) INFO 11-30 17:32:02 [api_utils.py:286] non-default args: {'port': 1}" % os.getpid())
print("(EngineCore pid=%d) INFO 11-30 17:32:14 [kv_cache_utils.py:2327] GPU KV cache size: 69,888 tokens, "
      "Maximum concurrency for 2,048 tokens per request: 34.12x" % (children[0].pid if children else 0), flush=True)
try:
    server.serve_forever()
finally:
    for child in children: child.kill()
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


class EngineProcess:
    """``python -m vllm.entrypoints.openai.api_server --port N …``, with children of the given titles.

    Each child is a real process of that name (``exec -a``), which does nothing. Serves ``body`` at /metrics, where
    ``{{7}}`` is a counter that grows by 7 a second; its output is a file. For the length of a ``with``.
    """

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        body: Path,
        children: Sequence[str] = (),
        port: int | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_file = folder / "engine.log"
        module = folder / "modules/vllm/entrypoints/openai"
        module.mkdir(parents=True, exist_ok=True)
        (module / "api_server.py").write_text(_SERVER)
        titles = folder / "titles"
        titles.mkdir(exist_ok=True)
        for title in children:
            (titles / title).unlink(missing_ok=True)
            (titles / title).symlink_to("/bin/sleep")
        self._env = {
            **os.environ,
            "PYTHONPATH": str(folder / "modules"),
            "FAKE_BODY": str(body),
            "FAKE_TITLES": str(titles),
            "FAKE_CHILDREN": " ".join(children),
            **(env or {}),
        }
        self._command = [
            sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--port", str(self.port), *arguments
        ]  # fmt: skip

    def __enter__(self) -> Self:
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._env, start_new_session=True
            )
        deadline = time.monotonic() + 20
        while not self._answers():
            assert self.process.poll() is None, self.log_file.read_text()
            assert time.monotonic() < deadline, "the fake engine does not listen"
            time.sleep(0.02)
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def pid(self) -> int:
        return self.process.pid

    def child(self, title: str) -> int:
        """The process id of the child of this title."""
        for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split():
            if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0] == title.encode():
                return int(pid)
        raise AssertionError(f"no child is called {title}")

    def _answers(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0
