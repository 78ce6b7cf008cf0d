"""From a Prometheus target (an address and labels) to an engine: what each label means here.

| label | means |
|---|---|
| `__scheme__`, `__metrics_path__`, `__param_NAME` | as to Prometheus |
| `__pinchpoint_engine`, else `engine` | the engine's name; without: its address, like Prometheus' `instance` |
| `__pinchpoint_KEY` | what `KEY: ...` is to a configured engine: kind, gpus ("0,1"), slo_ttft_seconds, any fact |
| other `__...` | Prometheus' own, for relabelling: left out |
| any other | kept with the target, for people |

Prometheus drops what begins with `__` before it stores a sample, so one list serves both. No label names a file or a
secret of this host: whoever writes the list is not whoever configures pinchpoint.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from urllib.parse import urlencode

from pinchpoint.snapshot import EngineFacts, EngineTarget, HttpAccess

OURS = "__pinchpoint_"
PARAMETER = "__param_"
MAX_LABELS = 64
MAX_LABEL_CHARACTERS = 1024

_NOT_FLAT = {"origins", "model_config"}
FACTS = frozenset(EngineFacts.__dataclass_fields__) - _NOT_FLAT
_SLO = {"slo_ttft_seconds": "ttft_seconds", "slo_tpot_seconds": "tpot_seconds"}
_KEYS = frozenset({"engine", "gpus", *_SLO, *FACTS})

# What an engine of the configuration is made of -> the engine. Raises ValueError, "what is wrong; what to do".
Build = Callable[[Mapping[str, object]], EngineTarget]


def described(address: str, labels: Mapping[str, str], *, alone: bool, found_by: str, build: Build) -> EngineTarget:
    """The engine at ``address`` (host:port). ``alone``: no other shares ``labels``, so that a name in them is its own.

    An engine that shares its labels is called ``NAME/ADDRESS``. Raises ``ValueError``, "what is wrong; what to do".
    """
    if "://" in address:
        raise ValueError("is a URL; give host:port, and https by the label __scheme__")
    if not address or any(mark in address for mark in "/?#@ "):
        raise ValueError("is no host:port; give a path by the label __metrics_path__")
    if len(labels) > MAX_LABELS or any(len(k) + len(v) > MAX_LABEL_CHARACTERS for k, v in labels.items()):
        raise ValueError(f"has more than {MAX_LABELS} labels, or one above {MAX_LABEL_CHARACTERS} characters; shorten")
    ours = {key.removeprefix(OURS): value for key, value in labels.items() if key.startswith(OURS)}
    if unknown := sorted(ours.keys() - _KEYS):
        close = get_close_matches(unknown[0], _KEYS, n=1) or sorted(_KEYS)
        raise ValueError(f"has the label {OURS}{unknown[0]}, which means nothing; use {OURS}{f', {OURS}'.join(close)}")
    target = build(
        {
            "name": _name(address, ours.get("engine") or labels.get("engine", ""), alone),
            "url": f"{labels.get('__scheme__') or 'http'}://{address}",
            **_path(labels),
            **{key: value for key, value in ours.items() if key in FACTS},
            **_gpus(ours.get("gpus", "")),
            **({"slo": slo} if (slo := {name: ours[key] for key, name in _SLO.items() if key in ours}) else {}),
        }
    )
    people = {key: value for key, value in labels.items() if not key.startswith("__")}
    return replace(target, found_by=found_by, labels=people)


def let_in(build: Build, access: HttpAccess) -> Build:
    """``build``, for engines that are all asked with ``access``."""
    return lambda description: replace(build(description), access=access)


def _name(address: str, given: str, alone: bool) -> str:
    if not given:
        return address
    return given if alone else f"{given}/{address}"


def _path(labels: Mapping[str, str]) -> dict[str, object]:
    """Where the exposition is, where it is said; what is not said is the engine's kind's own."""
    path = labels.get("__metrics_path__", "")
    parameters = {key.removeprefix(PARAMETER): v for key, v in sorted(labels.items()) if key.startswith(PARAMETER)}
    if parameters:
        path = f"{path or '/metrics'}?{urlencode(parameters)}"
    return {"metrics_path": path} if path else {}


def _gpus(text: str) -> dict[str, object]:
    gpus = tuple(part.strip() for part in text.split(",") if part.strip())
    return {"gpus": gpus} if gpus else {}
