"""The start-up log where it is systemd's journal: what ``journalctl`` prints, within limits of size and time."""

from __future__ import annotations

import json
import os
import re
import selectors
import subprocess
import time
from collections.abc import Collection

from pinchpoint.snapshot import EngineFacts
from pinchpoint.sources.process.log_lines import facts_in

MAX_BYTES = 4 * 2**20
TIMEOUT_SECONDS = 5.0
_UNIT = re.compile(r"[A-Za-z0-9:_.\\@][A-Za-z0-9:_.\\@-]{0,254}")


def is_unit(text: str) -> bool:
    """Whether it can be a unit's name; never an option of a command."""
    return _UNIT.fullmatch(text) is not None


def facts_of_unit(
    unit: str, since_unix: float | None = None, pids: Collection[int] = (), program: str = "journalctl"
) -> EngineFacts:
    """What a unit's log says, from ``since_unix`` on (its process's start; a log begins with what is wanted).

    Waits 5 s at most and reads 4 MiB at most. Raises OSError where there is no ``journalctl``, ValueError for a name
    that is no unit's.
    """
    if not is_unit(unit):
        raise ValueError(f"{unit[:100]!r} is no name of a systemd unit")
    since = [f"--since=@{int(since_unix)}"] if since_unix is not None else []
    command = [program, "--no-pager", "--quiet", "--output=json", "--output-fields=MESSAGE", f"--unit={unit}", *since]
    lines = _output(command).splitlines()
    return facts_in((_message(line) for line in lines), pids)


def _output(command: list[str]) -> bytes:
    """What a command prints, cut at both limits; it is ended by then."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    content = bytearray()
    with subprocess.Popen(  # noqa: S603 - a fixed program, and a checked name that can't be an option
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
    ) as process:
        assert process.stdout is not None
        try:
            with selectors.DefaultSelector() as waiting:
                waiting.register(process.stdout, selectors.EVENT_READ)
                while len(content) < MAX_BYTES and waiting.select(max(0.0, deadline - time.monotonic())):
                    if not (chunk := os.read(process.stdout.fileno(), 65_536)):
                        break
                    content += chunk
        finally:
            process.kill()
    return bytes(content)


def _message(line: bytes) -> str:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return ""  # the last one may be cut
    message = entry.get("MESSAGE") if isinstance(entry, dict) else None
    return message if isinstance(message, str) else ""  # an array of bytes is no start-up line
