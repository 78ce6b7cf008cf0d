"""What every finder may use."""

from collections.abc import Callable
from dataclasses import dataclass

from pinchpoint.sources.discovery.described import Build
from pinchpoint.sources.http import HttpClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What every finder may use: a client, how to make an engine of its description, a monotonic clock."""

    client: HttpClient
    build: Build
    now: Callable[[], float]
