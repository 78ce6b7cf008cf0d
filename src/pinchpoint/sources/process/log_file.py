"""The start-up log where it is a file: read whole when it is small, else its two ends."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection

from pinchpoint.snapshot import EngineFacts
from pinchpoint.sources.process.log_lines import facts_in

MAX_WHOLE_BYTES = 4 * 2**20
END_BYTES = 2**20  # a start writes some 20 kB


def facts_of_file(path: str, pids: Collection[int] = ()) -> EngineFacts:
    """What the log at ``path`` says of the engine whose processes call themselves ``pids``.

    Only a regular file is read: a pipe would be waited for, and what is read from it is lost to its reader. A larger
    file's beginning may be an older run's, so it counts only where its lines bear one of ``pids``. Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return EngineFacts()
        if status.st_size <= MAX_WHOLE_BYTES:
            return facts_in(_lines(file.read(MAX_WHOLE_BYTES)), pids)
        first = facts_in(_lines(file.read(END_BYTES)), pids, certain=False) if pids else EngineFacts()
        file.seek(-END_BYTES, os.SEEK_END)
        return facts_in(_lines(file.read(END_BYTES)), pids).completed(first, "log")


def is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _lines(content: bytes) -> list[str]:
    return content.decode("utf-8", "replace").splitlines()
