"""A Kubernetes API server that knows pods: TLS by its own authority, pages, watches with history, and ways to fail.

``async with FakeKubernetes() as api``: ``put`` and ``delete`` change the truth, ``compact`` forgets the history,
``cut`` breaks watches, ``answers`` are given instead of the true ones. What it was asked is in ``asked``.
"""

import asyncio
import json
import subprocess
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from typing import Any, Self

from aiohttp import web

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")


def pod(name: str, namespace: str = "ml", **given: Any) -> dict[str, Any]:
    """A pod as the API server tells it: a running vLLM on node-a that may be scraped, but for what is ``given``.

    ``annotations``, ``ports``, ``ip``, ``phase``, ``node``, ``ready``, ``created``, ``labels``.
    """
    ports = given.get("ports", {"http": 8000})
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-of-{name}",
            "creationTimestamp": given.get("created", "2026-11-30T12:00:00Z"),
            "labels": given.get("labels", {"app": "vllm"}),
            "annotations": given.get("annotations", {"pinchpoint.io/scrape": "true"}),
            "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}],
        },
        "spec": {
            "nodeName": given.get("node", "node-a"),
            "containers": [
                {
                    "name": "vllm",
                    "ports": [{"name": n, "containerPort": p, "protocol": "TCP"} for n, p in ports.items()],
                }
            ],
        },
        "status": {
            "phase": given.get("phase", "Running"),
            "podIP": given.get("ip", "10.1.0.7"),
            "conditions": [{"type": "Ready", "status": "True" if given.get("ready", True) else "False"}],
        },
    }


@dataclass(frozen=True, slots=True)
class Answer:
    """What to answer instead: a ``Status`` with ``message``, unless there is a ``body``."""

    status: int
    message: str = "because"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None

    def response(self) -> web.Response:
        status = {"kind": "Status", "code": self.status, "message": self.message}
        return web.Response(
            status=self.status, body=self.body if self.body is not None else json.dumps(status), headers=self.headers
        )


@dataclass(frozen=True, slots=True)
class Asked:
    path: str
    query: Mapping[str, str]
    authorization: str

    @property
    def watches(self) -> bool:
        return "watch" in self.query


@dataclass(slots=True)
class _Watch:
    query: "_Query"
    transport: asyncio.Transport
    lines: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)


class FakeKubernetes:
    def __init__(self, *, account: Path | None = None) -> None:
        """With an ``account`` folder (made by ``service_account``) it speaks TLS and wants its token."""
        self.account = account
        self.tokens = {(account / "token").read_text()} if account else set()
        self.asked: list[Asked] = []
        self.answers: deque[Answer] = deque()  # to whatever is asked next
        self.watch_answers: deque[Answer] = deque()  # to the next watches
        self.gone_as_status = False
        self.shuts_watches_at_once = False
        self.hangs = False
        self.url = ""
        self._version = 100
        self._oldest = 100
        self._pods: dict[tuple[str, str], dict[str, Any]] = {}
        self._history: list[tuple[int, dict[str, Any] | None, dict[str, Any] | None]] = []
        self._pages: dict[str, tuple[int, list[dict[str, Any]]]] = {}
        self._watches: list[_Watch] = []
        self._port = 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/api/v1/pods", self._answer)
        app.router.add_get("/api/v1/namespaces/{namespace}/pods", self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        tls = None
        if self.account:
            tls = SSLContext(PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(self.account / "server.crt", self.account / "server.key")
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=tls, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        """Goes away; ``start`` brings it back at the same address, with what it knew."""
        self.cut()
        await self._runner.cleanup()

    @property
    def watching(self) -> int:
        return len(self._watches)

    def put(self, *items: dict[str, Any]) -> None:
        for item in items:
            self._change(item["metadata"]["namespace"], item["metadata"]["name"], item)

    def delete(self, name: str, namespace: str = "ml") -> None:
        if (namespace, name) in self._pods:
            self._change(namespace, name, None)

    def pods(self) -> list[dict[str, Any]]:
        return list(self._pods.values())

    def compact(self) -> None:
        """Forgets what happened: older versions and half-read lists are gone."""
        self._version += 1
        self._oldest = self._version
        self._history.clear()
        self._pages.clear()

    def bookmark(self) -> int:
        self.say(_line("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(self._version)}}))
        return self._version

    def skip_versions(self, count: int) -> None:
        """Other objects change."""
        self._version += count

    def say(self, data: bytes) -> None:
        """These bytes on every watch."""
        for watch in self._watches:
            watch.lines.put_nowait(data)

    def end(self) -> None:
        """Ends every watch, as after its timeoutSeconds."""
        for watch in self._watches:
            watch.lines.put_nowait(None)
        self._watches.clear()

    def cut(self) -> None:
        """Breaks the connection of every watch."""
        for watch in self._watches:
            watch.transport.abort()
        self._watches.clear()

    def _change(self, namespace: str, name: str, item: dict[str, Any] | None) -> None:
        self._version += 1
        before = self._pods.pop((namespace, name), None)
        if item is not None:
            item = {**item, "metadata": {**item["metadata"], "resourceVersion": str(self._version)}}
            self._pods[namespace, name] = item
        self._history.append((self._version, before, item))
        for watch in self._watches:
            if line := _told(watch.query, self._version, before, item):
                watch.lines.put_nowait(line)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        asked = Asked(request.path, dict(request.query), request.headers.get("Authorization", ""))
        self.asked.append(asked)
        if self.tokens and asked.authorization.removeprefix("Bearer ") not in self.tokens:
            return Answer(401, "Unauthorized").response()
        if self.hangs:
            await asyncio.sleep(3600)
        if self.answers:
            return self.answers.popleft().response()
        if not asked.watches:
            return self._list(request)
        if self.watch_answers:
            return self.watch_answers.popleft().response()
        return await self._watch(request)

    def _list(self, request: web.Request) -> web.Response:
        if token := request.query.get("continue"):
            if token not in self._pages:
                return Answer(410, "The provided continue parameter is too old").response()
            version, items = self._pages.pop(token)
        else:
            version = self._version
            items = [item for item in self._pods.values() if _matches(_query(request), item)]
        limit = int(request.query.get("limit", "1000000"))
        metadata = {"resourceVersion": str(version)}
        if items[limit:]:
            metadata["continue"] = token = f"{version}-{len(items)}-{len(self.asked)}"
            self._pages[token] = (version, items[limit:])
        return web.json_response({"kind": "PodList", "metadata": metadata, "items": items[:limit]})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        since, query = int(request.query["resourceVersion"]), _query(request)
        if since < self._oldest and self.gone_as_status:
            return Answer(410, "too old resource version").response()
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        if self.shuts_watches_at_once:
            return response
        if since < self._oldest:
            await response.write(_line("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version"}))
            return response
        assert request.transport is not None
        watch = _Watch(query, request.transport)
        for version, before, item in self._history:
            if version > since and (line := _told(query, version, before, item)):
                watch.lines.put_nowait(line)
        self._watches.append(watch)
        try:
            with suppress(ConnectionError):
                while (line := await watch.lines.get()) is not None:
                    await response.write(line)
        finally:
            if watch in self._watches:
                self._watches.remove(watch)
        return response


@dataclass(frozen=True, slots=True)
class _Query:
    namespace: str
    fields: tuple[tuple[str, str], ...]
    labels: tuple[tuple[str, str], ...]


def _query(request: web.Request) -> _Query:
    return _Query(
        request.match_info.get("namespace", ""),
        _pairs(request.query.get("fieldSelector", "")),
        _pairs(request.query.get("labelSelector", "")),
    )


def _pairs(selector: str) -> tuple[tuple[str, str], ...]:
    return tuple((part.partition("=")[0], part.partition("=")[2]) for part in selector.split(",") if part)


def _matches(query: _Query, item: dict[str, Any] | None) -> bool:
    if item is None or query.namespace not in ("", item["metadata"]["namespace"]):
        return False
    known = {"status.phase": item["status"]["phase"], "spec.nodeName": item["spec"]["nodeName"]}
    labels = item["metadata"]["labels"]
    return all(known[key] == value for key, value in query.fields) and all(labels.get(k) == v for k, v in query.labels)


def _told(query: _Query, version: int, before: dict[str, Any] | None, item: dict[str, Any] | None) -> bytes:
    """The event that a watch with ``query`` is told: what leaves its selection is deleted to it."""
    was, there = _matches(query, before), _matches(query, item)
    if not was and not there:
        return b""
    told = item if there else before
    assert told is not None
    told = {**told, "metadata": {**told["metadata"], "resourceVersion": str(version)}}
    return _line("DELETED" if not there else "MODIFIED" if was else "ADDED", told)


def _line(type_: str, item: Mapping[str, Any]) -> bytes:
    return json.dumps({"type": type_, "object": item}).encode() + b"\n"


def service_account(folder: Path, *, token: str = "first-token", namespace: str = "ml") -> Path:
    """What Kubernetes mounts into a pod, and beside it the server's certificate by that authority."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "token").write_text(token)
    (folder / "namespace").write_text(namespace)
    _openssl(folder, "req", "-x509", *CURVE, "-subj", "/CN=cluster", "-keyout", "ca.key", "-out", "ca.crt")
    _openssl(
        folder,
        *("req", "-x509", *CURVE, "-subj", "/CN=apiserver", "-addext", "subjectAltName=IP:127.0.0.1"),
        *("-addext", "basicConstraints=critical,CA:FALSE", "-addext", "keyUsage=critical,digitalSignature"),
        *("-CA", "ca.crt", "-CAkey", "ca.key", "-keyout", "server.key", "-out", "server.crt"),
    )
    return folder


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
