"""Reads a labelled case: a window in the small language that promtool's tests use, and the class it must get.

A series is ``VALUE[+STEP][xTIMES] …``, one value a scrape, the last one repeated to the end; ``_`` is unknown, a word a
fact. Of a GPU, ``processes.4711`` is the memory of process 4711, and its name has _ for spaces.
What ends in ``_total`` is a counter: its values are increments. A histogram's value is ``SECONDS*OBSERVATIONS``.
A fact ``model_config`` may be the name of a published one.
``host`` is of the node; its ``engines.chat.NAME`` is of the engine's own processes. ``links`` are pairs, ``0-1: SYS``,
or ``0-1: [PIX, chipset_not_supported]`` with what stands against peer-to-peer. Of a GPU, ``nvlink_up.0`` is a link, and
``name`` its driver's name.
A probe of ``targets`` takes ``duration_seconds`` from each of ``at`` on; in its series of TTFTs ``timeout`` is one that
got none, and any other outcome stands for itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import yaml

from pinchpoint.diagnosis import Bottleneck
from pinchpoint.physics import CONFIGS
from pinchpoint.snapshot import (
    Absence,
    EngineFacts,
    EngineHost,
    EngineReading,
    GpuProcess,
    GpuReading,
    GpuState,
    Histogram,
    HostReading,
    NvLink,
    PeerLink,
    Placement,
    ProbeOutcome,
    ProbeReading,
    Reason,
    ReplicaReading,
    Slo,
    Snapshot,
    Window,
    compared,
)

BOUNDS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 64.0, 256.0, 1024.0, 4096.0, float("inf"),
)  # fmt: skip
HISTOGRAMS = (
    "ttft_seconds",
    "inter_token_seconds",
    "queue_seconds",
    "prefill_seconds",
    "iteration_tokens",
    "request_prompt_tokens",
    "request_generation_tokens",
    "tpot_seconds",
    "e2e_seconds",
)


@dataclass(frozen=True)
class Case:
    name: str
    about: str
    expect: Bottleneck
    snapshots: tuple[Snapshot, ...]
    evidence: tuple[str, ...] = ()  # signals that must be in the evidence
    missing: tuple[str, ...] = ()
    score: tuple[float, float] = (0.0, 1.0)
    why: str = ""  # must be in the sentence
    says: tuple[str, ...] = ()  # each must be in the text of a fact
    silent: tuple[str, ...] = ()  # signals that must not be in the evidence
    never: tuple[Bottleneck, ...] = field(default=())  # classes that must score below one half

    @property
    def window(self) -> Window:
        return Window(300.0, self.snapshots)


def load(path: Path) -> Case:
    raw = yaml.safe_load(path.read_text())
    known = {"about", "expect", "evidence", "missing", "score", "why", "never", "steps", "step_seconds", "facts", "slo"}
    known |= {"says", "silent"}
    assert not (
        wrong := raw.keys()
        - known
        - {
            "gpus_of_engine",
            "replicas",
            "gpus",
            "present",
            "restart_at",
            "other",
            "probes_at",
            "probe_seconds",
            "probe_ttft_seconds",
            "probe_tpot_seconds",
            "probe_outcome",
            "targets",
            "absent_because",
            "host",
            "links",
            "url",
        }
    ), wrong
    return Case(
        name=path.stem,
        about=raw["about"],
        expect=Bottleneck(raw["expect"]),
        snapshots=tuple(_snapshots(raw)),
        evidence=tuple(raw.get("evidence", ())),
        missing=tuple(raw.get("missing", ())),
        score=tuple(raw.get("score", (0.0, 1.0))),
        why=raw.get("why", ""),
        says=tuple(raw.get("says", ())),
        silent=tuple(raw.get("silent", ())),
        never=tuple(Bottleneck(name) for name in raw.get("never", ())),
    )


def _snapshots(raw: dict[str, Any]) -> Iterator[Snapshot]:
    steps, seconds, restart = raw.get("steps", 30), raw.get("step_seconds", 1.0), raw.get("restart_at", 10**9)
    replicas = {name: _columns(series, steps, restart) for name, series in raw.get("replicas", {}).items()}
    gpus = {name: _columns(series, steps, 10**9) for name, series in raw.get("gpus", {}).items()}
    host = _columns(raw.get("host", {}), steps, 10**9)
    links = tuple(_link(pair, how) for pair, how in raw.get("links", {}).items())
    took = raw.get("probe_seconds", 0.0)
    targets = [_target(name, target) for name, target in raw.get("targets", {}).items()]
    present = _series(raw.get("present", "1"), steps)
    for step in range(steps):
        at = step * seconds
        engine = EngineReading(
            engine="chat",
            at=at,
            replicas=tuple(_replica(name, columns, step) for name, columns in replicas.items()),
            facts=_facts(raw.get("facts", {})),
            slo=Slo(**raw.get("slo", {})),
            gpus=tuple(raw.get("gpus_of_engine", ())),
            url=raw.get("url", ""),
            epoch=str(step >= restart),
        )
        others = (EngineReading(engine="other", at=at, replicas=()),) if raw.get("other") else ()
        absence = Absence("engine/chat", Reason(raw.get("absent_because", "timeout")), "no answer within 5 s", at)
        yield Snapshot(
            at=at,
            engines=(engine, *others) if present[step] else others,
            absences=() if present[step] else (absence,),
            gpus=tuple(_gpu(name, columns, step, at) for name, columns in gpus.items()),
            host=_host(host, step, at) if host else None,
            links=links,
            probes=(
                *[_probe(began, took, raw) for began in raw.get("probes_at", ()) if began + took <= at][-1:],
                *(ended[-1] for target in targets if (ended := _ended(target, at))),
            ),
            comparisons=compared((_ended(target, at) for target in targets), at),
        )


def _host(columns: dict[str, list[Any]], step: int, at: float) -> HostReading:
    fields = _nested(columns, step)
    engines: dict[str, dict[str, float]] = {}
    for name, value in fields.pop("engines", {}).items():
        engine, _, field_name = name.partition(".")
        engines.setdefault(engine, {})[field_name] = value
    return HostReading(at=at, **fields, engines={name: EngineHost(**said) for name, said in engines.items()})


def _link(pair: str, how: str | list[str]) -> PeerLink:
    gpu, _, peer = pair.partition("-")
    label, *p2p = [how] if isinstance(how, str) else how
    return PeerLink(gpu, peer, label, *p2p)


def _facts(raw: dict[str, Any]) -> EngineFacts:
    """``model_config`` may be the name of a published one."""
    config = raw.get("model_config", {})
    return EngineFacts(**raw | {"model_config": CONFIGS[config] if isinstance(config, str) else config})


def _target(name: str, raw: dict[str, Any]) -> list[ProbeReading]:
    """The probes of one target; all of ``raw`` but ``at`` and ``ttft_seconds`` is the same in each."""
    same = {"duration_seconds": 1.0} | raw | {"placement": Placement(raw.get("placement", "local"))}
    begun = same.pop("at")
    ttfts = _series(same.pop("ttft_seconds"), len(begun))
    return [
        ProbeReading(target=name, at=at, **same, outcome=_outcome(ttft))
        if isinstance(ttft, str)
        else ProbeReading(target=name, at=at, **same, outcome=ProbeOutcome.OK, ttft_seconds=ttft, ttfc_seconds=ttft)
        for at, ttft in zip(begun, ttfts, strict=True)
    ]


def _outcome(word: str) -> ProbeOutcome:
    return ProbeOutcome.FIRST_TOKEN_TIMEOUT if word == "timeout" else ProbeOutcome(word)


def _ended(probes: list[ProbeReading], at: float) -> list[ProbeReading]:
    return [probe for probe in probes if probe.at + (probe.duration_seconds or 0.0) <= at]


def _probe(at: float, took: float, raw: dict[str, Any]) -> ProbeReading:
    return ProbeReading(
        target="chat",
        placement=Placement.LOCAL,
        at=at,
        outcome=ProbeOutcome(raw.get("probe_outcome", "ok")),
        engine="chat",
        duration_seconds=took,
        ttft_seconds=raw.get("probe_ttft_seconds"),
        tpot_seconds=raw.get("probe_tpot_seconds"),
    )


def _columns(series: dict[str, Any], steps: int, restart: int) -> dict[str, list[Any]]:
    return {name: _column(name, text, steps, restart) for name, text in series.items()}


def _column(name: str, text: Any, steps: int, restart: int) -> list[Any]:
    if name == "name":  # of a card: words
        return [text] * steps
    if name in HISTOGRAMS:
        return _histograms(str(text), steps, restart)
    values = _series(text, steps)
    if not name.partition(".")[0].endswith("_total"):
        return values
    split = min(restart, steps)
    return [*_accumulate(values[:split]), *_accumulate(values[split:])]


def _accumulate(increments: list[Any]) -> list[Any]:
    sums = accumulate(increment or 0.0 for increment in increments)
    return [None if increment is None else total for increment, total in zip(increments, sums, strict=True)]


def _series(text: Any, steps: int) -> list[Any]:
    values: list[Any] = []
    for part in str(text).split():
        value, _, times = (part, "", "") if part[0].isalpha() else part.partition("x")
        first, _, step = value.partition("+")
        if step:
            values += [float(first) + n * float(step) for n in range(int(times))]
        else:
            values += [_value(value)] * int(times or 1)
    return [*values, *[values[-1]] * steps][:steps]


def _value(text: str) -> float | str | None:
    """A word is a word: ``gpu_reset``."""
    if text == "_":
        return None
    return text if text[0].isalpha() else float(text)


def _histograms(text: str, steps: int, restart: int) -> list[Histogram]:
    observations: list[tuple[float, float]] = []
    for part in text.split():
        value, _, times = part.partition("x")
        seconds, _, count = value.partition("*")
        observations += [(float(seconds), float(count))] * int(times or 1)
    observations = [*observations, *[observations[-1]] * steps][:steps]
    found, now = [], Histogram(BOUNDS, (0.0,) * len(BOUNDS), 0.0, 0.0)
    for step, (value, count) in enumerate(observations):
        if step == restart:
            now = Histogram(BOUNDS, (0.0,) * len(BOUNDS), 0.0, 0.0)
        counts = tuple(n + count * (value <= bound) for n, bound in zip(now.counts, BOUNDS, strict=True))
        now = Histogram(BOUNDS, counts, now.sum + value * count, now.count + count)
        found.append(now)
    return found


def _nested(columns: dict[str, list[Any]], step: int) -> dict[str, Any]:
    """Column ``throttle_active.sw_power_cap`` is key ``sw_power_cap`` of the mapping ``throttle_active``."""
    fields: dict[str, Any] = {}
    for name, values in columns.items():
        outer, _, inner = name.partition(".")
        if inner and values[step] is not None:
            fields.setdefault(outer, {})[inner] = values[step]
        elif not inner:
            fields[outer] = values[step]
    return fields


def _replica(name: str, columns: dict[str, list[Any]], step: int) -> ReplicaReading:
    fields = _nested(columns, step)
    awake = fields.pop("awake", None)
    return ReplicaReading(replica=name, awake=None if awake is None else bool(awake), **fields)


def _gpu(name: str, columns: dict[str, list[Any]], step: int, at: float) -> GpuReading:
    fields = _nested(columns, step)
    memory = fields.pop("processes", {})
    fields["processes"] = tuple(
        GpuProcess(pid=int(pid), kind="compute", memory_bytes=size) for pid, size in memory.items()
    )
    ups = fields.pop("nvlink_up", {})
    fields["nvlinks"] = tuple(NvLink(link=link, up=bool(up)) for link, up in ups.items())
    if fields.pop("up", 1.0) == 0:
        return GpuReading(gpu=name, uuid=f"GPU-{name}", at=at, up=False, state=GpuState.LOST)
    if isinstance(fields.get("name"), str):
        fields["name"] = fields["name"].replace("_", " ")
    return GpuReading(gpu=name, uuid=f"GPU-{name}", at=at, **fields)
