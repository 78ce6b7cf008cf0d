"""The paged KV cache: blocks counted, not stored."""

from dataclasses import dataclass


@dataclass(slots=True)
class _SharedPrefix:
    blocks: int
    references: int
    forgotten_after: int = 0  # so many blocks taken since the pool began; while unreferenced


class BlockPool:
    """``total`` blocks, one of which is the null block that nobody gets.

    A shared prefix is held once, however many requests use it. When the last of them ends its blocks count as free but
    stay cached until they are taken: free blocks form a queue in order of their release, as in vLLM. Here a prefix is
    forgotten whole when its first block is taken. Invariant: ``free`` + held = ``total`` - 1.
    """

    def __init__(self, total: int) -> None:
        if total < 2:
            raise ValueError(f"a pool needs at least 2 blocks, got {total}")
        self.total = total
        self.free = total - 1
        self._taken = 0
        self._prefixes: dict[str, _SharedPrefix] = {}
        self._idle: dict[str, _SharedPrefix] = {}  # the unreferenced ones, oldest first
        self._idle_blocks = 0

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
        if shared is not None and prefix is not None:
            shared.references += 1
            if revived:
                del self._idle[prefix]
                self._idle_blocks -= revived
        self.free -= blocks + revived
        self._taken += blocks
        if self._idle:
            self._forget()
        return True

    def release(self, blocks: int, prefix: str | None = None) -> None:
        """Give back ``blocks`` and, when named, one reference on ``prefix``."""
        self.free += blocks
        if prefix is not None:
            shared = self._prefixes[prefix]
            shared.references -= 1
            if shared.references == 0:
                shared.forgotten_after = self._taken + self.free
                self._idle[prefix] = shared
                self._idle_blocks += shared.blocks
                self.free += shared.blocks

    def cached_blocks(self, prefix: str) -> int:
        """Blocks of ``prefix`` that a new request would find."""
        shared = self._prefixes.get(prefix)
        return shared.blocks if shared is not None else 0

    def publish(self, prefix: str, blocks: int, referenced: bool = False) -> int:
        """Make the shared ``prefix`` ``blocks`` long, of blocks that the caller owns; then it holds a reference on it.

        ``referenced``: it holds one already, so that a prefix may grow. Returns how many of its blocks are shared now
        that were its own: none when another request was first.
        """
        shared = self._prefixes.get(prefix)
        if shared is None:
            self._prefixes[prefix] = _SharedPrefix(blocks, 1)
            return blocks
        more = blocks - shared.blocks
        if not referenced or more <= 0:
            return 0
        shared.blocks = blocks
        return more

    def _forget(self) -> None:
        while self._idle:
            name, oldest = next(iter(self._idle.items()))
            if self._idle_blocks <= self.free and oldest.forgotten_after >= self._taken:
                return
            del self._idle[name], self._prefixes[name]
            self._idle_blocks -= oldest.blocks
