"""A validation error of pydantic's as problems that an operator understands: place, key, what is wrong, what to do."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from pinchpoint.config.file import Location
from pinchpoint.config.origins import Origins
from pinchpoint.config.problem import Problem

# pydantic's error type -> our words, with the error's own context filled in.
_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("list_type", "tuple_type", "set_type"), "should be a list, like [a, b]"),
    **dict.fromkeys(
        ("dict_type", "mapping_type", "model_type", "model_attributes_type"), "should be a mapping of key: value"
    ),
    **dict.fromkeys(("string_type", "string_sub_type"), "should be text (in quotes, if it looks like something else)"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "should be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "should be a number"),
    "finite_number": "should be a finite number",
    **dict.fromkeys(("bool_type", "bool_parsing"), "should be true or false"),
    **dict.fromkeys(("literal_error", "enum"), "should be {expected}"),
    "path_type": "should be a path",
    "greater_than": "should be above {gt}",
    "greater_than_equal": "should be at least {ge}",
    "less_than": "should be below {lt}",
    "less_than_equal": "should be at most {le}",
    "string_too_short": "should have at least {min_length} characters",
    "string_too_long": "should have at most {max_length} characters",
    "string_pattern_mismatch": "should match the pattern {pattern}",
    "too_short": "should have at least {min_length} entries, not {actual_length}",
    "too_long": "should have at most {max_length} entries, not {actual_length}",
}


def explained(details: ErrorDetails, origins: Origins, root: type[BaseModel]) -> Problem:
    """One of pydantic's errors about ``root`` in our words."""
    location = tuple(part for part in details["loc"] if not (isinstance(part, str) and part.startswith("function-")))
    if details["type"] == "extra_forbidden":
        what, remedy = "is no setting", suggestion(str(location[-1]), _field_names(root, location[:-1]))
    elif details["type"] == "missing":
        what, remedy = "is missing", f"add `{location[-1]}:`"
    else:
        what, remedy = _said(details)
    return Problem(
        origins.of(location),
        ".".join(map(str, location)),
        what,
        remedy or _field_help(root, location) or "correct the value",
    )


def _said(details: ErrorDetails) -> tuple[str, str]:
    if words := _WORDS.get(details["type"]):
        context = {name: f"{v:g}" if isinstance(v, float) else v for name, v in details.get("ctx", {}).items()}
        return words.format(**context), ""
    text = details["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    what, _, remedy = text.partition("; ")  # our own validators write "what is wrong; what to do"
    return (what, remedy) if remedy else (what[:1].lower() + what[1:], "")


def suggestion(name: str, known: list[str]) -> str:
    """What to do about a name that is none of ``known``."""
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"remove it, or use one of: {', '.join(sorted(known))}" if known else "remove it"


def _nested_models(annotation: Any) -> Iterator[type[BaseModel]]:
    for candidate in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            yield candidate


def _model_at(root: type[BaseModel], location: Location) -> type[BaseModel] | None:
    """The settings class that a location lies in."""
    model = root
    for part in location:
        if isinstance(part, int):
            continue
        field = model.model_fields.get(part)
        nested = next(_nested_models(field.annotation), None) if field else None
        if nested is None:
            return None
        model = nested
    return model


def _field_names(root: type[BaseModel], location: Location) -> list[str]:
    model = _model_at(root, location)
    return list(model.model_fields) if model else []


def _field_help(root: type[BaseModel], location: Location) -> str:
    model = _model_at(root, location[:-1])
    field = model.model_fields.get(str(location[-1])) if model and location else None
    return f"it means: {field.description.rstrip('.')}" if field and field.description else ""
