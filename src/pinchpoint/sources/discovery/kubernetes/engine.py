"""From a pod to an engine: what its annotations and ports mean.

| annotation | means |
|---|---|
| `pinchpoint.io/scrape` | "true": this is an engine; "false": it is none, whatever else says so |
| `pinchpoint.io/port`, `/path`, `/scheme` | where it exposes its metrics; a port's name will do |
| `pinchpoint.io/engine` | its name; of pods with one name the oldest bears it, the others are `namespace/pod` |
| `pinchpoint.io/KEY` | what `KEY: ...` is to an engine of the configuration (kind, gpus, max-num-seqs ...) |
| `prometheus.io/scrape`, `/port`, `/path`, `/scheme` | the same where ours is missing; `scrape` if configured |
"""

import re
from collections.abc import Iterable

from pinchpoint.snapshot import EngineTarget
from pinchpoint.sources.discovery.described import OURS, Build, described
from pinchpoint.sources.discovery.kubernetes.pod import Pod
from pinchpoint.sources.discovery.kubernetes.settings import OWN_SCRAPE, KubernetesSettings

OWN = "pinchpoint.io/"
PROMETHEUS = "prometheus.io/"

_SPOKEN_FOR = frozenset({"scrape", "port", "path", "scheme", "engine"})
_ENGINE_NAME = re.compile(r"[^\x00-\x1f\x7f/]{1,100}")  # a slash could make it another pod's


def is_wanted(pod: Pod, settings: KubernetesSettings) -> bool:
    """Whether a pod is an engine, as its annotations have it; that it can't be asked is another matter."""
    own = pod.annotations.get(OWN_SCRAPE)
    if own is not None or not settings.required_annotation:
        return own != "false"
    return pod.annotations.get(settings.required_annotation) == "true"


def engines_of(
    pods: Iterable[Pod], settings: KubernetesSettings, *, found_by: str, build: Build
) -> tuple[tuple[EngineTarget, ...], tuple[str, ...]]:
    """The engines, oldest pod first, and a line for each pod that is one but can't be asked.

    A pod that does not run, or has no address yet, is neither. Readiness is a label of the target and decides nothing:
    an engine that is loading its model, or too busy to say that it is well, is what somebody wants to see.
    """
    targets: list[EngineTarget] = []
    refused: list[str] = []
    names: set[str] = set()
    for pod in sorted(pods, key=lambda pod: (pod.created, pod.key)):
        if not pod.running or not pod.ip:
            continue
        try:
            targets.append(_engine(pod, settings, names, found_by, build))
        except ValueError as error:
            refused.append(f"pod {pod.key} {str(error).replace(OURS, OWN)}")
        else:
            names.add(targets[-1].engine)
    return tuple(targets), tuple(refused)


def _engine(pod: Pod, settings: KubernetesSettings, taken: set[str], found_by: str, build: Build) -> EngineTarget:
    if (scrape := pod.annotations.get(OWN_SCRAPE, "true")) != "true":
        raise ValueError(f'has {OWN_SCRAPE}: {scrape[:20]!r}; write "true" or "false"')
    given = pod.annotations.get(f"{OWN}engine", "")
    if given and not _ENGINE_NAME.fullmatch(given):
        raise ValueError(f"has a name in {OWN}engine that is none; use up to 100 characters without a slash")
    host = f"[{pod.ip}]" if ":" in pod.ip else pod.ip
    keys = {key.removeprefix(OWN): value for key, value in pod.annotations.items() if key.startswith(OWN)}
    labels = {
        **{OURS + key.replace("-", "_"): value for key, value in keys.items() if key not in _SPOKEN_FOR},
        f"{OURS}engine": given if given and given not in taken else pod.key,
        "__scheme__": _said(pod, "scheme"),
        "__metrics_path__": _said(pod, "path"),
        "namespace": pod.namespace,
        "pod": pod.name,
        "node": pod.node,
        "ready": "true" if pod.ready else "false",
    }
    return described(f"{host}:{_port(pod, settings)}", labels, alone=True, found_by=found_by, build=build)


def _said(pod: Pod, key: str) -> str:
    if own := pod.annotations.get(OWN + key):
        return own
    # With a port of ours, Prometheus's path is another port's: a service mesh puts its own there.
    return "" if f"{OWN}port" in pod.annotations else pod.annotations.get(PROMETHEUS + key, "")


def _port(pod: Pod, settings: KubernetesSettings) -> int:
    named = {name: number for name, number in reversed(pod.ports) if name}  # the first container's wins
    if said := _said(pod, "port"):
        if said in named:
            return named[said]
        if not re.fullmatch(r"[0-9]{1,5}", said, re.ASCII) or not 0 < int(said) < 65536:
            raise ValueError(
                f"has {said[:20]!r} for a port, which is none of its own; write a number, or a port's name"
            )
        return int(said)
    for name in settings.port_names:
        if name in named:
            return named[name]
    if len(numbers := {number for _, number in pod.ports}) == 1:
        return numbers.pop()
    raise ValueError(
        f"has {len(numbers) or 'no'} ports, none of them called {' or '.join(settings.port_names)}; add {OWN}port"
    )
