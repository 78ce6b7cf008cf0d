"""From a scene to bytes, off the event loop: what a scrape is served."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from pinchpoint.daemon.deciding import Decider
from pinchpoint.outputs.exposition import Renderer
from pinchpoint.outputs.published import Published
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import SelfReport, Snapshot


class Teller:
    """Decides and renders in one thread of its own, and swaps the result in as one object."""

    def __init__(self) -> None:
        self._renderer = Renderer()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tick")
        self._published: Published | None = None
        self.render_seconds: float | None = None

    def published(self) -> Published | None:
        return self._published

    async def tell(self, decider: Decider, snapshot: Snapshot, report: SelfReport, unix_offset: float) -> Scene:
        """Returns the scene that is published from now on."""
        loop = asyncio.get_running_loop()
        published = await loop.run_in_executor(
            self._thread, self._decide_and_render, decider, snapshot, report, unix_offset
        )
        self._published = published
        return published.scene

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _decide_and_render(
        self, decider: Decider, snapshot: Snapshot, report: SelfReport, unix_offset: float
    ) -> Published:
        scene = decider.decide(snapshot, report, unix_offset)
        started = time.perf_counter()
        text, openmetrics = self._renderer.render(scene)
        self.render_seconds = time.perf_counter() - started
        return Published(scene, text, openmetrics)
