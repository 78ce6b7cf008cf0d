"""A simulated node in a thread and an event loop of its own, so that it can't slow down whoever watches it."""

from __future__ import annotations

import asyncio
import threading

import structlog

from pinchpoint.simulator.serving.paced import SimulatedNode

log = structlog.get_logger(__name__)


class ThreadedNode:
    """``node``, run apart. ``start`` returns when its servers listen; ``stop`` is bounded."""

    def __init__(self, node: SimulatedNode) -> None:
        self.node = node
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Event | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="simulated node", daemon=True)

    def start(self, timeout_seconds: float = 5.0) -> None:
        """Raises what the node raised while starting, or ``TimeoutError``."""
        self._thread.start()
        if not self._ready.wait(timeout_seconds):
            raise TimeoutError(f"the simulated node did not start within {timeout_seconds} s")
        if self._error is not None:
            raise self._error

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """End it; after ``timeout_seconds`` leave it behind (the thread is a daemon)."""
        if self._loop is not None and self._ending is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ending.set)
        if self._thread.ident is not None:
            self._thread.join(timeout_seconds)

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except Exception as error:  # noqa: BLE001 - the guard of the thread: start() raises it, or it is too late
            self._error = error
            log.error("the simulated node has ended", error=repr(error))
        finally:
            self._ready.set()

    async def _live(self) -> None:
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        await self.node.start()
        self._ready.set()
        waits = {asyncio.create_task(self._ending.wait()), asyncio.create_task(self.node.wait())}
        done, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await self.node.stop()
        for task in done:
            task.result()
