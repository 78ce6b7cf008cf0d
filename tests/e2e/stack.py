"""The real peers, as Debian packages them, on loopback: Prometheus, VictoriaMetrics, Alertmanager; and who they notify.

Each is an async context manager: it starts its program in a folder of its own, waits until that is ready, and ends it
by its id. Whatever fails says so with the last lines of the program's log.
"""

import asyncio
import contextlib
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import aiohttp
import yaml
from aiohttp import web

READY_SECONDS = 30.0  # generous: two busy cores share everything
POLL_SECONDS = 0.1


def free_port() -> int:
    """A loopback port that is free now. Somebody may take it before it is used: start again with another then."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Program:
    """One program on a loopback port, for the length of an ``async with``."""

    binary: str
    ready_path: str
    scheme = "http"
    port = 0  # where to listen; 0: anywhere

    def __init__(self, folder: Path) -> None:
        self.folder = folder / f"{self.binary}-{time.monotonic_ns()}"
        self.url = ""
        self.log = self.folder / "log"

    def flags(self, listen: str) -> Sequence[str]:
        """Writes what the program reads, returns its flags."""
        raise NotImplementedError

    def let_in(self) -> Mapping[str, Any]:
        """What a client session needs so that it may ask."""
        return {}

    async def __aenter__(self) -> Self:
        self.folder.mkdir(parents=True)
        self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10), **self.let_in())
        for attempt in range(3):
            listen = f"127.0.0.1:{self.port or free_port()}"
            self.url = f"{self.scheme}://{listen}"
            with self.log.open("wb") as log:
                self._process = await asyncio.create_subprocess_exec(
                    # setpriv: when the tests are killed, their programs go with them
                    *("setpriv", "--pdeathsig", "KILL", self.binary, *self.flags(listen)),
                    cwd=self.folder,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            if await self._is_ready():
                return self
            await self._end()
            if "address already in use" not in self.tail() or attempt == 2:
                break
        await self._http.close()
        raise AssertionError(f"{self.binary} does not start:\n{self.tail()}")

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()
        await self._end()

    async def _is_ready(self) -> bool:
        deadline = time.monotonic() + READY_SECONDS
        while self._process.returncode is None and time.monotonic() < deadline:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                async with self._http.get(self.url + self.ready_path) as answer:
                    if answer.status == 200:
                        return True
            await asyncio.sleep(POLL_SECONDS)
        return False

    async def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), 5)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def tail(self, lines: int = 20) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    async def get(self, path: str, **parameters: str) -> Any:
        async with self._http.get(self.url + path, params=parameters) as answer:
            body = await answer.json(content_type=None)
            assert answer.status == 200, f"{self.binary} answers {answer.status} to {path} {parameters}: {body}"
            return body


class Prometheus(Program):
    """A Prometheus that scrapes ``targets`` (job → ``host:port``) every second.

    ``rules`` are rule files, ``alertmanager`` where alerts go; ``config`` is merged over the configuration's top level.
    """

    binary, ready_path = "prometheus", "/-/ready"

    def __init__(
        self,
        folder: Path,
        targets: Mapping[str, str],
        *,
        rules: Sequence[Path] = (),
        alertmanager: "Alertmanager | None" = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(folder)
        self.config: dict[str, Any] = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "scrape_configs": _scrape_configs(targets),
            "rule_files": [str(rule.absolute()) for rule in rules],
        }
        if alertmanager:
            peers = [{"static_configs": [{"targets": [alertmanager.url.removeprefix("http://")]}]}]
            self.config["alerting"] = {"alertmanagers": peers}
        self.config.update(config or {})

    def flags(self, listen: str) -> Sequence[str]:
        config = self.folder / "prometheus.yml"
        config.write_text(yaml.safe_dump(self.config))
        return (
            f"--config.file={config}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address={listen}",
            "--rules.alert.resend-delay=1s",
            "--log.level=warn",
        )

    async def query(self, expr: str) -> list[dict[str, Any]]:
        """The instant vector of ``expr``: ``[{"metric": {…}, "value": [time, "text"]}]``. A scalar is one sample."""
        data = (await self.get("/api/v1/query", query=expr))["data"]
        if data["resultType"] == "scalar":
            return [{"metric": {}, "value": data["result"]}]
        return list(data["result"])

    async def value(self, expr: str) -> float:
        """The value of an expression that yields exactly one sample."""
        samples = await self.query(expr)
        assert len(samples) == 1, f"{expr} yields {len(samples)} samples"
        return float(samples[0]["value"][1])

    async def wait_until(self, expr: str, timeout: float = 30) -> list[dict[str, Any]]:
        """The first answer to ``expr`` that is not empty."""
        deadline = time.monotonic() + timeout
        while not (samples := await self.query(expr)):
            if time.monotonic() > deadline:
                targets = [(t["scrapeUrl"], t["health"], t["lastError"]) for t in await self.targets()]
                raise AssertionError(f"{expr} stays empty for {timeout} s; targets {targets};\n{self.tail()}")
            await asyncio.sleep(POLL_SECONDS)
        return samples

    async def targets(self) -> list[dict[str, Any]]:
        """The active targets with ``health`` and ``lastError``."""
        return list((await self.get("/api/v1/targets", state="active"))["data"]["activeTargets"])


class VictoriaMetrics(Prometheus):
    """The same questions to VictoriaMetrics (single node), which knows no rules and no Alertmanager.

    Whoever asks for a series too early is told for the next 10 s that there is none.
    """

    binary, ready_path = "victoria-metrics", "/health"

    def __init__(self, folder: Path, targets: Mapping[str, str]) -> None:
        super().__init__(folder, targets)
        del self.config["rule_files"], self.config["global"]["evaluation_interval"]

    def flags(self, listen: str) -> Sequence[str]:
        config = self.folder / "scrape.yml"
        config.write_text(yaml.safe_dump(self.config))
        return (
            f"-promscrape.config={config}",
            "-promscrape.config.strictParse=true",
            f"-storageDataPath={self.folder / 'data'}",
            f"-httpListenAddr={listen}",
            "-search.latencyOffset=0s",  # else the newest 30 s are hidden
            "-memory.allowedBytes=128MB",
            "-loggerLevel=WARN",
        )

    async def wait_until(self, expr: str, timeout: float = 30) -> list[dict[str, Any]]:
        await asyncio.sleep(2)  # scraped and flushed by then
        return await super().wait_until(expr, timeout)


class Alertmanager(Program):
    """An Alertmanager that notifies ``webhook_url`` within a second, or as ``config`` says."""

    binary, ready_path = "prometheus-alertmanager", "/-/ready"

    def __init__(self, folder: Path, webhook_url: str, *, config: Mapping[str, Any] | None = None) -> None:
        super().__init__(folder)
        quick = {"group_by": ["alertname"], "group_wait": "1s", "group_interval": "1s", "repeat_interval": "1h"}
        self.config = config or {
            "route": {"receiver": "webhook", **quick},
            "receivers": [{"name": "webhook", "webhook_configs": [{"url": webhook_url, "send_resolved": True}]}],
        }

    def flags(self, listen: str) -> Sequence[str]:
        config = self.folder / "alertmanager.yml"
        config.write_text(yaml.safe_dump(dict(self.config)))
        return (
            f"--config.file={config}",
            f"--storage.path={self.folder / 'data'}",
            f"--web.listen-address={listen}",
            "--cluster.listen-address=",
            "--log.level=warn",
        )

    async def alerts(self) -> list[dict[str, Any]]:
        return list(await self.get("/api/v2/alerts"))

    async def post(self, *alerts: Mapping[str, Any]) -> None:
        async with self._http.post(self.url + "/api/v2/alerts", json=alerts) as answer:
            assert answer.status == 200, await answer.text()


@dataclass
class WebhookSink:
    """Who is paged: collects what Alertmanager posts."""

    payloads: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/", self._receive)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _receive(self, request: web.Request) -> web.Response:
        self.payloads.append(await request.json())
        return web.Response()

    def alerts(self, name: str, status: str) -> list[dict[str, Any]]:
        """Each notified alert of that name and status (``firing``, ``resolved``), in order of arrival."""
        every = (alert for payload in self.payloads for alert in payload["alerts"])
        return [alert for alert in every if alert["labels"].get("alertname") == name and alert["status"] == status]

    async def wait_for(self, name: str, status: str, timeout: float = 30) -> dict[str, Any]:
        """The first alert of that name and status."""
        deadline = time.monotonic() + timeout
        while not (found := self.alerts(name, status)):
            seen = [(a["labels"].get("alertname"), a["status"]) for p in self.payloads for a in p["alerts"]]
            assert time.monotonic() < deadline, f"no {name} {status} within {timeout} s; seen: {seen}"
            await asyncio.sleep(POLL_SECONDS)
        return found[0]


def _scrape_configs(targets: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"job_name": job, "static_configs": [{"targets": [address]}]} for job, address in targets.items()]
