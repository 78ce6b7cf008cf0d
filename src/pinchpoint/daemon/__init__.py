"""The life of the process: build → observe, decide, tell → drain → stop.

Reads like a table of contents: ``observing`` keeps the sources' jobs in step with the settings, ``board`` holds their
last readings, ``deciding`` turns a snapshot into verdicts, ``telling`` renders and publishes. Is not: a source, a rule
or an output.
"""

from __future__ import annotations

import asyncio
import platform
import signal
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import structlog

from pinchpoint import __version__, logs
from pinchpoint.config import ConfigError, Settings
from pinchpoint.daemon.board import Board
from pinchpoint.daemon.deciding import Decider
from pinchpoint.daemon.lag import LoopLag
from pinchpoint.daemon.node import Node, this_node
from pinchpoint.daemon.observing import Observer
from pinchpoint.daemon.telling import Teller
from pinchpoint.outputs.recorder import Recorder
from pinchpoint.outputs.web import WebServer
from pinchpoint.scheduler import Scheduler
from pinchpoint.snapshot import SelfReport, SourceReport

log = structlog.get_logger(__name__)

DRAIN_SECONDS = 1.0  # with the bounded stops of the web server and the GPUs, a SIGTERM ends the process within 2 s


class Daemon:
    """One running pinchpoint. ``load_settings`` is called anew on each reload; ``settings`` is what it starts with."""

    def __init__(
        self,
        settings: Settings,
        load_settings: Callable[[], Settings],
        *,
        node: Node | None = None,
        recorder: Recorder | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self.node = node or this_node(settings)
        self.recorder = recorder
        self._load_settings = load_settings
        self._clock = clock
        self._started_unix = time.time()
        self._reloaded_unix = self._started_unix
        self._reload_ok = True
        self._reload_lock = asyncio.Lock()
        self._stopping = asyncio.Event()
        self.scheduler = Scheduler()
        self.lag = LoopLag(clock)
        self.board = Board(settings, self.node.gpus, self.node.links)
        self.observer = Observer(self.scheduler, self.board, self.node.host, self.lag, clock, self._own_ports)
        self.decider = Decider(settings)
        self.teller = Teller()
        self.web = WebServer(settings.web, self.teller.published, self.reload)

    async def run(self) -> None:
        """Lives until ``stop`` is called or a signal comes. Raises the web server's error when its port is taken."""
        await self.web.start()  # first of all: a slow driver or engine must not delay /-/healthy
        log.info("pinchpoint is up", version=__version__, urls=" ".join(self.web.addresses))
        self._listen_to_signals()
        try:
            self.lag.start()
            self.scheduler.start()
            self.node.gpus.start()
            await self.observer.apply(self.settings)
            self.scheduler.every("tick", self.settings.tick_seconds, self.tick, first_run_at_once=True)
            if self.recorder:
                self.scheduler.every("record", self.settings.tick_seconds, self.record)
            await self._stopping.wait()
        finally:
            await self._drain()

    def stop(self) -> None:
        self._stopping.set()

    def _own_ports(self) -> set[int]:
        return {port for url in self.web.addresses if (port := urlsplit(url).port) is not None}

    async def tick(self) -> None:
        """Observe what the sources have, decide and render in the deciding thread, publish."""
        now, unix_offset = self._clock(), time.time() - self._clock()
        snapshot, sources = self.board.snapshot(now, unix_offset)
        await self.teller.tell(self.decider, snapshot, self._report(sources), unix_offset)

    async def record(self) -> None:
        """Writes the newest snapshot, in a thread: a disk that stalls costs the recording alone."""
        published = self.teller.published()
        if self.recorder and published:
            await asyncio.to_thread(self.recorder.write, published.scene.snapshot)

    async def reload(self) -> str | None:
        """Takes the configuration anew. A bad one changes nothing: returns its mistakes, ``None`` when all is well."""
        async with self._reload_lock:
            try:
                settings = await asyncio.to_thread(self._load_settings)
            except ConfigError as error:
                self._reload_ok = False
                for problem in error.problems:
                    log.error("configuration not reloaded, the old one stays", problem=str(problem))
                return str(error)
            if settings.web != self.settings.web or settings.gpu != self.settings.gpu:
                log.warning("changes of web and gpu settings take effect after a restart")
            logs.set_level(settings.log.level)
            self.board.settings = settings
            self.decider.settings = settings
            await self.observer.apply(settings)
            if settings.tick_seconds != self.settings.tick_seconds:
                self.scheduler.every("tick", settings.tick_seconds, self.tick)
            self.settings = settings
            self._reload_ok, self._reloaded_unix = True, time.time()
            log.info("configuration reloaded")
            return None

    def _report(self, sources: tuple[SourceReport, ...]) -> SelfReport:
        return SelfReport(
            version=__version__,
            python_version=platform.python_version(),
            simulated=self.node.simulated,
            started_timestamp_seconds=self._started_unix,
            event_loop_lag_seconds=self.lag.largest_since_last_asked(),
            render_seconds=self.teller.render_seconds,
            config_last_reload_successful=self._reload_ok,
            config_last_reload_success_timestamp_seconds=self._reloaded_unix,
            sources=sources,
            jobs=self.scheduler.reports(),
            gpus_expected=self.node.gpus.gpus_expected,
            gpus_visible=self.node.gpus.gpus_visible,
            nvml=self.node.gpus.calls(self._clock()),
        )

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        self._reloads: set[asyncio.Task[str | None]] = set()

        def on_hangup() -> None:
            task = loop.create_task(self.reload(), name="reload")
            self._reloads.add(task)
            task.add_done_callback(self._reloads.discard)

        loop.add_signal_handler(signal.SIGHUP, on_hangup)

    async def _drain(self) -> None:
        log.info("pinchpoint is ending")
        self.lag.stop()
        self.observer.abandon_probes()
        await asyncio.gather(self.scheduler.drain(DRAIN_SECONDS), self.web.stop())
        await self.observer.close()
        await asyncio.to_thread(self.node.gpus.stop)
        self.teller.close()
