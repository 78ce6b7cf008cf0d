"""Opens a file that must be one: a pipe would wait for its writer, and a folder's descriptor would never be closed."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_regular(path: str | Path) -> BinaryIO:
    """``path`` for reading. Raises ``OSError``, also where it is no regular file; waits for nothing but the disk."""
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "Is no regular file", str(path))
    return os.fdopen(number, "rb")
