"""Writes samples of the past into a Prometheus, stale markers too: its remote-write protocol 0.1.0, by hand.

One request is protobuf (``prometheus.WriteRequest``) in snappy's block format, here without any compression.
"""

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.e2e.stack import Prometheus, VictoriaMetrics

_STALE_BYTES = struct.pack("<Q", 0x7FF0000000000002)
HEADERS = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
Written = tuple[Mapping[str, str], Sequence[tuple[int, float | None]]]  # labels; milliseconds and value, None: stale


class WritablePrometheus(Prometheus):
    """A Prometheus that scrapes nothing and takes what it is given, old as it may be."""

    def __init__(self, folder: Path, *, rules: Sequence[Path] = ()) -> None:
        super().__init__(folder, {}, rules=rules)

    def flags(self, listen: str) -> Sequence[str]:
        return (*super().flags(listen), "--web.enable-remote-write-receiver", "--storage.tsdb.retention.time=10y")

    async def write(self, series: Iterable[Written]) -> None:
        await _write(self, series)


class WritableVictoriaMetrics(VictoriaMetrics):
    """A VictoriaMetrics that scrapes nothing and takes what it is given."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, {})

    def flags(self, listen: str) -> Sequence[str]:
        return (*super().flags(listen), "-retentionPeriod=10y", "-search.disableCache")

    async def write(self, series: Iterable[Written]) -> None:
        await _write(self, series)
        await self.get("/internal/force_flush")


async def _write(database: Prometheus, series: Iterable[Written]) -> None:
    body = snappy(b"".join(_field(1, _series(labels, samples)) for labels, samples in series))
    async with database._http.post(f"{database.url}/api/v1/write", data=body, headers=HEADERS) as answer:
        assert answer.status in (200, 204), f"{answer.status}: {await answer.text()}"


def snappy(body: bytes) -> bytes:
    """``body`` as one literal of snappy's block format."""
    return _varint(len(body)) + b"\xfc" + struct.pack("<I", len(body) - 1) + body


def _series(labels: Mapping[str, str], samples: Sequence[tuple[int, float | None]]) -> bytes:
    named = b"".join(_field(1, _field(1, k.encode()) + _field(2, v.encode())) for k, v in sorted(labels.items()) if v)
    return named + b"".join(_field(2, b"\x09" + _number(value) + b"\x10" + _varint(at)) for at, value in samples)


def _number(value: float | None) -> bytes:
    if value is None:
        return _STALE_BYTES
    return struct.pack("<Q", 0x7FF8000000000001) if math.isnan(value) else struct.pack("<d", value)


def _field(number: int, body: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(body)) + body


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
