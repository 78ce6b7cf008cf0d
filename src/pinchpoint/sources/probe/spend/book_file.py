"""The ledger on disk: one small file, replaced whole, one process at a time. Blocks: call it in a thread.

A file is written beside the old one, forced to the disk and renamed over it, so that at every moment one of the two is
there, whole. A lock file keeps other processes out meanwhile. What can't be read is set aside, and nothing is taken
for unspent because of it.
"""

import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import structlog

from pinchpoint.sources.http.regular_file import open_regular
from pinchpoint.sources.probe.spend.book import Book
from pinchpoint.sources.probe.spend.book_text import CorruptError, NewerError, from_text, to_text
from pinchpoint.sources.probe.spend.days import day_of

NAME = "probe-spend.json"
MAX_BYTES = 16 * 1024 * 1024  # a thousand accounts are two
LOCK_SECONDS = 2.0  # another process holds it for some milliseconds
LOCK_POLL_SECONDS = 0.01

log = structlog.get_logger(__name__)
T = TypeVar("T")


class LedgerError(Exception):
    """The ledger can't be used now: one line with the cause."""


class BookFile:
    """The book in ``folder``, which is made when it is first needed, for our eyes only.

    A file that vanishes while we run is a lost book; one that was not there at the start is a new one.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._folder = folder
        self._seen = False

    def change(self, step: Callable[[Book], tuple[Book, T]], unix: float) -> T:
        """Read the book, take a step, write what has changed; it is on the disk when this returns ``step``'s result.

        Raises ``LedgerError``, and then the step has not happened, unless the disk failed after the fact.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._locked():
                book = self._read(unix)
                changed, result = step(book)
                if changed != book:
                    self._write(changed)
                return result
        except NewerError as error:
            raise LedgerError(f"{self.path}: {error}") from None
        except OSError as error:
            cause = (error.strerror or type(error).__name__).lower()
            raise LedgerError(f"{error.filename or self.path}: {cause}") from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        lock = os.open(self._folder / f"{NAME}.lock", flags, 0o600)
        try:
            deadline = time.monotonic() + LOCK_SECONDS
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise LedgerError(f"{self.path}: another process holds its lock") from None
                    time.sleep(LOCK_POLL_SECONDS)
            yield
        finally:
            os.close(lock)

    def _read(self, unix: float) -> Book:
        try:
            file = open_regular(self.path)
        except FileNotFoundError:
            if self._seen:
                log.error("the spend ledger has vanished, so today's caps count as used up", file=str(self.path))
                return self._begin_anew(unix)
            return Book(id=secrets.token_hex(8))
        with file:
            content = file.read(MAX_BYTES)
        try:
            book = from_text(content.decode("utf-8", errors="replace"))  # one that is cut off at the limit is corrupt
        except CorruptError as error:
            aside = self.path.with_name(f"{NAME}.corrupt-{int(unix)}")
            with suppress(OSError):  # a copy, so that the file itself is there until a good one replaces it
                aside.write_bytes(content)
            log.error(
                "the spend ledger is corrupt and is set aside, so today's caps count as used up",
                file=str(self.path),
                set_aside=str(aside),
                cause=str(error),
                remedy=f"hosted probes go on when a new UTC day begins; to begin anew at once, delete {self.path} and "
                "restart",
            )
            return self._begin_anew(unix)
        self._seen = True
        return book

    def _begin_anew(self, unix: float) -> Book:
        """Written at once: who comes next must know of the loss too."""
        book = replace(Book(id=secrets.token_hex(8)), lost_on=day_of(unix))
        self._write(book)
        return book

    def _write(self, book: Book) -> None:
        new = self.path.with_name(f"{NAME}.new")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
            with open(os.open(new, flags, 0o600), "w", encoding="utf-8") as file:
                file.write(to_text(book))
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)
        except OSError:
            with suppress(OSError):
                new.unlink(missing_ok=True)  # on a full disk it is in the way
            raise
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)  # the new name too
        finally:
            os.close(folder)
        self._seen = True
