"""The paged KV cache: blocks counted, not stored."""

from dataclasses import dataclass


@dataclass(slots=True)
class _SharedPrefix:
    blocks: int
    references: int


class BlockPool:
    """``total`` blocks, one of which is the null block that nobody gets.

    A shared prefix is held once, however many requests use it. When the last of them ends its blocks count as free but
    stay cached, until somebody needs the room. Invariant: ``free`` + held = ``total`` - 1.
    """

    def __init__(self, total: int) -> None:
        if total < 2:
            raise ValueError(f"a pool needs at least 2 blocks, got {total}")
        self.total = total
        self.free = total - 1
        self._prefixes: dict[str, _SharedPrefix] = {}

    @property
    def usage_ratio(self) -> float:
        """vLLM's ``kv_cache_usage_perc``: 1 - free / (total - 1). Cached but unreferenced blocks are free."""
        return 1.0 - self.free / (self.total - 1)

    def allocate(self, blocks: int, prefix: str | None = None) -> bool:
        """Take ``blocks`` and one reference on a cached ``prefix``: both, or (False) neither."""
        shared = self._prefixes.get(prefix) if prefix is not None else None
        revived = shared.blocks if shared is not None and shared.references == 0 else 0
        if blocks + revived > self.free:
            return False
        if shared is not None:
            shared.references += 1
        self.free -= blocks + revived
        self._evict()
        return True

    def release(self, blocks: int, prefix: str | None = None) -> None:
        """Give back ``blocks`` and, when named, one reference on ``prefix``."""
        self.free += blocks
        if prefix is not None:
            shared = self._prefixes[prefix]
            shared.references -= 1
            if shared.references == 0:
                self.free += shared.blocks

    def cached_blocks(self, prefix: str) -> int:
        """Blocks of ``prefix`` that a new request would find."""
        shared = self._prefixes.get(prefix)
        return shared.blocks if shared is not None else 0

    def publish(self, prefix: str, blocks: int) -> bool:
        """Turn ``blocks`` that the caller owns into the shared ``prefix``, on which it then holds a reference.

        False (and nothing happens) when another request was first.
        """
        if prefix in self._prefixes:
            return False
        self._prefixes[prefix] = _SharedPrefix(blocks, 1)
        return True

    def _evict(self) -> None:
        """Forget unreferenced prefixes, oldest first, until what is left of them fits into the free blocks."""
        if not self._prefixes:
            return
        unreferenced = {name: p.blocks for name, p in self._prefixes.items() if p.references == 0}
        surplus = sum(unreferenced.values()) - self.free
        for name, blocks in unreferenced.items():
            if surplus <= 0:
                return
            del self._prefixes[name]
            surplus -= blocks
