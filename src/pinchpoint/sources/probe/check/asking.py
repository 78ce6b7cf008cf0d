"""Asks what a check needs to know, the way the configured tool would: at its URL, with its header."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr

from pinchpoint.snapshot import Placement, ProbeLiveness, ProbeReading
from pinchpoint.sources.probe.check.triple import Triple
from pinchpoint.sources.probe.completion import is_loopback
from pinchpoint.sources.probe.dialects import DIALECTS, Dialect, Parameters
from pinchpoint.sources.probe.event import StreamEvent
from pinchpoint.sources.probe.exchange import Exchange
from pinchpoint.sources.probe.judgement import Judgement
from pinchpoint.sources.probe.prober import Prober
from pinchpoint.sources.probe.settings import ProbeTargetSettings
from pinchpoint.sources.probe.sse import SseEvent

CHEAP: Mapping[str, Any] = {"max_tokens": 16, "prompt_words": 0}  # the least that every API accepts
MAX_NAME = 63
UNNAMED = "unnamed"  # until the list of models gives a name


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One answer, or the failure to get one, at one root of the API."""

    root: str
    exchange: Exchange
    judgement: Judgement


@dataclass(slots=True, kw_only=True)
class Asked:
    """One question and all that was heard at the roots where it was put."""

    heard: list[Heard] = field(default_factory=list)
    reading: ProbeReading | None = None
    liveness: ProbeLiveness | None = None

    def hear(self, root: str, exchange: Exchange, judgement: Judgement) -> None:
        self.heard.append(Heard(root=root, exchange=exchange, judgement=judgement))

    @property
    def answered_at(self) -> str | None:
        """The root that has this API."""
        return next((each.root for each in self.heard if not each.judgement.wrong_path and each.exchange.status), None)


def target_of(triple: Triple) -> ProbeTargetSettings:
    """A target that asks as little as can be. Raises ``ValidationError`` for a URL or a name that is none."""
    return ProbeTargetSettings(
        name=triple.name[:MAX_NAME],
        url=triple.url,
        dialect=triple.dialect,
        model=triple.model.strip() or UNNAMED,
        placement=Placement.LOCAL if is_loopback(triple.url) else Placement.HOSTED,
        api_key=SecretStr(triple.key),
        **CHEAP,
    )


async def list_models(triple: Triple, target: ProbeTargetSettings, *, keyless: bool = False) -> Asked:
    """Asks for the list of models, which is free."""
    asked = Asked()
    prober = Prober(target, dialect=_ToolDialect(triple, target, keyless=keyless), heard=asked.hear)
    try:
        asked.liveness = await prober.liveness()
    finally:
        await prober.close()
    return asked


Send = Callable[[ProbeTargetSettings, Prober], Awaitable[ProbeReading | None]]  # None: it was not allowed


async def send_unasked(_target: ProbeTargetSettings, prober: Prober) -> ProbeReading | None:
    return await prober.probe()


async def request(triple: Triple, target: ProbeTargetSettings, send: Send) -> Asked:
    """Sends one request of a few tokens, if ``send`` does."""
    asked = Asked()
    prober = Prober(target, clock=time.time, dialect=_ToolDialect(triple, target), heard=asked.hear)
    try:
        asked.reading = await send(target, prober)
    finally:
        await prober.close()
    return asked


class _ToolDialect(Dialect):
    """The target's dialect with the tool's URL first, and its header."""

    def __init__(self, triple: Triple, target: ProbeTargetSettings, *, keyless: bool = False) -> None:
        super().__init__(target.api_version)
        self._own = DIALECTS[target.dialect](target.api_version)
        self._triple = triple
        self._keyless = keyless

    def roots(self, url: str) -> tuple[str, ...]:
        own = self._own.roots(url)
        if self._triple.appended is None:
            return own
        return tuple(dict.fromkeys((self._triple.url.rstrip("/") + self._triple.appended, *own)))

    def request_url(self, root: str, model: str) -> str:
        return self._own.request_url(root, model)

    def models_url(self, root: str) -> str:
        return self._own.models_url(root)

    def headers(self, key: str) -> Mapping[str, str]:
        if self._keyless:
            return self._own.headers("")
        if self._triple.bearer and key:
            return {**self._own.headers(""), "Authorization": f"Bearer {key}"}
        return self._own.headers(key)

    def body(self, model: str, prompt: str, parameters: Parameters) -> dict[str, object]:
        return self._own.body(model, prompt, parameters)

    def interpret(self, event: SseEvent) -> StreamEvent:
        return self._own.interpret(event)

    def repaired(self, parameters: Parameters, refusal: str) -> Parameters | None:
        return self._own.repaired(parameters, refusal)

    def listed_models(self, document: object) -> tuple[str, ...] | None:
        return self._own.listed_models(document)
