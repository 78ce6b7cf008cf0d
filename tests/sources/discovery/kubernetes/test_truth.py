"""Whatever happens to pods, history and connections in whatever order: in the end the list is the server's truth."""

import asyncio
from contextlib import AsyncExitStack

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.fakes.kubernetes_api import Answer, FakeKubernetes, pod
from tests.sources.discovery.kubernetes.following import following

NAMES = st.sampled_from(["chat-1", "chat-2", "chat-3"])
NAMESPACES = st.sampled_from(["ml", "prod"])
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "annotations": st.sampled_from(
            [{}, {"pinchpoint.io/scrape": "false"}, {"pinchpoint.io/scrape": "true", "pinchpoint.io/port": "9"}]
        ),
        "phase": st.sampled_from(["Pending", "Running", "Failed"]),
        "node": st.sampled_from(["node-a", "node-b"]),
        "ip": st.sampled_from(["", "10.1.0.7", "10.1.0.8", "fd00::7"]),
        "ready": st.booleans(),
    },
)


class Truth(RuleBasedStateMachine):
    """Runs a watcher and a server in a loop of its own, which goes on for a moment, or not at all, after each step."""

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.stack = AsyncExitStack()
        self.run(self._begin())

    async def _begin(self) -> None:
        self.api = await self.stack.enter_async_context(FakeKubernetes())
        self.follows = await self.stack.enter_async_context(following(self.api, silence_seconds=0.05))

    def run(self, work: object) -> None:
        self.loop.run_until_complete(work)  # type: ignore[arg-type]

    @rule(name=NAMES, namespace=NAMESPACES, change=CHANGES)
    def put(self, name: str, namespace: str, change: dict[str, object]) -> None:
        self.api.put(pod(name, namespace, **change))

    @rule(name=NAMES, namespace=NAMESPACES)
    def delete(self, name: str, namespace: str) -> None:
        self.api.delete(name, namespace)

    @rule(as_status=st.booleans())
    def forget_the_history(self, as_status: bool) -> None:
        self.api.gone_as_status = as_status
        self.api.compact()

    @rule(how=st.sampled_from(["cut", "end", "bookmark"]))
    def happens_to_the_watch(self, how: str) -> None:
        getattr(self.api, how)()

    @rule(
        line=st.sampled_from([b'{"type": "MODIF', b"rubbish\n", b"\n", b'{"type": "ERROR", "object": {"code": 500}}\n'])
    )
    def says_what_it_should_not(self, line: bytes) -> None:
        self.api.say(line)
        self.api.end()

    @rule(status=st.sampled_from([401, 403, 410, 429, 500]))
    def refuses(self, status: int) -> None:
        self.api.answers.append(Answer(status))

    @rule(steps=st.integers(1, 30))
    def goes_on(self, steps: int) -> None:
        self.run(self._go_on(steps))

    async def _go_on(self, steps: int) -> None:
        for _ in range(steps):
            await asyncio.sleep(0.0005)

    @rule()
    def settles(self) -> None:
        self.run(self._is_the_truth())

    async def _is_the_truth(self) -> None:
        self.api.answers.clear()
        wanted = {
            (f"{item['metadata']['namespace']}/{item['metadata']['name']}", _url(item), str(_ready(item)).lower())
            for item in self.api.pods()
            if item["metadata"]["annotations"].get("pinchpoint.io/scrape") == "true"
            and item["spec"]["nodeName"] == "node-a"
            and (item["status"]["phase"], bool(item["status"]["podIP"])) == ("Running", True)
        }
        await self.follows.until(lambda: self._told() == wanted and self.follows.failure is None)

    def _told(self) -> set[tuple[str, str, str]]:
        targets = getattr(self.follows.last, "targets", ())
        return {(target.engine, target.url, target.labels["ready"]) for target in targets}

    def teardown(self) -> None:
        try:
            self.run(self._is_the_truth())
        finally:
            self.run(self.stack.aclose())
            self.loop.close()


def _url(item: dict[str, dict[str, str]]) -> str:
    ip = item["status"]["podIP"]
    port = item["metadata"]["annotations"].get("pinchpoint.io/port", "8000")  # type: ignore[attr-defined]
    return f"http://{f'[{ip}]' if ':' in ip else ip}:{port}"


def _ready(item: dict[str, dict[str, list[dict[str, str]]]]) -> bool:
    return item["status"]["conditions"][0]["status"] == "True"


TestTheListIsTheTruth = Truth.TestCase
TestTheListIsTheTruth.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
