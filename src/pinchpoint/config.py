"""The configuration: composes the settings that each part declares for itself, and reports every mistake at once.

Order, the stronger first: flags, ``PINCHPOINT_…`` environment (``PINCHPOINT_WEB__LISTEN_ADDRESS``), the secrets folder
(one file per setting, named like the variable), the YAML file, the defaults. A reload builds a new ``Settings``; the
one in use is never changed.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import yaml
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NestedSecretsSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.logs import LogSettings
from pinchpoint.outputs.web.settings import WebSettings
from pinchpoint.sources.discovery.settings import DiscoverySettings
from pinchpoint.sources.engine.settings import EngineSourceSettings
from pinchpoint.sources.gpu.settings import GpuSettings
from pinchpoint.sources.host.settings import HostSettings
from pinchpoint.sources.probe.settings import ProbeSettings

ENV_PREFIX = "PINCHPOINT_"
MAX_FILE_BYTES = 1 << 20  # a thousand engines fit; a wrong file named by mistake does not fill the memory


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: where it stands, which key, what is wrong, what to do."""

    where: str
    key: str
    what: str
    remedy: str

    def __str__(self) -> str:
        key = f" {self.key}:" if self.key else ""
        return f"{self.where}:{key} {self.what}; {self.remedy}"


class ConfigError(Exception):
    """Every mistake of one configuration, in file order."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class Settings(BaseSettings):
    """Everything that can be configured. Without a file: this node's GPUs, engines found on loopback, no probe."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True, hide_input_in_errors=True
    )
    layers: ClassVar[tuple[Mapping[str, Any], Path | None]] = ({}, None)  # the file's content, the secrets folder

    web: WebSettings = WebSettings()
    gpu: GpuSettings = GpuSettings()
    host: HostSettings = HostSettings()
    engines: EngineSourceSettings = EngineSourceSettings()
    discovery: DiscoverySettings = DiscoverySettings()
    probes: ProbeSettings = ProbeSettings()
    diagnosis: Thresholds = Thresholds()
    log: LogSettings = LogSettings()
    tick_seconds: float = Field(
        default=1.0,
        ge=0.2,
        le=5,  # the page calls data of 10 s old
        description="Seconds between two ticks (snapshot, diagnosis, rendering). 1 s: a scrape is at most that old.",
    )
    history_seconds: float = Field(
        default=300.0,
        ge=60,
        le=3600,
        description="Seconds of readings kept in memory for diagnosis and page. 300 s: five minutes of sparkline.",
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - part of pydantic's signature
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        content, secrets = cls.layers
        folder = (
            (NestedSecretsSettingsSource(file_secret_settings, secrets_dir=secrets, env_prefix=ENV_PREFIX),)
            if secrets
            else ()
        )
        return (init_settings, env_settings, *folder, InitSettingsSource(settings_cls, dict(content)))


def load(
    file: Path | None = None,
    *,
    secrets: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Reads every layer and returns valid settings.

    ``flags`` is nested like the file. Raises ``ConfigError`` with every mistake found; reads no other file.
    """
    environment = os.environ if environment is None else environment
    content, lines = _read_file(file) if file else ({}, {})
    if secrets and not secrets.is_dir():
        raise ConfigError((Problem(str(secrets), "", "is no folder", "name the secrets folder, or leave it out"),))
    problems = list(_unknown_variables(environment))
    layered = type("Settings", (Settings,), {"layers": (content, secrets), "__module__": __name__})
    try:
        settings: Settings = layered(**dict(flags or {}))
    except ValidationError as error:
        where = _Origins(file, lines, environment, dict(flags or {}))
        problems += [_problem(details, where) for details in error.errors(include_url=False, include_input=False)]
    except ValueError as error:  # a variable that should hold JSON and doesn't
        problems.append(Problem("environment", "", str(error), "lists and mappings are JSON in a variable"))
    if problems:
        raise ConfigError(tuple(problems))
    return settings


def _read_file(file: Path) -> tuple[Mapping[str, Any], Mapping[tuple[str | int, ...], int]]:
    """The file's content and the line of each key."""
    try:
        with file.open("rb") as opened:
            read = opened.read(MAX_FILE_BYTES + 1)  # not its size: a device has none, and no end
        if len(read) > MAX_FILE_BYTES:
            raise ConfigError((Problem(str(file), "", "is larger than 1 MiB", "name pinchpoint's own configuration"),))
        text = read.decode("utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(
            (Problem(str(file), "", f"can't be read: {reason}", "check the path and its rights"),)
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(
            (Problem(str(file), "", "is not UTF-8 text", "name pinchpoint's own configuration"),)
        ) from None
    content, lines = _parsed(file, text)
    if content is None:
        return {}, {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise ConfigError(
            (Problem(str(file), "", "is no mapping of sections", "start with a section, such as `web:`"),)
        )
    given = {section: value for section, value in content.items() if value is not None}  # `gpu:` alone is the defaults
    return given, lines


def _parsed(file: Path, text: str) -> tuple[Any, Mapping[tuple[str | int, ...], int]]:
    """The value of a YAML text, and the line of each key, of which none may be there twice."""
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        keys = list(_key_lines(node, (), set()))  # first: constructing unfolds the merge keys in the nodes
        content = None if node is None else loader.construct_document(node)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}:{mark.line + 1}" if mark else str(file)
        deep = "the nesting is too deep" if isinstance(error, RecursionError) else str(error)  # or 2024-13-01, no date
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or deep
        raise ConfigError((Problem(where, "", f"is no valid YAML: {what}", "mend the syntax at that line"),)) from None
    lines: dict[tuple[str | int, ...], int] = {}
    twice: list[Problem] = []
    for path, line in keys:
        if path in lines:
            said = f"is given twice, first in line {lines[path]}"
            twice.append(Problem(f"{file}:{line}", ".".join(map(str, path)), said, "keep one of them"))
        lines.setdefault(path, line)
    if twice:
        raise ConfigError(tuple(twice))
    return content, lines


def _key_lines(
    node: yaml.Node | None, path: tuple[str | int, ...], seen: set[int]
) -> Iterator[tuple[tuple[str | int, ...], int]]:
    if id(node) in seen:  # an alias: walked where it was defined; it may even contain itself
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, str(key.value))
            yield here, key.start_mark.line + 1
            yield from _key_lines(value, here, seen)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            here = (*path, number)
            yield here, value.start_mark.line + 1
            yield from _key_lines(value, here, seen)


@dataclass(frozen=True, slots=True)
class _Origins:
    """Which layer a value came from."""

    file: Path | None
    lines: Mapping[tuple[str | int, ...], int]
    environment: Mapping[str, str]
    flags: Mapping[str, Any]

    def of(self, location: tuple[str | int, ...]) -> str:
        node: Any = self.flags
        for part in location:
            node = node.get(part) if isinstance(node, Mapping) else None
        if node is not None:
            return "flags"
        names = [ENV_PREFIX + "__".join(map(str, location[:n])).upper() for n in range(len(location), 0, -1)]
        variable = next((name for name in names if name in {key.upper() for key in self.environment}), None)
        if variable:
            return f"environment {variable}"
        prefixes = (location[:n] for n in range(len(location), 0, -1))
        line = next((self.lines[prefix] for prefix in prefixes if prefix in self.lines), None)
        if self.file is None:
            return "configuration"
        return f"{self.file}:{line}" if line else str(self.file)


def _problem(details: ErrorDetails, origins: _Origins) -> Problem:
    location = tuple(part for part in details["loc"] if not (isinstance(part, str) and part.startswith("function-")))
    key = ".".join(map(str, location))
    what = details["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    what, _, remedy = what.partition("; ")  # our own validators write "what is wrong; what to do"
    if details["type"] == "extra_forbidden":
        what = "is no setting"
        remedy = _suggestion(str(location[-1]), _field_names(location[:-1]))
    elif details["type"] == "missing":
        what, remedy = "is missing", f"add `{location[-1]}:`"
    elif not remedy:
        what = what[:1].lower() + what[1:]
        remedy = _field_help(location) or "correct the value"
    return Problem(origins.of(location), key, what, remedy)


def _model_at(location: tuple[str | int, ...]) -> type[BaseModel] | None:
    """The settings class that a location lies in."""
    model: type[BaseModel] = Settings
    for part in location:
        if isinstance(part, int):
            continue
        field = model.model_fields.get(part)
        if field is None:
            return None
        candidates = [field.annotation, *getattr(field.annotation, "__args__", ())]
        nested = next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
        if nested is None:
            return None
        model = nested
    return model


def _field_names(location: tuple[str | int, ...]) -> list[str]:
    model = _model_at(location)
    return list(model.model_fields) if model else []


def _field_help(location: tuple[str | int, ...]) -> str:
    model = _model_at(location[:-1]) if location else None
    field = model.model_fields.get(str(location[-1])) if model else None
    return f"it means: {field.description.rstrip('.')}" if field and field.description else ""


def _suggestion(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"remove it, or use one of: {', '.join(sorted(known))}" if known else "remove it"


def _unknown_variables(environment: Mapping[str, str]) -> Iterator[Problem]:
    """A misspelt variable is a mistake too; pydantic would pass over it in silence."""
    for variable in sorted(environment):
        if not variable.upper().startswith(ENV_PREFIX):
            continue
        section = variable[len(ENV_PREFIX) :].lower().split("__")[0]
        if section not in Settings.model_fields:
            yield Problem(
                f"environment {variable}", "", "is no setting", _suggestion(section, list(Settings.model_fields))
            )
