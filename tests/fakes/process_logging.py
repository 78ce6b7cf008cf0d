"""A test may configure the logs of its process; afterwards they are as before."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import structlog


@contextmanager
def restored_logging() -> Iterator[None]:
    root, library = logging.root, logging.getLogger("apscheduler")
    before = root.handlers, root.level, library.level, structlog.get_config()
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.handlers, root.level, library.level, configuration = before
        structlog.configure(**configuration)
        structlog.contextvars.clear_contextvars()
