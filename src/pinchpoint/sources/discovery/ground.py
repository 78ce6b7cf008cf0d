"""What every finder may use."""

from collections.abc import Callable
from dataclasses import dataclass

import aiohttp

from pinchpoint.sources.discovery.described import Build


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What every finder may use: a connection pool, how to make an engine of its description, a monotonic clock."""

    session: aiohttp.ClientSession
    build: Build
    now: Callable[[], float]
