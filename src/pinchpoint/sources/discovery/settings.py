"""How engines are found that nobody configured."""

from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from pinchpoint.sources.discovery.kubernetes.settings import KubernetesSettings
from pinchpoint.sources.discovery.shard import Shard
from pinchpoint.sources.http import AccessSettings
from pinchpoint.sources.http.base_url import http_url

FILE_TYPES = (".json", ".yml", ".yaml")
GLOB = frozenset("*?[")

_FinderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


def _list_path(path: str) -> str:
    pure = PurePosixPath(path)
    if not pure.is_absolute() or pure.suffix.lower() not in FILE_TYPES:
        raise ValueError(f"is no absolute path that ends in {', '.join(FILE_TYPES)}; write it like /etc/targets/*.json")
    if GLOB & set(str(pure.parent)):
        raise ValueError("has a pattern in its folder; only the file's name may have one")
    return path


def _list_url(url: str) -> str:
    http_url(url, "http://cmdb:8080/engines")
    return url


class FileDiscoverySettings(BaseModel):
    """Files in Prometheus' file_sd format: a list of groups of ``targets`` with ``labels``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: _FinderName = Field(description="Name of this list: `file/NAME` in metrics and messages.")
    paths: tuple[Annotated[str, AfterValidator(_list_path)], ...] = Field(
        max_length=32,
        description="Files in JSON or YAML; the file's name may be a pattern, like /etc/targets/*.json. A file that is "
        "named and not there is a failure; one that a pattern no longer meets takes its engines with it.",
    )
    look_seconds: float = Field(
        default=2.0,
        ge=0.5,
        le=300,
        description="Seconds between two looks at whether a file has changed; a change is read once it has stood still "
        "for one look. Default 2: a look costs microseconds a file.",
    )
    refresh_seconds: float = Field(
        default=300.0,
        ge=1,
        le=86_400,
        description="Seconds after which a file is read again though it looks unchanged. Default 300: for file systems "
        "that don't tell, as Prometheus does.",
    )
    engine_access: AccessSettings = Field(
        default=AccessSettings(),
        description="Credentials and TLS for the engines of this list, sent to every address in it. Default: none.",
    )

    @field_validator("paths")
    @classmethod
    def _some(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        if not paths:  # min_length would complain of a list whose paths are all wrong, too
            raise ValueError("names no file; write one like /etc/targets/*.json")
        return paths


class HttpDiscoverySettings(AccessSettings):
    """A server in Prometheus' http_sd format, the same list as JSON; what lets us in to it stands beside its url."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: _FinderName = Field(description="Name of this list: `http/NAME` in metrics and messages.")
    url: Annotated[str, AfterValidator(_list_url)] = Field(
        description="Where the list is, like http://cmdb:8080/engines?site=a."
    )
    interval_seconds: float = Field(
        default=60.0,
        ge=1,
        le=86_400,
        description="Seconds between two questions. Default 60, as Prometheus' refresh_interval.",
    )
    timeout_seconds: float = Field(
        default=10.0,
        gt=0,
        le=60,
        description="Deadline of one question, seconds, all told. Default 10: such a list may come from a database.",
    )
    engine_access: AccessSettings = Field(
        default=AccessSettings(),
        description="Credentials and TLS for the engines of this list, sent to every address in it. Default: none.",
    )


class DiscoverySettings(BaseModel):
    """Where to look for engines."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    loopback: bool | None = Field(
        default=None,
        description="Look for engines on this host's listening TCP ports. Default: only while no engine is configured "
        "and no list is named.",
    )
    interval_seconds: float = Field(
        default=30.0,
        ge=5,
        le=3600,
        description="Seconds between two looks at this host's ports. Default 30: an engine takes longer to load.",
    )
    files: tuple[FileDiscoverySettings, ...] = Field(
        default=(), max_length=32, description="Lists of engines in files. Default: none."
    )
    http: tuple[HttpDiscoverySettings, ...] = Field(
        default=(), max_length=32, description="Lists of engines from HTTP servers. Default: none."
    )
    kubernetes: KubernetesSettings = Field(
        default=KubernetesSettings(), description="Pods that are engines. Default: not looked for."
    )
    shard: Annotated[str, AfterValidator(lambda text: str(Shard.written(text)))] | None = Field(
        default=None,
        description="Which part of the engines to watch here, where several pinchpoints share a fleet: 0/4 is the "
        "first of four. Default: all of them. What is found on this host's own ports is never split.",
    )

    @property
    def uses_lists(self) -> bool:
        """Whether engines come from somewhere that is neither the configuration nor this host's ports."""
        return bool(self.files or self.http or self.kubernetes.enabled)

    @property
    def part(self) -> Shard | None:
        return None if self.shard is None else Shard.written(self.shard)

    def looks_on_loopback(self, configured_engines: int) -> bool:
        """Whether to look, given how many engines the configuration names."""
        return configured_engines == 0 and not self.uses_lists if self.loopback is None else self.loopback
