"""The settings of every part in one, and the layers that they are read from."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    NestedSecretsSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from pinchpoint.config.beneath import beneath, replaced
from pinchpoint.config.explain import explained, suggestion
from pinchpoint.config.file import read_file
from pinchpoint.config.origins import Origins
from pinchpoint.config.problem import ConfigError, Problem
from pinchpoint.config.relations import broken_relations
from pinchpoint.config.secrets import secrets_of
from pinchpoint.config.shared import read_shared
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.logs import LogSettings, hide
from pinchpoint.outputs.alertmanager.settings import AlertmanagerSettings
from pinchpoint.outputs.web.settings import WebSettings
from pinchpoint.sources.discovery.settings import DiscoverySettings
from pinchpoint.sources.engine.local_settings import LocalEngineSettings
from pinchpoint.sources.engine.settings import EngineSourceSettings
from pinchpoint.sources.gpu.settings import GpuSettings
from pinchpoint.sources.host.settings import HostSettings
from pinchpoint.sources.pods.settings import PodSettings
from pinchpoint.sources.probe.settings import ProbeSettings
from pinchpoint.sources.process.settings import ProcessSettings

ENV_PREFIX = "PINCHPOINT_"


@dataclass(frozen=True, slots=True)
class _Layers:
    """What lies beneath the flags. ``merged`` is filled with all of it together, as given."""

    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: Path | None = None
    content: Mapping[str, Any] = field(default_factory=dict, repr=False)  # the file's, above the shared settings
    merged: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Valid settings, where each of them came from, and what is no mistake but worth a look."""

    settings: Settings
    origins: Origins
    notices: tuple[Problem, ...] = ()


class Settings(BaseSettings):
    """Everything that can be configured. Without a file: this node's GPUs, engines found on loopback, no probe.

    Made by itself it holds what it is given and the defaults, and reads nothing: ``load`` reads the layers.
    """

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True, hide_input_in_errors=True
    )
    layers: ClassVar[_Layers | None] = None

    web: WebSettings = WebSettings()
    gpu: GpuSettings = GpuSettings()
    host: HostSettings = HostSettings()
    pods: PodSettings = PodSettings()
    engines: EngineSourceSettings = EngineSourceSettings()
    local_engine: LocalEngineSettings = LocalEngineSettings()
    discovery: DiscoverySettings = DiscoverySettings()
    processes: ProcessSettings = ProcessSettings()
    probes: ProbeSettings = ProbeSettings()
    diagnosis: Thresholds = Thresholds()
    alertmanager: AlertmanagerSettings = AlertmanagerSettings()
    log: LogSettings = LogSettings()
    settings_file: Path | None = Field(
        default=None,
        description="A settings.json with VLLM_… and TAOTOKEN_… names, which a team shares between its tools; believed "
        "less than this file. Default: none, for a file that lies about must not make pinchpoint spend.",
    )
    state_directory: Path | None = Field(
        default=None,
        description="Folder for what must outlive a restart: the ledger of hosted probes, verdicts. Unset: systemd's "
        "StateDirectory, else pinchpoint in $XDG_STATE_HOME or ~/.local/state. Made when it is first needed.",
    )
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
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - part of pydantic's signature; it reads os.environ
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        if (layers := cls.layers) is None:
            return (init_settings,)
        variables = EnvSettingsSource(settings_cls)
        variables.env_vars = {name.lower(): value for name, value in layers.environment.items()}
        sources: list[PydanticBaseSettingsSource] = [init_settings, variables]
        if layers.secrets:
            sources.append(
                NestedSecretsSettingsSource(file_secret_settings, secrets_dir=layers.secrets, env_prefix=ENV_PREFIX)
            )
        return (*sources, InitSettingsSource(settings_cls, dict(layers.content)))

    @model_validator(mode="before")
    @classmethod
    def _keep_what_was_given(cls, values: dict[str, Any]) -> dict[str, Any]:
        if cls.layers is not None:
            cls.layers.merged.update(values)
        return values


def load(
    file: Path | None = None,
    *,
    secrets: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Reads every layer and returns valid settings. As ``read``, for whoever wants nothing more."""
    return read(file, secrets=secrets, flags=flags, environment=environment).settings


def read(
    file: Path | None = None,
    *,
    secrets: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Loaded:
    """Reads every layer. From then on the log hides the secrets that were read.

    ``flags`` is nested like the file; ``environment`` stands in for the process's. Raises ``ConfigError`` with every
    mistake found; reads no other file than ``file``, those in ``secrets``, and the settings.json that they name.
    """
    environment = os.environ if environment is None else environment
    flags = dict(flags or {})
    content, lines = read_file(file) if file else ({}, {})
    if secrets and not secrets.is_dir():
        raise ConfigError(Problem(str(secrets), "", "is no folder", "name the secrets folder, or leave it out"))
    variables = {name.upper(): value for name, value in environment.items() if name.upper().startswith(ENV_PREFIX)}
    shared = read_shared(environment, secrets, _settings_file(flags, variables, content))
    content, places, notices = beneath(content, shared, str(file))
    origins = Origins(
        file=file,
        lines=lines,
        variables=frozenset(variables),
        flags=flags,
        prefix=ENV_PREFIX,
        secrets=_secret_files(secrets),
        places=places,
    )
    settings = _valid(_Layers(environment, secrets, content), flags, origins)
    hide(secrets_of(settings))
    above = replaced(origins, shared, settings.local_engine)
    return Loaded(settings=settings, origins=origins, notices=(*shared.notices, *notices, *above))


def _valid(layers: _Layers, flags: dict[str, Any], origins: Origins) -> Settings:
    """The settings in these layers. Raises ``ConfigError`` with every mistake found."""
    problems = list(_unknown_variables(layers.environment))
    try:
        settings = _settings(layers, flags)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        problems += [explained(each, origins, Settings) for each in details]
    except SettingsError as error:
        problems.append(_no_json(error, layers.secrets))
    except OSError as error:
        raise ConfigError(
            Problem(str(error.filename or layers.secrets), "", f"can't be read: {error.strerror}", "check its rights")
        ) from None
    problems += [
        Problem(origins.of(broken.location), ".".join(map(str, broken.location)), broken.what, broken.remedy)
        for broken in broken_relations(layers.merged, Settings())
    ]
    if problems:
        raise ConfigError(*problems)
    return settings


def _settings_file(flags: Mapping[str, Any], variables: Mapping[str, str], content: Mapping[str, Any]) -> Path | None:
    given = flags.get("settings_file") or variables.get(f"{ENV_PREFIX}SETTINGS_FILE") or content.get("settings_file")
    return Path(given) if isinstance(given, str | Path) else None  # anything else is told as a wrong type


def _secret_files(secrets: Path | None) -> dict[str, str]:
    """The settings that the secrets folder holds, in upper case, and the file of each."""
    return {path.name.upper(): str(path) for path in secrets.iterdir()} if secrets else {}


def _settings(layers: _Layers, flags: dict[str, Any]) -> Settings:
    """A class of its own for each load, for that is how pydantic learns where to read."""
    layered = type("Settings", (Settings,), {"layers": layers, "__module__": __name__})
    settings: Settings = layered(**flags)
    return settings


def _no_json(error: SettingsError, secrets: Path | None) -> Problem:
    section = re.search(r'field "(\w+)"', str(error))
    where = str(secrets) if "Secrets" in str(error) else "environment"
    return Problem(
        where, section[1] if section else "", "holds no valid JSON", "write lists and mappings as JSON in a variable"
    )


def _unknown_variables(environment: Mapping[str, str]) -> Iterator[Problem]:
    """A misspelt variable is a mistake too; pydantic would pass over it in silence."""
    for variable in sorted(environment):
        if not variable.upper().startswith(ENV_PREFIX):
            continue
        section = variable[len(ENV_PREFIX) :].lower().split("__")[0]
        if section not in Settings.model_fields:
            yield Problem(
                f"environment {variable}", "", "is no setting", suggestion(section, list(Settings.model_fields))
            )
