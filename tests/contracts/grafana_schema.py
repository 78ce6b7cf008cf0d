"""A dashboard against Grafana's published schema, as its Foundation SDK has it in Python: keys, types, enumerations.

The SDK's classes take what they know and leave the rest; so whatever does not come back was unknown to Grafana. Its
classes tell the types of their fields, which nobody checks but here.
"""

import enum
import types
import typing
from collections.abc import Iterator
from typing import Any

from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import units

plugins.register_default_plugins()

# Keys that Grafana knows and whose part of the schema is not in the SDK.
UNTYPED = {
    "annotations.list.*.step",  # of Prometheus' own annotations
    "annotations.list.*.titleFormat",
    "templating.list.*.definition",
    "panels.*.fieldConfig.defaults.custom.insertNulls",  # the state timeline's editor has both ("disconnect values")
    "panels.*.fieldConfig.defaults.custom.spanNulls",
}


def unknown_keys(raw: dict[str, Any]) -> set[str]:
    """Paths of keys that the schema does not have; ``*`` is an item of a list."""
    return set(_lost(raw, _plain(model.Dashboard.from_json(raw)), "")) - UNTYPED


def wrong_types(raw: dict[str, Any]) -> list[str]:
    """What has another type, or no value of its enumeration."""
    return list(_wrong(model.Dashboard.from_json(raw), "dashboard"))


def known_units() -> set[str]:
    """Grafana's units of a field."""
    return {value for name, value in vars(units).items() if name[0].isupper() and isinstance(value, str)}


def _plain(value: Any) -> Any:
    if hasattr(value, "to_json"):
        return _plain(value.to_json())
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _lost(raw: Any, kept: Any, path: str) -> Iterator[str]:
    if isinstance(raw, dict) and isinstance(kept, dict):
        for key, value in raw.items():
            own = f"{path}.{key}".removeprefix(".")
            if key in kept:
                yield from _lost(value, kept[key], own)
            elif value is not None:
                yield own
    elif isinstance(raw, list) and isinstance(kept, list):
        for one, other in zip(raw, kept, strict=True):
            yield from _lost(one, other, f"{path}.*")


def _wrong(value: Any, path: str) -> Iterator[str]:
    for name, hint in typing.get_type_hints(type(value)).items():
        own = getattr(value, name)
        if not _fits(own, hint):
            yield f"{path}.{name} is {own!r}, not {hint}"
        for each in own.values() if isinstance(own, dict) else own if isinstance(own, list) else (own,):
            if hasattr(each, "to_json"):
                yield from _wrong(each, f"{path}.{name}")


def _fits(value: Any, hint: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in (typing.Any, object):
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is list:
        return isinstance(value, list) and all(_fits(each, arguments[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(each, arguments[1]) for each in value.values())
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return value in list(hint)
    if isinstance(value, dict) and hasattr(hint, "from_json"):  # which the SDK has left as it was
        return not list(_lost(value, _plain(hint.from_json(value)), ""))
    return isinstance(value, hint) if isinstance(hint, type) else True
