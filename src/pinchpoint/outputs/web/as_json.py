"""Any value of ours as JSON types."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum


def as_json(value: object) -> object:
    """Dataclasses and mappings become objects, sequences arrays; a number that JSON lacks (NaN, infinity) is null."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(as_json(key)): as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_json(item) for item in value]
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)
