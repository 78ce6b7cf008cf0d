"""Each setting that is not at its default: its value, unless it is a secret, and where it came from. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from pinchpoint.config.file import Location
from pinchpoint.config.origins import Origins
from pinchpoint.logs import HIDDEN, redact

MAX_SHOWN = 200  # characters: a model's config.json is long


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """One setting. ``where`` is ``default`` for what a preset or another setting has chosen."""

    key: str
    value: str
    where: str


def provenance(settings: BaseModel, origins: Origins) -> Iterator[Provenance]:
    """In the order of the sections."""
    for location, value in _changed(settings, ()):
        key = ".".join(map(str, location))
        yield Provenance(key=key, value=_shown(location, value), where=origins.given(location))


def _changed(model: BaseModel, at: Location) -> Iterator[tuple[Location, Any]]:
    for name, field in type(model).model_fields.items():
        yield from _of(getattr(model, name), (*at, field.alias or name), field)


def _of(value: Any, at: Location, field: FieldInfo) -> Iterator[tuple[Location, Any]]:
    if isinstance(value, BaseModel):
        yield from _changed(value, at)
    elif isinstance(value, list | tuple) and value and all(isinstance(each, BaseModel) for each in value):
        for number, each in enumerate(value):
            yield from _changed(each, (*at, number))
    elif isinstance(value, Mapping) and any(isinstance(each, SecretStr) for each in value.values()):
        yield from (((*at, key), each) for key, each in value.items())
    elif value != field.get_default(call_default_factory=True):
        yield at, value


def _shown(location: Location, value: object) -> str:
    if isinstance(value, SecretStr):
        return HIDDEN
    shown = redact({str(location[-1]): value})
    text = str(shown[str(location[-1])] if isinstance(shown, dict) else shown)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"
