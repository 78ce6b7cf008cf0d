"""The one error of this room: a scrape that gave no reading, and why."""

from pinchpoint.snapshot import Reason


class ScrapeError(Exception):
    """No reading could be made.

    ``reason`` is from the closed set that ends up in an ``Absence``. ``detail`` names cause and remedy on one line; it
    does not name the engine, which whoever catches this knows.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
