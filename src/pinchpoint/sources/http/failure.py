"""The one error of a source that asks over HTTP: no reading, and why."""

from pinchpoint.snapshot import Reason


class SourceError(Exception):
    """No reading could be made.

    ``reason`` is from the closed set that ends up in an ``Absence``. ``detail`` names cause and remedy on one line; it
    does not name the thing asked, which whoever catches this knows.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
