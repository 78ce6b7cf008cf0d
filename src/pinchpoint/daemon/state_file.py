"""A file that outlives the process: replaced whole, one process at a time. Blocks: call it in a thread."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from pinchpoint.sources.http.regular_file import open_regular


class TakenError(OSError):
    """Another process keeps its state here."""


class StateFile:
    """``name`` in ``folder``, which is made when there is something to write, for our eyes only.

    The lock is held until ``close``. Everything here raises ``OSError``.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name
        self._folder = folder
        self._lock: int | None = None

    def read(self, most_bytes: int) -> bytes | None:
        """All of it, but no more than ``most_bytes``; ``None`` where there is none."""
        if not self._folder.is_dir():
            return None
        self._take()
        try:
            with open_regular(self.path) as file:
                return file.read(most_bytes)
        except FileNotFoundError:
            return None

    def write(self, text: str) -> None:
        """At every moment either the old file is there or the new one, whole."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._take()
        new = self.path.with_name(f"{self.path.name}.new")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            with open(os.open(new, flags, 0o600), "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)
        except OSError:
            with suppress(OSError):
                new.unlink(missing_ok=True)  # on a full disk it is in the way
            raise

    def set_aside(self) -> Path:
        """Out of the way, in place of the one that was set aside before."""
        aside = self.path.with_name(f"{self.path.name}.set-aside")
        self.path.replace(aside)
        return aside

    def close(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def _take(self) -> None:
        if self._lock is not None:
            return
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        lock = os.open(self._folder / f"{self.path.name}.lock", flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise TakenError(f"{self._folder}: another process keeps its state here") from None
        self._lock = lock
