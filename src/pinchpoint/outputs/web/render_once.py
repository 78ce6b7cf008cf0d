"""Renders each kind of body at most once per tick, in a thread, however many ask for it."""

import asyncio
from collections.abc import Callable, Hashable

from pinchpoint.outputs.published import Rendered


class RenderOnce:
    """Holds the last body of each kind. A body is made anew when its ``key`` changes; who comes meanwhile waits."""

    def __init__(self) -> None:
        self._bodies: dict[str, tuple[Hashable, Rendered]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def body(self, kind: str, key: Hashable, render: Callable[[], str]) -> Rendered:
        """The body of ``kind`` for ``key``. ``kind`` comes from a fixed set: one body is kept for each."""
        async with self._locks.setdefault(kind, asyncio.Lock()):
            held = self._bodies.get(kind)
            if held is None or held[0] != key:
                held = (key, await asyncio.to_thread(_rendered, render))
                self._bodies[kind] = held
            return held[1]


def _rendered(render: Callable[[], str]) -> Rendered:
    # Foreign text may hold lone surrogates, which UTF-8 has no bytes for.
    return Rendered(render().encode("utf-8", "replace"))
