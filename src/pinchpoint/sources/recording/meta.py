"""``meta.json``: what whoever recorded it knew of the engine, the service and the GPUs."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pinchpoint.snapshot import EngineFacts, PeerLink, Slo
from pinchpoint.sources.recording.failure import RecordingError
from pinchpoint.sources.recording.files import Json, read_object

T = TypeVar("T")

MAX_NUMBER = 1e18  # of what an engine says of itself
_MOST = {
    "tensor_parallel_size": 1e6,
    "pipeline_parallel_size": 1e6,
    "data_parallel_size": 1e6,
    "gpu_memory_utilization": 1,
    "ttft_seconds": 3600,
    "tpot_seconds": 60,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A sub-folder of the recording: one engine. ``None``: what the root says holds for it too."""

    name: str
    gpus: tuple[str, ...] = ()
    facts: EngineFacts | None = None
    slo: Slo | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """``meta.json`` in our words; every part has a default, for the file and each of its keys are optional.

    ``numbered``: a scrape's name is the number of its step, so that a gap in the names is one in time. ``services``: no
    balancer stands before the engines, each is a service of its own.
    """

    step_seconds: float | None = None
    simulated: bool = False
    facts: EngineFacts = field(default_factory=EngineFacts)
    slo: Slo = field(default_factory=Slo)
    gpus: tuple[str, ...] = ()
    links: tuple[PeerLink, ...] = ()
    replicas: tuple[Replica, ...] = ()
    numbered: bool = False
    services: bool = False


class _Entry(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True, hide_input_in_errors=True)

    name: str = Field(pattern=r"^[^/\x00-\x1f\x7f]{1,100}$")
    gpus: list[str] = []
    engine: dict[str, Any] | None = None
    slo: dict[str, Any] | None = None


class _File(BaseModel):
    """The file's form. Unknown keys are left alone: a newer recorder may write more."""

    model_config = ConfigDict(coerce_numbers_to_str=True, hide_input_in_errors=True)

    step_seconds: float | None = Field(default=None, gt=0, le=86_400)
    simulated: bool = False
    engine: dict[str, Any] = {}
    slo: dict[str, Any] = {}
    gpus: list[str] = []
    links: list[dict[str, Any]] = []
    engines: list[_Entry] = Field(default=[], max_length=256)
    numbered: bool = False
    services: bool = False


_FILE: TypeAdapter[_File] = TypeAdapter(_File)
_FACTS: TypeAdapter[EngineFacts] = TypeAdapter(EngineFacts)
_SLO: TypeAdapter[Slo] = TypeAdapter(Slo)
_LINK: TypeAdapter[PeerLink] = TypeAdapter(PeerLink)


def read_meta(path: Path) -> Meta:
    """Read ``meta.json``; defaults when there is none. Raises ``RecordingError`` naming the key that is wrong."""
    if not os.path.lexists(path):  # a link that leads nowhere is not nothing
        return Meta()
    raw = validated(_FILE, read_object(path), path)
    replicas = tuple(
        Replica(
            name=entry.name,
            gpus=tuple(entry.gpus),
            facts=None if entry.engine is None else _told(_FACTS, entry.engine, path),
            slo=None if entry.slo is None else _told(_SLO, entry.slo, path),
        )
        for entry in raw.engines
    )
    if any(replica.name in (".", "..") for replica in replicas) or len({r.name for r in replicas}) < len(replicas):
        raise RecordingError(path, "engines: each name must be that of a sub-folder of its own")
    return Meta(
        step_seconds=raw.step_seconds,
        simulated=raw.simulated,
        facts=_told(_FACTS, raw.engine, path),
        slo=_told(_SLO, raw.slo, path),
        gpus=tuple(raw.gpus),
        links=tuple(validated(_LINK, link, path) for link in raw.links),
        replicas=replicas,
        numbered=raw.numbered,
        services=raw.services,
    )


def _told(adapter: TypeAdapter[T], raw: Json, path: Path) -> T:
    """Facts or objectives: their numbers are counts, sizes and times, all above 0, and ``true`` is none of them."""
    told = validated(adapter, raw, path)
    for key, said in raw.items():
        value = getattr(told, key, None)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        most = _MOST.get(key, MAX_NUMBER)
        if isinstance(said, bool) or not 0 < value <= most:
            words = f"{key}: must be a number above 0 and at most {most:g}, not {str(said)[:40]}"
            raise RecordingError(path, f"{words}; correct or remove the key")
    return told


def validated(adapter: TypeAdapter[T], raw: Mapping[str, object], path: Path, line: int | None = None) -> T:
    """``raw`` as the adapter's type, a null being a key that is not there. Raises ``RecordingError`` on a mistake."""
    known: Json = {key: value for key, value in raw.items() if value is not None}
    try:
        return adapter.validate_python(known)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise RecordingError(path, f"{key}: {first['msg']}; correct or remove the key", line=line) from None
