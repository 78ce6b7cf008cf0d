"""The lines that are written to a log from now on: /dev/kmsg, a FIFO, or a file that grows and may be rotated."""

from __future__ import annotations

import os
import select
import stat
import threading
from collections.abc import Generator
from pathlib import Path

KMSG = Path("/dev/kmsg")
READ_BYTES = 8192  # the longest record of /dev/kmsg, and the longest line of a file
TURN_READS = 100  # with the pause after them: 2,000 records a second, the rest of a flood is overrun
TURN_PAUSE_SECONDS = 0.05
LOOK_SECONDS = 0.2


def follow(path: Path, ending: threading.Event) -> Generator[bytes | None, None, None]:
    """Each line that comes, ``None`` where lines were lost or none came for a while; until ``ending``. Blocks for that.

    A line longer than ``READ_BYTES`` loses its middle. Raises OSError when the log can't be read.
    """
    descriptor = _open(path)
    try:
        _skip_to_the_end(descriptor)
        rest, reads = b"", 0
        yield None
        while not ending.is_set():
            reads += 1
            if reads % TURN_READS == 0:
                ending.wait(TURN_PAUSE_SECONDS)
            try:
                data = os.read(descriptor, READ_BYTES)
            except BlockingIOError:
                select.select([descriptor], [], [], LOOK_SECONDS)
                yield None
                continue
            except BrokenPipeError:  # the kernel wrote over what was not read yet; the next read is of what is left
                rest = b""
                yield None
                continue
            if data:
                *lines, rest = (rest + data).split(b"\n")
                rest = rest[:READ_BYTES]
                yield from lines
                continue
            ending.wait(LOOK_SECONDS)  # the end of a file, or a FIFO that nobody writes to
            if _was_replaced(path, descriptor):
                successor = _open(path)  # first: if it fails, the old one is closed once, below
                os.close(descriptor)
                descriptor, rest = successor, b""
            yield None
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def _skip_to_the_end(descriptor: int) -> None:
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        os.lseek(descriptor, 0, os.SEEK_END)


def _was_replaced(path: Path, descriptor: int) -> bool:
    """Whether a rotation left another file there, or a shorter one."""
    mine = os.fstat(descriptor)
    if not stat.S_ISREG(mine.st_mode):
        return False
    try:
        there = path.stat()
    except OSError:
        return False  # between two steps of a rotation
    return (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino) or there.st_size < os.lseek(
        descriptor, 0, os.SEEK_CUR
    )
