from collections.abc import Iterator

import pytest

from tests.fakes.process_logging import restored_logging


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """Each command configures the process's logging; the next test finds it as it was."""
    with restored_logging():
        yield
