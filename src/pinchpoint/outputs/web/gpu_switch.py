"""POST /-/gpu/pause and /-/gpu/resume: whoever resets or unbinds a GPU has pinchpoint let go of the driver first.

Behind two locks, for a stranger's call would blind the node: the lifecycle flag and a bearer token.
"""

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import hdrs, web
from pydantic import SecretStr

from pinchpoint.outputs.web.settings import WebSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSwitch:
    """What the requests set off. ``pause`` and ``resume`` return whether it is done, and a line for people."""

    token: SecretStr | None
    pause: Callable[[], Awaitable[tuple[bool, str]]]
    resume: Callable[[], Awaitable[tuple[bool, str]]]


class GpuSwitchEndpoints:
    """403: off, and which setting turns it on. 401: wrong token. 503: asked for, and not done yet. 200: done."""

    def __init__(self, settings: WebSettings, switch: GpuSwitch) -> None:
        self._settings, self._switch = settings, switch

    def routes(self) -> list[web.AbstractRouteDef]:
        return [web.post("/-/gpu/pause", self.pause), web.post("/-/gpu/resume", self.resume)]

    async def pause(self, request: web.Request) -> web.Response:
        """NVML is shut down, or what keeps it open."""
        return self._refusal(request) or _answer(*await self._switch.pause())

    async def resume(self, request: web.Request) -> web.Response:
        """NVML is being started again."""
        return self._refusal(request) or _answer(*await self._switch.resume())

    def _refusal(self, request: web.Request) -> web.Response | None:
        if not self._settings.enable_lifecycle:
            off = "off: start with --web.enable-lifecycle (web.enable_lifecycle)\n"
            return web.Response(status=403, text=off)
        if self._switch.token is None:
            off = "off: set a token in gpu.pause_token_file (or gpu.pause_token), and restart\n"
            return web.Response(status=403, text=off)
        given = request.headers.get(hdrs.AUTHORIZATION, "")
        wanted = f"Bearer {self._switch.token.get_secret_value()}"
        if hmac.compare_digest(given.encode(errors="surrogateescape"), wanted.encode()):
            return None
        wrong = "the bearer token is missing or wrong\n"
        return web.Response(status=401, text=wrong, headers={hdrs.WWW_AUTHENTICATE: "Bearer"})


def _answer(done: bool, text: str) -> web.Response:
    return web.Response(status=200 if done else 503, text=f"{text}\n")
