"""Real databases with a past that is given to them instead of being scraped."""

import asyncio
import shutil
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Self

from tests.e2e.history import Scrape
from tests.e2e.stack import Prometheus, VictoriaMetrics

_BATCH_BYTES = 16 * 2**20


def write_openmetrics(file: Path, scrapes: Iterable[Scrape]) -> None:
    """Every sample with its time, as ``promtool`` and ``BackfilledVictoria`` take them."""
    with file.open("w") as out:
        for scrape in scrapes:
            out.writelines(f"{series} {value} {scrape.at:.3f}\n" for series, value in scrape.samples)
        out.write("# EOF\n")


class BackfilledPrometheus(Prometheus):
    """A Prometheus that scrapes nobody and remembers what is in ``past`` (OpenMetrics with times).

    A series is gone ``lookback`` after its last sample: nothing is marked stale here.
    """

    def __init__(self, folder: Path, past: Path, lookback: str = "30s") -> None:
        super().__init__(folder, {})
        self._past, self._lookback = past, lookback

    async def __aenter__(self) -> Self:
        blocks = self._past.with_suffix(".blocks")
        if not blocks.exists():
            made = await asyncio.create_subprocess_exec(
                *("promtool", "tsdb", "create-blocks-from", "openmetrics", str(self._past), str(blocks)),
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
            _, told = await made.communicate()
            assert made.returncode == 0, told.decode()[-2000:]
        self._blocks = blocks
        return await super().__aenter__()

    def flags(self, listen: str) -> Sequence[str]:
        shutil.copytree(self._blocks, self.folder / "data", dirs_exist_ok=True)
        return (
            *super().flags(listen),
            "--storage.tsdb.retention.time=100y",
            f"--query.lookback-delta={self._lookback}",
        )


class BackfilledVictoria(VictoriaMetrics):
    """A VictoriaMetrics likewise."""

    def __init__(self, folder: Path, past: Path) -> None:
        super().__init__(folder, {})
        self._past = past

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        try:
            with self._past.open() as lines:
                while batch := lines.readlines(_BATCH_BYTES):
                    await self._import("".join(map(_in_milliseconds, batch)))
            await self.get("/internal/force_flush")
            await self.get("/internal/resetRollupResultCache")
        except BaseException:
            await self.__aexit__()
            raise
        return self

    def flags(self, listen: str) -> Sequence[str]:
        return (*super().flags(listen), "-retentionPeriod=100y", "-search.maxStalenessInterval=30s")

    async def _import(self, body: str) -> None:
        async with self._http.post(f"{self.url}/api/v1/import/prometheus", data=BytesIO(body.encode())) as answer:
            assert answer.status == 204, await answer.text()


def _in_milliseconds(line: str) -> str:
    sample, _, at = line.rstrip().rpartition(" ")
    return line if line.startswith("#") else f"{sample} {at.replace('.', '')}\n"
