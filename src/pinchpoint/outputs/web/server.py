"""The life of the HTTP server: listen, serve, close."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import structlog
from aiohttp import web
from aiohttp.http import HttpProcessingError

from pinchpoint.outputs.published import Published
from pinchpoint.outputs.web.endpoints import SECURITY_HEADERS, Endpoints
from pinchpoint.outputs.web.gpu_switch import GpuSwitch, GpuSwitchEndpoints
from pinchpoint.outputs.web.listen import BACKLOG, listen, url_of
from pinchpoint.outputs.web.settings import WebSettings

STOP_SECONDS = 0.4  # for answers on their way; the process has two seconds to end in
KEEPALIVE_SECONDS = 75.0  # longer than Prometheus's usual 15 to 60 s interval, so that a scrape finds its connection
MAX_BODY_BYTES = 1024  # no endpoint reads a body

log = structlog.get_logger(__name__)


def _is_no_refusal(record: logging.LogRecord) -> bool:
    """A request that is no HTTP got its 400; a line for each would let a port scanner write our log."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


logging.getLogger("aiohttp.server").addFilter(_is_no_refusal)


class WebServer:
    """Serves the newest published tick until ``stop``.

    ``published`` is the newest tick or ``None`` before the first; ``reload`` reads the configuration again and returns
    ``None``, or the error as text; ``gpu_switch`` lets go of the GPUs' driver and takes it again.
    """

    def __init__(
        self,
        settings: WebSettings,
        published: Callable[[], Published | None],
        reload: Callable[[], Awaitable[str | None]],
        gpu_switch: GpuSwitch | None = None,
    ) -> None:
        self._settings = settings
        self._routes = Endpoints(settings, published, reload).routes()
        if gpu_switch:
            self._routes += GpuSwitchEndpoints(settings, gpu_switch).routes()
        self._runner: web.AppRunner | None = None
        self.addresses: tuple[str, ...] = ()

    async def start(self) -> None:
        """Listens; returns once requests are answered. Raises ``ListenError``: one line with cause and remedy."""
        sock = await asyncio.to_thread(listen, self._settings.listen_address)
        app = web.Application(middlewares=[_unknown_path], client_max_size=MAX_BODY_BYTES)
        app.on_response_prepare.append(_secure)
        app.add_routes(self._routes)
        # No access log: a line per scrape says nothing.
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=STOP_SECONDS, keepalive_timeout=KEEPALIVE_SECONDS
        )
        await self._runner.setup()
        await web.SockSite(self._runner, sock, backlog=BACKLOG).start()
        self.addresses = (url_of(sock),)
        log.info("web server listens", url=self.addresses[0])

    async def stop(self) -> None:
        """Stops listening, gives running answers ``STOP_SECONDS`` and closes every connection. May be called twice."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()
        self.addresses = ()


async def _secure(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(SECURITY_HEADERS)


@web.middleware
async def _unknown_path(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return web.Response(status=404, text="nothing here; / is the status page\n")
