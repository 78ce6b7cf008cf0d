"""A simulated engine behind real HTTP, as vLLM's server answers. Requests from outside join the simulated batch."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from hmac import compare_digest
from random import Random

from aiohttp import web
from aiohttp.typedefs import Handler

from pinchpoint.simulator.engine.request import Request
from pinchpoint.simulator.node.service import Service
from pinchpoint.simulator.node.workload import Lengths
from pinchpoint.simulator.serving.chat import ChatCall, Refusal, chunk, completion, parse_chat, token_text, usage
from pinchpoint.simulator.serving.exposition import CONTENT_TYPE, render

_BODY_LIMIT_BYTES = 1 << 20
_ANSWER = Lengths(median=200, sigma=0.6, low=8)  # where the model stops by itself


class EngineServer:
    """``/metrics``, ``/v1/chat/completions``, ``/v1/models``, ``/health``, ``/version`` of one service.

    Its gateway stands before the chat alone: a delay on the way in, an answer that is held back. ``advance`` plays the
    simulation up to the present, so that a request arrives when it arrives. With an ``api_key``, paths under ``/v1``
    ask for it and the others don't, as in vLLM. When one of its engines has ended, so has it: connections are reset.
    """

    def __init__(
        self, service: Service, advance: Callable[[], None], *, unix_epoch: float = 0.0, api_key: str = ""
    ) -> None:
        self._service, self._advance = service, advance
        self._unix_epoch, self._api_key = unix_epoch, api_key
        self._random = Random(service.world.engine.name)  # noqa: S311 - a seeded model, no secret
        self._identities = itertools.count(1_000_000_000)  # apart from those of the simulated traffic
        self._runner: web.AppRunner | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listen (port 0: any free one). Returns the base URL; raises ``OSError`` when the port is taken."""
        app = web.Application(middlewares=[self._vllm_errors], client_max_size=_BODY_LIMIT_BYTES)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/health", self._health)
        app.router.add_get("/version", self._version)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        # A client that hangs up cancels its handler, which aborts its request.
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        address, bound = self._runner.addresses[0][:2]
        return f"http://{address}:{bound}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _vllm_errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Errors in vLLM's three shapes: ``error`` as text (401), as an object, and ``detail`` from the router."""
        self._check(request, not self._service.dead)
        authorization = request.headers.get("Authorization", "")
        if self._api_key and request.path.startswith("/v1") and not self._knows(authorization):
            return web.json_response({"error": "Unauthorized"}, status=401)
        try:
            return await handler(request)
        except Refusal as refusal:
            return web.json_response(refusal.body, status=refusal.status)
        except web.HTTPMethodNotAllowed as error:
            return web.json_response(
                {"detail": "Method Not Allowed"}, status=405, headers={"Allow": error.headers["Allow"]}
            )
        except web.HTTPNotFound:
            return web.json_response({"detail": "Not Found"}, status=404)

    def _knows(self, authorization: str) -> bool:
        return compare_digest(authorization.encode(), f"Bearer {self._api_key}".encode())

    async def _metrics(self, _: web.Request) -> web.Response:
        self._advance()
        body = render(self._service.engines, self._unix_epoch).encode()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": self._service.world.engine.version})

    async def _models(self, _: web.Request) -> web.Response:
        spec = self._service.world.engine
        card = {
            "id": spec.model,
            "object": "model",
            "created": int(self._unix_epoch),
            "owned_by": "vllm",
            "root": spec.model,
            "parent": None,
            "max_model_len": spec.max_model_len,
        }
        return web.json_response({"object": "list", "data": [card]})

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        call = parse_chat(await http.read(), http.content_type, self._service.world.engine)
        tokens: asyncio.Queue[bool] = asyncio.Queue()
        request = self._submit(call, tokens)
        try:
            return await (self._stream if call.stream else self._answer)(http, call, request, tokens)
        finally:
            if not request.finished:
                self._advance()
                self._service.abort(request)

    def _submit(self, call: ChatCall, tokens: asyncio.Queue[bool]) -> Request:
        self._advance()
        room = self._service.world.engine.max_model_len - call.prompt_tokens
        most = min(call.max_tokens or room, room)
        stops_at = most if call.ignore_eos else _ANSWER.draw(self._random)
        request = Request(
            identity=next(self._identities),
            arrived_at=self._service.now,
            prompt_tokens=call.prompt_tokens,
            output_tokens=min(most, stops_at),
            max_tokens=most,
            finish_reason="stop" if stops_at < most else "length",
            on_token=lambda _: tokens.put_nowait(True),
        )
        self._service.submit(request, lambda: tokens.put_nowait(False))
        return request

    async def _answer(
        self, http: web.Request, call: ChatCall, request: Request, tokens: asyncio.Queue[bool]
    ) -> web.StreamResponse:
        for _ in range(request.output_tokens):
            self._check(http, await tokens.get())
        text = "".join(map(token_text, range(request.output_tokens)))
        used = usage(call.prompt_tokens, request.output_tokens)
        identity, model = f"chatcmpl-{request.identity:016x}", self._service.world.engine.model
        return web.json_response(completion(identity, int(time.time()), model, text, request.finish_reason, used))

    async def _stream(
        self, http: web.Request, call: ChatCall, request: Request, tokens: asyncio.Queue[bool]
    ) -> web.StreamResponse:
        """Headers at once, even when the request queues; the role chunk with the first token; then a token each.

        A gateway that buffers passes all of it on at its end.
        """
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(http)
        held: list[bytes] | None = [] if self._service.world.gateway.buffers else None
        head = (f"chatcmpl-{request.identity:016x}", int(time.time()), self._service.world.engine.model)
        for position in range(request.output_tokens):
            self._check(http, await tokens.get())
            role = chunk(*head, {"role": "assistant", "content": ""}) if position == 0 else b""
            finish = request.finish_reason if position == request.output_tokens - 1 else None
            event = role + chunk(*head, {"content": token_text(position)}, finish)
            if held is None:
                await response.write(event)
            else:
                held.append(event)
        used = chunk(*head, None, used=usage(call.prompt_tokens, request.output_tokens)) if call.include_usage else b""
        await response.write(b"".join(held or ()) + used + b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    @staticmethod
    def _check(http: web.Request, lives: bool) -> None:
        """Reset the connection when nobody is behind it any more."""
        if not lives:
            if http.transport is not None:
                http.transport.abort()
            raise ConnectionResetError
