"""A daemon in a cluster: engines come and go with their pods, and stay while the API server is away."""

import asyncio
import os
from pathlib import Path

from aiohttp import web

from tests.fakes.daemon import RunningDaemon
from tests.fakes.kubernetes_api import FakeKubernetes, pod, service_account

EXPOSITION = b"""# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m",engine="0"} 3.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="m",engine="0"} 0.0
"""


async def served_engine() -> tuple[web.AppRunner, int]:
    async def metrics(request: web.Request) -> web.Response:
        return web.Response(body=EXPOSITION, headers={"Content-Type": "text/plain; version=0.0.4"})

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, runner.addresses[0][1]


async def test_engines_come_and_go_with_their_pods_and_stay_while_the_api_server_is_away(tmp_path: Path) -> None:
    engine, port = await served_engine()
    account = service_account(tmp_path / "account")
    async with FakeKubernetes(account=account) as api:
        api.put(pod("chat-1", ip="127.0.0.1", ports={"http": port}), pod("chat-2", ip="127.0.0.2", ports={"http": 1}))
        environment = {
            **os.environ,
            "NODE_NAME": "node-a",
            "PINCHPOINT_GPU__ENABLED": "false",
            "PINCHPOINT_DISCOVERY__KUBERNETES__ENABLED": "true",
            "PINCHPOINT_DISCOVERY__KUBERNETES__API_SERVER": api.url,
            "PINCHPOINT_DISCOVERY__KUBERNETES__SERVICE_ACCOUNT": str(account),
        }
        daemon = RunningDaemon(tmp_path, env=environment)
        try:
            await asyncio.to_thread(daemon.__enter__)
            source = {"source": "discovery/kubernetes"}
            await asyncio.to_thread(daemon.wait_for_series, "pinchpoint_engine_up", 1.0, engine="ml/chat-1")
            await asyncio.to_thread(daemon.wait_for_series, "pinchpoint_engine_up", 0.0, engine="ml/chat-2")
            await asyncio.to_thread(daemon.wait_for_series, "pinchpoint_source_up", 1.0, **source)

            api.delete("chat-2")
            gone = lambda: not daemon.series("pinchpoint_engine_up", engine="ml/chat-2")  # noqa: E731
            await asyncio.to_thread(daemon.wait_for, gone, "the series of chat-2 to end")

            await api.stop()
            await asyncio.to_thread(daemon.wait_for_series, "pinchpoint_source_up", 0.0, **source)
            assert await asyncio.to_thread(daemon.series, "pinchpoint_engine_up") == [1.0]
            await api.start()
            await asyncio.to_thread(daemon.wait_for_series, "pinchpoint_source_up", 1.0, **source)
            assert "first-token" not in daemon.log
        finally:
            daemon.__exit__()
            await engine.cleanup()
