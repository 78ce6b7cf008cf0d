"""One real ``vllm serve`` on loopback: start it, kill its core, end it. All that it starts, it ends."""

import asyncio
import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Self

MODEL = "tiny-qwen2"
PORTS = range(18_000, 28_000)
BLOCK_TOKENS = 128  # vLLM's block size on CPUs
START_SECONDS = 300.0  # 20 to 40 s on two cores; 120 s were seen when others used them too
STOP_SECONDS = 20.0
_POLL_SECONDS = 0.25
_KV_LINE = re.compile(r"PU KV cache size: ([\d,]+) tokens")  # GPU or CPU


class EngineError(Exception):
    """The engine ended or did not come up; the end of its log."""


class Vllm:
    """``vllm serve`` with ``flags``, for the length of an ``async with``. Its log is a file."""

    def __init__(self, home: Path, model: Path, port: int, log_file: Path, *flags: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.log_file = log_file
        self.seconds_to_ready = 0.0
        self._environment = _environment(home)
        self._command = [
            *(str(home / "bin" / "vllm"), "serve", str(model), "--served-model-name", MODEL),
            *("--host", "127.0.0.1", "--port", str(port), "--dtype", "bfloat16", "--enforce-eager"),
            *flags,
        ]

    async def __aenter__(self) -> Self:
        started = time.monotonic()
        self._start()
        try:
            await self._answers(started + START_SECONDS)
        except BaseException:
            self._end()
            raise
        self.seconds_to_ready = time.monotonic() - started
        return self

    async def __aexit__(self, *_: object) -> None:
        self._end()

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    @property
    def kv_cache_tokens(self) -> int:
        """What the engine itself says its KV cache holds, in its log."""
        said = _KV_LINE.findall(self.log)
        if not said:
            raise EngineError(f"no size of the KV cache in vLLM's log:\n{self.log[-3000:]}")
        return int(said[-1].replace(",", ""))

    def kill_core(self) -> None:
        """Kills the engine core beneath the API server, as the kernel does when memory runs out."""
        os.kill(self._core(), signal.SIGKILL)

    def _core(self) -> int:
        for folder in Path("/proc").iterdir():
            if not folder.name.isdecimal():
                continue
            with contextlib.suppress(OSError):
                ours = os.getpgid(int(folder.name)) == self._process.pid
                if ours and b"EngineCore" in (folder / "cmdline").read_bytes():
                    return int(folder.name)
        raise EngineError("vLLM has no process called EngineCore")

    def _start(self) -> None:
        with self.log_file.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,  # its children form a group that can be ended as one
            )

    async def _answers(self, deadline: float) -> None:
        while not await asyncio.to_thread(self._is_well):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise EngineError(f"vLLM does not come up:\n{self.log[-3000:]}")
            await asyncio.sleep(_POLL_SECONDS)

    def _is_well(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _end(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # whoever is left
        self._process.wait()


def make_model(home: Path, folder: Path) -> None:
    """Makes a small random model, with the Python that has vLLM's libraries."""
    command = [str(home / "bin" / "python"), str(Path(__file__).with_name("model.py")), str(folder)]
    made = subprocess.run(command, check=False, capture_output=True, text=True, env=_environment(home))
    if made.returncode:
        raise EngineError(f"no model could be made:\n{made.stderr[-3000:]}")


def free_port() -> int:
    """Below those that the system gives to anybody: of very many ports only the lowest are asked who they are."""
    for port in random.sample(PORTS, len(PORTS)):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise EngineError(f"no port of {PORTS.start} to {PORTS.stop - 1} is free")


def _environment(home: Path) -> Mapping[str, str]:
    """Ours, with all that keeps vLLM from reaching out, and without what keeps its bytecode from being used."""
    ours = {key: value for key, value in os.environ.items() if not key.startswith(("VLLM_", "PYTHON"))}
    return ours | {
        "PATH": f"{home / 'bin'}:{os.environ.get('PATH', '')}",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    }
