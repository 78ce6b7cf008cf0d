"""Which of several pinchpoints watches an engine: a split that every one of them computes alike, by itself."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

MAX_SHARDS = 1000
_WRITTEN = re.compile(r"([0-9]{1,4})/([0-9]{1,4})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shard:
    """Part ``number`` of ``shards``, counted from 0 as Prometheus' hashmod does."""

    number: int
    shards: int

    @classmethod
    def written(cls, text: str) -> Shard:
        """``0/4`` is the first of four. Raises ``ValueError``, "what is wrong; what to do"."""
        match = _WRITTEN.fullmatch(text)
        if not match:
            raise ValueError(f"{text[:20]!r} is no shard; write it like 0/4, the first of four")
        number, shards = int(match[1]), int(match[2])
        if not 1 <= shards <= MAX_SHARDS or number >= shards:
            raise ValueError(
                f"{text!r} is no shard; the first of N (at most {MAX_SHARDS}) is 0/N, the last is {shards - 1}/{shards}"
            )
        return cls(number, shards)

    def has(self, address: str) -> bool:
        """Whether the engine at ``address`` is this shard's. Every address is exactly one shard's."""
        return shard_of(address, self.shards) == self.number

    def __str__(self) -> str:
        return f"{self.number}/{self.shards}"


def shard_of(address: str, shards: int) -> int:
    """The shard of an address, 0..shards-1, the same in every process and release.

    Jump consistent hash (Lamping and Veach, https://arxiv.org/abs/1406.2294) of the address' SHA-256: one more shard
    takes its share from all others and moves nothing else, where a modulus would move nearly every engine.
    """
    key = int.from_bytes(hashlib.sha256(address.encode()).digest()[:8], "big")
    bucket, jump = 0, 0
    while jump < shards:
        bucket = jump
        key = (key * 2862933555777941757 + 1) % 2**64
        jump = int((bucket + 1) * (2**31 / ((key >> 33) + 1)))
    return bucket
