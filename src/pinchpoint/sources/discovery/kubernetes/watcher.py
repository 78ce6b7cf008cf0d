"""The watcher: which scopes there are, and what their pods are together."""

import asyncio
import os
import random
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from pinchpoint.snapshot import Reason
from pinchpoint.sources.discovery.described import let_in
from pinchpoint.sources.discovery.finder import Finding, Say
from pinchpoint.sources.discovery.ground import Ground
from pinchpoint.sources.discovery.kubernetes.api import ApiServer, Scope
from pinchpoint.sources.discovery.kubernetes.cluster import Cluster, cluster_around
from pinchpoint.sources.discovery.kubernetes.engine import engines_of, is_wanted
from pinchpoint.sources.discovery.kubernetes.pods import SILENCE_SECONDS, Pods
from pinchpoint.sources.discovery.kubernetes.settings import EVERY_NAMESPACE, OBJECT_NAME, KubernetesSettings
from pinchpoint.sources.http import SourceError

NAME = "kubernetes"
SETTLE_SECONDS = 0.5  # a rollout changes many pods at once
THREAD_ABOVE_PODS = 100  # each takes some 0.1 ms to check: more would hold up the event loop


class KubernetesWatcher:
    """Tells which pods are engines, whenever that changes: a ``Watcher``.

    ``chance`` gives 0..1, ``sleep`` waits so many seconds, ``environment`` is the pod's.
    """

    name = NAME

    def __init__(
        self,
        settings: KubernetesSettings,
        ground: Ground,
        *,
        chance: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        environment: Mapping[str, str] = os.environ,
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        self._settings, self._ground, self._environment = settings, ground, environment
        self._chance, self._sleep, self._silence = chance, sleep, silence_seconds
        self._build = let_in(ground.build, settings.engine_access.access())

    async def watch(self, say: Say) -> None:
        """Says the whole list whenever it has changed or was confirmed, and each failure, until it is cancelled."""
        settings = self._settings
        try:
            cluster = cluster_around(settings.api_server, settings.service_account, self._environment)
            scopes = await self._scopes(cluster)
        except SourceError as error:  # an environment does not change
            say(error)
            await asyncio.Event().wait()
            return
        api = ApiServer(cluster, self._ground.client, timeout_seconds=settings.timeout_seconds, clock=self._ground.now)
        news = asyncio.Event()
        parts = [
            Pods(
                api,
                scope,
                keep=lambda pod: is_wanted(pod, settings),
                changed=news.set,
                clock=self._ground.now,
                chance=self._chance,
                sleep=self._sleep,
                silence_seconds=self._silence,
            )
            for scope in scopes
        ]
        async with asyncio.TaskGroup() as tasks:
            for part in parts:
                tasks.create_task(part.follow(), name=f"discovery/{NAME}")
            while True:
                await news.wait()
                news.clear()
                if all(part.known is not None or part.failure is not None for part in parts):
                    say(await self._finding(parts))
                await self._sleep(SETTLE_SECONDS)

    async def _scopes(self, cluster: Cluster) -> tuple[Scope, ...]:
        settings = self._settings
        node = self._environment.get("NODE_NAME", "") if settings.node_name is None else settings.node_name
        if node and not re.fullmatch(OBJECT_NAME, node):
            raise SourceError(Reason.INVALID, "NODE_NAME is no name of a node; set node_name")
        namespaces = settings.namespaces or (
            (EVERY_NAMESPACE,) if node else (await asyncio.to_thread(cluster.namespace) or "default",)
        )
        return tuple(
            Scope(
                namespace="" if namespace == EVERY_NAMESPACE else namespace,
                node=node,
                label_selector=settings.label_selector,
            )
            for namespace in namespaces
        )

    async def _finding(self, parts: list[Pods]) -> Finding | SourceError:
        """A part that can't be read holds what it held; where nothing could ever be read there is no list."""
        failure = next((part.failure for part in parts if part.failure is not None), None)
        if failure is not None and all(part.known is None for part in parts):
            return failure
        pods = [pod for part in parts for pod in (part.known or {}).values()]  # as they are now
        ask = partial(engines_of, pods, self._settings, found_by=NAME, build=self._build)
        targets, refused = await asyncio.to_thread(ask) if len(pods) > THREAD_ABOVE_PODS else ask()
        return Finding(targets=targets, refused=refused, failure=failure)
