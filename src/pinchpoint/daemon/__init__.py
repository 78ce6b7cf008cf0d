"""The life of the process: build → observe, decide, tell → drain → stop.

Reads like a table of contents: ``observing`` keeps the sources' jobs in step with the settings, ``board`` holds their
last readings, ``deciding`` turns a snapshot into verdicts, ``telling`` renders and publishes, ``announcing`` logs each
change of class, ``alarming`` evaluates the alerts where nobody else does, ``keeping`` remembers over a restart,
``reloading`` takes a new configuration.
Is not: a source, a rule or an output.
"""

from __future__ import annotations

import asyncio
import platform
import signal
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import structlog

from pinchpoint import __version__, logs
from pinchpoint.config import Settings
from pinchpoint.config.state import state_directory
from pinchpoint.daemon.alarming import Alarm
from pinchpoint.daemon.announcing import Announcer
from pinchpoint.daemon.board import Board
from pinchpoint.daemon.deciding import Decider
from pinchpoint.daemon.gpu_switch import gpu_switch
from pinchpoint.daemon.keeping import VERDICTS, Keeper
from pinchpoint.daemon.lag import LoopLag
from pinchpoint.daemon.node import Node, this_node
from pinchpoint.daemon.observing import Observer
from pinchpoint.daemon.reloading import Reloader
from pinchpoint.daemon.remembered import FIRST_SAVE_SECONDS, SAVE_SECONDS, Remembered, remembered_of
from pinchpoint.daemon.telling import Teller
from pinchpoint.daemon.wall_clock import WallClock
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
        self._clock = clock
        self._wall_clock = WallClock(clock)
        self._started_unix = time.time()
        self._stopping = asyncio.Event()
        self.begins_anew = False  # as a new process, once ``run`` has returned
        self.scheduler = Scheduler()
        self.lag = LoopLag(clock)
        self.board = Board(settings, self.node.gpus)
        self.observer = Observer(self.scheduler, self.board, self.node.host, clock, self._own_ports)
        self.decider = Decider(settings)
        self.teller = Teller()
        folder = None if self.node.simulated else state_directory(settings)  # a simulated past is nobody's
        self.keeper = Keeper(folder, VERDICTS)
        self.announcer = Announcer()
        self.reloader = Reloader(load_settings, self._take)
        switch = gpu_switch(self.node.gpus, settings, clock)
        self.web = WebServer(settings.web, self.teller.published, self.reloader.reload, switch)
        self.alarm = Alarm(
            self.scheduler, self.teller.published, folder, lambda: min(self._own_ports(), default=None), clock
        )

    async def run(self) -> None:
        """Lives until ``stop`` is called or a signal comes.

        Raises the web server's error when its port is taken.
        """
        await self.web.start()  # first of all: a slow driver or engine must not delay /-/healthy
        log.info("pinchpoint is up", version=__version__, urls=" ".join(self.web.addresses))
        self._listen_to_signals()
        try:
            self.lag.start()
            self.scheduler.start()
            self.node.gpus.start()
            await self._recall()
            await self.reloader.begin(self.settings)
            self._tick_every(self.settings.tick_seconds, first_run_at_once=True)
            self.scheduler.every("remember", SAVE_SECONDS, self.remember, offset_seconds=FIRST_SAVE_SECONDS)
            await self._stopping.wait()
        finally:
            await self._drain()

    def stop(self) -> None:
        self._stopping.set()

    def _own_ports(self) -> set[int]:
        return {port for url in self.web.addresses if (port := urlsplit(url).port) is not None}

    async def tick(self) -> None:
        """Observe what the sources have, decide and render in the deciding thread, publish."""
        now, unix_offset = self._clock(), self._wall_clock.offset()
        snapshot, sources = self.board.snapshot(now, unix_offset)
        if self.node.gpus.outdated and not self.recorder and not self._stopping.is_set():
            log.warning("the driver was upgraded under this process, which begins anew with its library")
            self.begins_anew = True
            self.stop()
        scene = await self.teller.tell(self.decider, snapshot, self._report(sources), unix_offset)
        self.announcer.announce(scene, self.settings.diagnosis.min_scrapes)

    async def remember(self) -> None:
        """Writes down what must outlive this process, in threads."""
        await asyncio.gather(self.keeper.keep(self._remembered), self.alarm.remember())

    def _remembered(self) -> Mapping[str, Remembered]:
        """In Unix time, also what is known of engines that nobody has found again yet."""
        if (published := self.teller.published()) is None:
            return {}
        offset = published.scene.unix_offset_seconds
        unseen = {name: each.moved(offset) for name, each in self.decider.unseen.items()}
        return {**unseen, **remembered_of(published.scene)}

    async def _recall(self) -> None:
        offset = self._wall_clock.offset()
        self.decider.recall({name: each.moved(-offset) for name, each in (await self.keeper.recall()).items()})

    async def record(self) -> None:
        """Writes the newest snapshot, in a thread: a disk that stalls costs the recording alone."""
        published = self.teller.published()
        if self.recorder and published:
            await asyncio.to_thread(self.recorder.write, published.scene.snapshot)

    async def _take(self, settings: Settings) -> None:
        """Lives by ``settings`` from now on. Nothing here fails, and all of it happens between two ticks."""
        if settings.web != self.settings.web or settings.gpu != self.settings.gpu:
            log.warning("changes of web and gpu settings take effect after a restart")
        if settings.tick_seconds != self.settings.tick_seconds:
            self._tick_every(settings.tick_seconds)
        logs.set_level(settings.log.level)
        self.settings = self.board.settings = self.decider.settings = settings
        await self.observer.apply(settings)
        await self.alarm.follow(settings)

    def _tick_every(self, seconds: float, *, first_run_at_once: bool = False) -> None:
        self.scheduler.every("tick", seconds, self.tick, first_run_at_once=first_run_at_once)
        if self.recorder:
            self.scheduler.every("record", seconds, self.record)

    def _report(self, sources: tuple[SourceReport, ...]) -> SelfReport:
        part = self.settings.discovery.part
        return SelfReport(
            version=__version__,
            python_version=platform.python_version(),
            simulated=self.node.simulated,
            tick_seconds=self.settings.tick_seconds,
            started_timestamp_seconds=self._started_unix,
            event_loop_lag_seconds=self.lag.largest_since_last_asked(),
            render_seconds=self.teller.render_seconds,
            config_last_reload_successful=self.reloader.successful,
            config_last_reload_success_timestamp_seconds=self.reloader.succeeded_unix,
            sources=sources,
            jobs=self.scheduler.reports(),
            discoveries=self.board.found.reports(),
            shard=part.number if part else None,
            shards=part.shards if part else None,
            gpus_expected=self.node.gpus.gpus_expected,
            gpus_visible=self.node.gpus.gpus_visible,
            nvml=self.node.gpus.calls(self._clock()),
            alerting=self.alarm.report(),
        )

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self.reloader.ask)

    async def _drain(self) -> None:
        log.info("pinchpoint is ending")
        self.lag.stop()
        self.observer.abandon_probes()
        await asyncio.gather(self.scheduler.drain(DRAIN_SECONDS), self.web.stop())
        last_words = self.keeper.keep(self._remembered, ended=True)
        await asyncio.gather(self.observer.close(), self.alarm.close(), last_words)
        self.keeper.close()
        self.node.gpus.stop()  # half a second at most; not in a thread, for each of those may hang on a disk
        self.teller.close()
