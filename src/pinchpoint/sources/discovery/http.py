"""Finds engines by asking a server in Prometheus' http_sd format, every minute or so."""

import asyncio
import json

from pinchpoint.snapshot import Reason
from pinchpoint.sources.discovery.described import let_in
from pinchpoint.sources.discovery.finder import Finding
from pinchpoint.sources.discovery.ground import Ground
from pinchpoint.sources.discovery.groups import read_groups
from pinchpoint.sources.discovery.settings import HttpDiscoverySettings
from pinchpoint.sources.http import JSON, SourceError

MAX_BODY_BYTES = 4 * 2**20  # 10,000 engines with a dozen labels each


class HttpFinder:
    """The engines of one server's list. A list that can't be had or read is a failure; the last one then holds."""

    def __init__(self, settings: HttpDiscoverySettings, ground: Ground) -> None:
        self.name = f"http/{settings.name}"
        self.interval_seconds = settings.interval_seconds
        self._settings, self._ground, self._access = settings, ground, settings.access()
        self._where = settings.url.partition("?")[0]  # a query may hold a key, and what is said ends up in logs
        self._build = let_in(ground.build, settings.engine_access.access())

    async def find(self) -> Finding:
        try:
            answer = await self._ground.client.fetch(
                self._settings.url,
                timeout_seconds=self._settings.timeout_seconds,
                max_body_bytes=MAX_BODY_BYTES,
                now=self._ground.now,
                access=self._access,
                headers={**JSON, "X-Prometheus-Refresh-Interval-Seconds": f"{self._settings.interval_seconds:g}"},
            )
        except SourceError as error:
            raise SourceError(error.reason, f"{self._where}: {error.detail}") from None
        if answer.status in (401, 403):
            raise SourceError(Reason.UNAUTHORIZED, f"{self._where} answers {answer.status}; give it a token")
        if answer.status != 200:
            raise SourceError(Reason.HTTP_STATUS, f"{self._where} answers {answer.status}; check url")
        return await asyncio.to_thread(self._read, answer.body)

    def _read(self, body: bytes) -> Finding:
        try:
            groups = json.loads(body)
        except (ValueError, RecursionError):  # not UTF-8 is a ValueError too
            raise SourceError(Reason.INVALID, f"the answer of {self._where} is no JSON; check url") from None
        return read_groups(groups, self._where, self.name, self._build)
