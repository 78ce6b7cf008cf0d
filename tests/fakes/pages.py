"""An HTTP server of a few fixed pages on a real socket, which remembers what it was asked for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web


@dataclass
class Page:
    body: bytes | str = b""
    status: int = 200
    content_type: str = "text/plain; version=0.0.4"
    token: str = ""  # that must be given
    seconds: float = 0.0  # until it answers


@dataclass
class Pages:
    """``pages`` may be changed while it serves; what is not in it is a 404."""

    pages: dict[str, Page]
    asked: list[str] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    url: str = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path_qs)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            page = self.pages.get(request.path, Page(b"not found", 404))
            await asyncio.sleep(page.seconds)
            if page.token and request.headers.get("Authorization") != f"Bearer {page.token}":
                return web.Response(status=401, text='{"error":{"message":"Invalid API Key"}}')
            body = page.body.encode() if isinstance(page.body, str) else page.body
            return web.Response(status=page.status, body=body, headers={"Content-Type": page.content_type})
        finally:
            self.in_flight -= 1


@asynccontextmanager
async def serving(**pages: Page) -> AsyncIterator[Pages]:
    """Pages by path, with ``__`` for a slash: ``v1__models``."""
    served = Pages({f"/{name.replace('__', '/')}": page for name, page in pages.items()})
    app = web.Application()
    app.router.add_get("/{rest:.*}", served.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    served.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield served
    finally:
        await runner.cleanup()
