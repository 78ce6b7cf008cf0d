"""Watches engines for ``pinchpoint diagnose``: a scrape a second, this node's GPUs beside it."""

import asyncio
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TimeRemainingColumn

from pinchpoint.cli.exits import fail, fail_over
from pinchpoint.config import ConfigError, load
from pinchpoint.daemon.board import Board
from pinchpoint.daemon.finding import QUESTIONS
from pinchpoint.daemon.node import this_node
from pinchpoint.snapshot import EngineTarget, Snapshot
from pinchpoint.sources.discovery import find_engines
from pinchpoint.sources.engine import EngineScraper, EngineSettings
from pinchpoint.sources.http import HttpClient
from pinchpoint.sources.process import ProcessFinder

STEP_SECONDS = 1.0


async def watch(
    urls: Sequence[str], seconds: float, access: Mapping[str, Any]
) -> tuple[Sequence[EngineTarget], list[Snapshot]]:
    """The engines behind ``urls``, or those found on loopback, and a snapshot of every second. No engine: nothing.

    ``access`` holds the settings of ``AccessSettings`` that let us in at ``urls``.
    """
    given = tuple(_target(url, access) for url in urls)
    try:
        settings = load()
    except ConfigError as error:
        fail(str(error))
    node = this_node(settings)
    board = Board(settings, node.gpus)
    async with HttpClient() as client:
        targets = given or await find_engines(client.session, QUESTIONS)
        if not targets:
            return (), []
        board.expect_engines(targets, time.monotonic())
        scrapers = [EngineScraper(target, client, settings.engines) for target in targets]
        node.gpus.start()
        if settings.processes.enabled:
            board.put_processes(await asyncio.to_thread(ProcessFinder().look, targets), time.monotonic())
        try:
            return targets, await _snapshots(board, scrapers, seconds)
        finally:
            await asyncio.to_thread(node.gpus.stop)


def _target(url: str, access: Mapping[str, Any]) -> EngineTarget:
    name = url.rpartition("://")[2].rstrip("/")[:100] or "engine"
    try:
        return EngineSettings(name=name, url=url, **access).target()
    except ValidationError as error:
        fail_over(url, error)


async def _snapshots(board: Board, scrapers: Sequence[EngineScraper], seconds: float) -> list[Snapshot]:
    snapshots: list[Snapshot] = []
    for due in _steps(", ".join(scraper.target.engine for scraper in scrapers), seconds):
        outcomes = await asyncio.gather(*(scraper.scrape(time.monotonic) for scraper in scrapers))
        for scraper, outcome in zip(scrapers, outcomes, strict=True):
            board.put_engine(scraper.target.engine, outcome, 0.0)
        snapshots.append(board.snapshot(time.monotonic(), 0.0)[0])
        await asyncio.sleep(max(0.0, due - time.monotonic()))
    return snapshots


def _steps(names: str, seconds: float) -> Iterator[float]:
    """When each step ends, until ``seconds`` have passed, with progress where a terminal watches."""
    started = time.monotonic()
    columns = (SpinnerColumn(), "watching {task.fields[names]}", TimeRemainingColumn())
    console, terminal = Console(stderr=True), sys.stderr.isatty()
    with Progress(*columns, console=console, transient=True, disable=not terminal) as progress:
        task = progress.add_task("watch", total=seconds, names=escape(names))
        while (elapsed := time.monotonic() - started) < seconds:
            progress.update(task, completed=elapsed)
            yield time.monotonic() + STEP_SECONDS
