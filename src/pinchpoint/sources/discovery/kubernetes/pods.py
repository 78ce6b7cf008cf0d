"""The pods of one scope, as the API server has them: listed once, then followed by a watch that is always resumed."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

from pinchpoint.snapshot import Reason
from pinchpoint.sources.discovery.kubernetes.api import ApiServer, Event, Scope
from pinchpoint.sources.discovery.kubernetes.pod import Pod
from pinchpoint.sources.discovery.kubernetes.refusal import BusyError, GoneError
from pinchpoint.sources.http import SourceError

PAGE_PODS = 100  # about a megabyte
MAX_PAGES = 2000
MAX_PODS = 10_000  # kept; some 15 MB
WATCH_SECONDS = (300, 600)  # as client-go: a server that restarts is not asked by everybody at once
SILENCE_SECONDS = 180.0  # bookmarks come about once a minute
SHORT_SECONDS = 5.0  # a watch that ends sooner, and tells nothing, was none
RELIST_AFTER = 3  # attempts without an event
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, LONGEST_RETRY_AFTER_SECONDS = 0.5, 60.0, 300.0


class Pods:
    """``known`` is what ``keep`` wants of the pods in ``scope``, ``None`` before the first list.

    ``failure`` is set while the server can't be asked; ``known`` stays as it was. ``changed`` is called after every
    change, confirmation and failure. Time and chance come from outside: ``chance`` gives 0..1.
    """

    def __init__(
        self,
        api: ApiServer,
        scope: Scope,
        *,
        keep: Callable[[Pod], bool],
        changed: Callable[[], None],
        clock: Callable[[], float],
        chance: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        self.known: Mapping[str, Pod] | None = None
        self.failure: SourceError | None = None
        self._pods: dict[str, Pod] = {}
        self._version = ""  # of what is known; empty: list anew
        self._attempts = 0  # since the last event
        self._api, self._scope, self._keep, self._changed = api, scope, keep, changed
        self._clock, self._chance, self._sleep, self._silence = clock, chance, sleep, silence_seconds

    async def follow(self) -> None:
        """Keeps ``known`` up to date until it is cancelled."""
        while True:
            at_least = 0.0
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except GoneError:
                self._version = ""
                if self._attempts >= RELIST_AFTER:
                    self._fail(
                        SourceError(Reason.HTTP_STATUS, "the API server answers 410 Gone to its own last version")
                    )
            except SourceError as error:
                self._fail(error)
                at_least = error.retry_after_seconds if isinstance(error, BusyError) else 0.0
            self._attempts += 1
            if self._attempts >= RELIST_AFTER:
                # Some servers end a watch from a version that is too old without a word (kubernetes/kubernetes#104171),
                # and where we may list but not watch, a list is what there is.
                self._version = ""
            await self._sleep(pause_seconds(self._attempts, self._chance(), at_least))

    async def _list(self) -> None:
        pods: dict[str, Pod] = {}
        version, following, limit = "", "", PAGE_PODS
        for _ in range(MAX_PAGES):
            try:
                page = await self._api.page(self._scope, limit=limit, following=following)
            except SourceError as error:
                if error.reason is not Reason.TOO_LARGE or limit == 1:
                    raise
                limit = max(1, limit // 4)
                continue
            pods.update((pod.key, pod) for pod in page.pods if self._keep(pod))
            _check_count(pods)
            version, following = version or page.version, page.following
            if not following:
                break
        else:
            raise SourceError(Reason.TOO_LARGE, f"the list of pods has no end after {MAX_PAGES} pages")
        self.known, self._pods, self._version = pods, pods, version
        self._changed()

    async def _watch(self) -> None:
        began = self._clock()
        low, high = WATCH_SECONDS
        seconds = low + round((high - low) * self._chance())
        async with self._api.watch(self._scope, self._version, seconds=seconds) as stream:
            self.failure = None
            self._changed()
            try:
                while (events := await stream.next(self._silence)) is not None:
                    self._take(events)
            except TimeoutError:  # a connection that a middlebox has forgotten; the next one tells
                pass
        if self._clock() - began >= SHORT_SECONDS:
            self._attempts = 0

    def _take(self, events: Iterable[Event]) -> None:
        """Version by version, so that whatever happens next, what is known is what the server had at that version."""
        told = False
        for event in events:
            if event.type == "BOOKMARK":
                told = True
            elif (pod := event.pod) is not None and event.type in ("ADDED", "MODIFIED", "DELETED"):
                before = self._pods.pop(pod.key, None)
                if event.type != "DELETED" and self._keep(pod):
                    self._pods[pod.key] = pod
                    _check_count(self._pods)
                told |= before != self._pods.get(pod.key)
            self._version = event.version or self._version
            self._attempts = 0
        if told:
            self._changed()

    def _fail(self, error: SourceError) -> None:
        self.failure = error
        self._changed()


def pause_seconds(attempts: int, chance: float, at_least: float = 0.0) -> float:
    """How long to wait after so many attempts in a row, at least as long as the server said, and not as all others."""
    backoff = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(attempts - 1, 16))
    return max(backoff * (0.5 + chance / 2), min(at_least, LONGEST_RETRY_AFTER_SECONDS) * (1 + chance / 4))


def _check_count(pods: Mapping[str, Pod]) -> None:
    if len(pods) > MAX_PODS:
        raise SourceError(
            Reason.TOO_LARGE, f"more than {MAX_PODS} pods are engines; narrow label_selector or namespaces"
        )
