"""A real Chromium without a window, driven over its DevTools protocol."""

import asyncio
import base64
import contextlib
import json
import tempfile
from pathlib import Path
from typing import Any, Literal, Self

import aiohttp

START_SECONDS = 30.0
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip


class Chromium:
    """One page of one browser, for the length of an ``async with``. ``complaints`` is what its console said."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self._number = 0

    async def __aenter__(self) -> Self:
        self._profile = tempfile.TemporaryDirectory(prefix="pinchpoint-chromium-", ignore_cleanup_errors=True)
        self._process = await asyncio.create_subprocess_exec(
            "chromium", *QUIET, f"--user-data-dir={self._profile.name}", "--remote-debugging-port=0", "about:blank",
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        self._http = aiohttp.ClientSession()
        port = await asyncio.wait_for(self._debugging_port(), START_SECONDS)
        async with self._http.get(f"http://127.0.0.1:{port}/json") as answer:
            page = next(tab for tab in await answer.json() if tab["type"] == "page")
        self._socket = await self._http.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0)
        for domain in ("Log", "Runtime", "Page"):
            await self.call(f"{domain}.enable")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._socket.close()
        await self._http.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), 10)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._profile.cleanup()

    async def _debugging_port(self) -> int:
        file = Path(self._profile.name) / "DevToolsActivePort"
        while not file.exists() or not (lines := file.read_text().split()):
            assert self._process.returncode is None, "chromium did not start"
            await asyncio.sleep(0.05)
        return int(lines[0])

    async def call(self, method: str, **parameters: object) -> dict[str, Any]:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            message = json.loads((await asyncio.wait_for(self._socket.receive(), START_SECONDS)).data)
            if message.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
                self.complaints.append(json.dumps(message["params"])[:500])
            if message.get("id") == self._number:
                assert "error" not in message, message
                return dict(message["result"])

    async def open(self, url: str, width: int, theme: Literal["light", "dark"] = "light") -> None:
        """Loads ``url`` in a viewport of exactly ``width`` pixels; below 500 as a phone would."""
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
        )
        await self.call("Page.navigate", url=url)
        while await self.evaluate("document.readyState") != "complete":
            await asyncio.sleep(0.05)

    async def evaluate(self, expression: str) -> Any:
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    async def screenshot(self, file: Path, height: int | None = None) -> None:
        """The whole page, or its first ``height`` pixels, as PNG."""
        width, whole = await self.evaluate("[innerWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": min(whole, height or whole), "scale": 1}
        answer = await self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(answer["data"]))
