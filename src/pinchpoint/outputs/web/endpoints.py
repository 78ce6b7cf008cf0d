"""What each path answers."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from aiohttp import hdrs, web

from pinchpoint.outputs.published import OPENMETRICS, TEXT, Published, Rendered
from pinchpoint.outputs.scene import Scene
from pinchpoint.outputs.web.negotiation import wants_gzip, wants_json, wants_openmetrics
from pinchpoint.outputs.web.page import OLD_SECONDS, page
from pinchpoint.outputs.web.probed import of_target
from pinchpoint.outputs.web.render_once import RenderOnce
from pinchpoint.outputs.web.settings import WebSettings
from pinchpoint.outputs.web.static import ICON, SCRIPT, STYLE, Asset
from pinchpoint.outputs.web.status import diagnoses, probe_result, status

SCRAPE_SECONDS = 10.0  # Prometheus's default scrape timeout: a client that reads slower has given up

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}

# Of its own: those that everybody uses may all hang on a file.
_THREADS = ThreadPoolExecutor(2, thread_name_prefix="body")

_HTML = "text/html; charset=utf-8"
_JSON = "application/json; charset=utf-8"


class Endpoints:
    """The handlers. They read the newest published tick and nothing else."""

    def __init__(
        self,
        settings: WebSettings,
        published: Callable[[], Published | None],
        reload: Callable[[], Awaitable[str | None]],
    ) -> None:
        self._settings = settings
        self._published = published
        self._reload = reload
        self._render = RenderOnce()
        self._scrapes = 0

    def routes(self) -> list[web.AbstractRouteDef]:
        return [
            web.get("/", self.page),
            web.get(self._settings.telemetry_path, self.metrics),
            web.get("/api/v1/status", self.status),
            web.get("/api/v1/diagnosis", self.diagnosis),
            web.get("/probe", self.probe),
            web.get("/-/healthy", self.healthy),
            web.get("/-/ready", self.readiness),
            web.post("/-/reload", self.reload),
            *(web.get(f"/{asset.path}", _serve(asset)) for asset in (STYLE, SCRIPT, ICON)),
            web.get("/favicon.ico", _serve(ICON)),
        ]

    async def metrics(self, request: web.Request) -> web.StreamResponse:
        """The metrics as they were rendered at the last tick."""
        published = self._published()
        if published is None:
            return _not_yet()
        if age := _overdue_seconds(published.scene):  # a scrape that fails pages somebody; old figures would not
            return web.Response(status=503, text=f"the newest tick is {age:.0f} s old; the log says why\n")
        if self._scrapes >= self._settings.max_requests:
            limit = f"{self._settings.max_requests} scrapes are being answered already (web.max_requests)\n"
            return web.Response(status=503, text=limit, headers={hdrs.RETRY_AFTER: "1"})
        openmetrics = wants_openmetrics(",".join(request.headers.getall(hdrs.ACCEPT, [])))
        rendered, content_type = (published.openmetrics, OPENMETRICS) if openmetrics else (published.text, TEXT)
        self._scrapes += 1
        try:
            return await _sent(request, await _response(request, rendered, content_type))
        finally:
            self._scrapes -= 1

    async def page(self, request: web.Request) -> web.StreamResponse:
        """The status page, or one engine's with ``?engine=NAME``; before the first tick one that says so."""
        published, path = self._published(), self._settings.telemetry_path
        if published is None:
            return web.Response(text=page(None, telemetry_path=path), content_type="text/html", charset="utf-8")
        scene, engine = published.scene, request.query.get("engine")
        shown = int(_overdue_seconds(scene))
        key = (id(scene), scene.snapshot.at, shown, engine)
        kind = "page" if engine is None else "engine"
        body = await self._render.body(kind, key, lambda: page(scene, shown, path, engine))
        return await _sent(request, await _response(request, body, _HTML))

    async def status(self, request: web.Request) -> web.StreamResponse:
        """Everything on the page, as JSON."""
        return await self._json(request, "status", lambda published: status(published.scene))

    async def diagnosis(self, request: web.Request) -> web.StreamResponse:
        """The whole verdict of each engine, as JSON."""
        return await self._json(request, "diagnosis", lambda published: diagnoses(published.scene))

    async def probe(self, request: web.Request) -> web.StreamResponse:
        """What is known of one configured target's probes, as metrics, or as JSON where that is what is asked for.

        Never sends a probe: a request must not spend money.
        """
        published = self._published()
        if published is None:
            return _not_yet()
        target = request.query.get("target")
        if target is None:
            return web.Response(status=400, text="which target? /probe?target=NAME\n")
        snapshot = published.scene.snapshot
        known = {totals.target for totals in snapshot.probe_totals} | {probe.target for probe in snapshot.probes}
        if target not in known:
            return web.Response(status=404, text=f"no such target; configured: {', '.join(sorted(known)) or 'none'}\n")
        accept = ",".join(request.headers.getall(hdrs.ACCEPT, []))
        if wants_json(accept):
            result = probe_result(published.scene, target)
            if result is not None:
                return web.Response(text=_dumps(result), content_type="application/json", charset="utf-8")
            return web.Response(status=503, text="this target was not probed yet\n", headers={hdrs.RETRY_AFTER: "10"})
        if age := _overdue_seconds(published.scene):
            return web.Response(status=503, text=f"the newest tick is {age:.0f} s old; the log says why\n")
        openmetrics = wants_openmetrics(accept)
        rendered, content_type = (published.openmetrics, OPENMETRICS) if openmetrics else (published.text, TEXT)
        chosen = Rendered(await asyncio.to_thread(of_target, rendered.plain, target, openmetrics=openmetrics))
        return await _sent(request, await _response(request, chosen, content_type))

    async def healthy(self, _request: web.Request) -> web.Response:
        """The process runs and its event loop turns."""
        return web.Response(text="pinchpoint is healthy.\n")

    async def readiness(self, _request: web.Request) -> web.Response:
        """There is something to serve."""
        return web.Response(text="pinchpoint is ready.\n") if self._published() else _not_yet()

    async def reload(self, _request: web.Request) -> web.Response:
        """Reads the configuration again, where the operator allowed it."""
        if not self._settings.enable_lifecycle:
            refused = "reload over HTTP is off; start with --web.enable-lifecycle or send SIGHUP\n"
            return web.Response(status=403, text=refused)
        error = await self._reload()
        if error is None:
            return web.Response(text="reloaded\n")
        return web.Response(status=500, text=f"the previous configuration still runs: {error}\n")

    async def _json(
        self, request: web.Request, kind: str, make: Callable[[Published], Mapping[str, object]]
    ) -> web.StreamResponse:
        published = self._published()
        if published is None:
            return _not_yet()
        key = (id(published), published.scene.snapshot.at)
        body = await self._render.body(kind, key, lambda: _dumps(make(published)))
        return await _sent(request, await _response(request, body, _JSON))


def _overdue_seconds(scene: Scene) -> float:
    """The age of a scene that has missed three ticks. 0 till then, so that one page serves a whole tick."""
    age = time.time() - scene.snapshot.at - scene.unix_offset_seconds
    return age if age >= max(OLD_SECONDS, 3 * scene.self_report.tick_seconds) else 0.0


def _dumps(value: object) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":")) + "\n"


def _not_yet() -> web.Response:
    return web.Response(status=503, text="the first tick is not done yet\n", headers={hdrs.RETRY_AFTER: "1"})


async def _in_thread(make: Callable[[], bytes]) -> bytes:
    return await asyncio.get_running_loop().run_in_executor(_THREADS, make)


async def _response(request: web.Request, rendered: Rendered, content_type: str) -> web.Response:
    zipped = wants_gzip(request.headers.get(hdrs.ACCEPT_ENCODING, ""))
    headers = {hdrs.CONTENT_TYPE: content_type, hdrs.VARY: "Accept, Accept-Encoding", hdrs.CACHE_CONTROL: "no-store"}
    if zipped:
        headers[hdrs.CONTENT_ENCODING] = "gzip"
    if zipped:
        body = rendered.gzipped() if rendered.is_gzipped else await _in_thread(rendered.gzipped)
    else:
        body = rendered.plain if rendered.is_whole else await _in_thread(lambda: rendered.plain)
    return web.Response(body=body, headers=headers)


async def _sent(request: web.Request, response: web.Response) -> web.Response:
    """Sends within the deadline: a client that goes away or does not read holds its place no longer than that."""
    try:
        async with asyncio.timeout(SCRAPE_SECONDS):
            await response.prepare(request)
            await response.write_eof()
    except (TimeoutError, ConnectionError):
        if request.transport is not None:
            request.transport.abort()
    return response


def _serve(asset: Asset) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handler(request: web.Request) -> web.StreamResponse:
        kept = "public, max-age=31536000, immutable" if "v" in request.query else "no-cache"
        headers = {hdrs.CONTENT_TYPE: asset.content_type, hdrs.CACHE_CONTROL: kept}
        return web.Response(body=asset.body, headers=headers)

    return handler
