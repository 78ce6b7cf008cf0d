"""``pinchpoint run``: the daemon."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pinchpoint.cli.exits import fail

if TYPE_CHECKING:
    from pinchpoint.config import Loaded, Settings
    from pinchpoint.outputs.recorder import Recorder


def run(
    config: Annotated[
        Path | None, typer.Option("--config.file", help="Configuration (YAML). Without: GPUs and engines of this node.")
    ] = None,
    listen: Annotated[
        str | None, typer.Option("--web.listen-address", help="HOST:PORT to serve on. Default: :10770, all interfaces.")
    ] = None,
    lifecycle: Annotated[
        bool | None, typer.Option("--web.enable-lifecycle", help="Allow POST /-/reload. Default: off.")
    ] = None,
    secrets: Annotated[Path | None, typer.Option("--secrets.dir", help="Folder with one secret per file.")] = None,
    settings_file: Annotated[
        Path | None,
        typer.Option("--settings.file", help="A settings.json with VLLM_... and TAOTOKEN_... names, beneath the rest."),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Watch part I of N of the engines, counted from 0: 0/4 is the first of four. Default: all.",
        ),
    ] = None,
    record: Annotated[
        Path | None, typer.Option(help="Also record what is seen into this new folder, for `diagnose --replay`.")
    ] = None,
    log_level: Annotated[
        str | None, typer.Option("--log.level", help="debug, info, warning or error. Default: info.")
    ] = None,
    log_format: Annotated[
        str | None,
        typer.Option(
            "--log.format",
            help="auto, console, logfmt or json. Default: auto, console on a terminal and logfmt elsewhere.",
        ),
    ] = None,
) -> None:
    """Watch this node's GPUs and engines, name the bottleneck, serve /metrics and the status page.

    Flags win over PINCHPOINT_... variables, these over the configuration file, this over VLLM_... and TAOTOKEN_...
    variables and a settings.json. SIGHUP reads the configuration again.

    \b
    Examples:
      pinchpoint run --config.file /etc/pinchpoint/pinchpoint.yaml
      pinchpoint run --record recording/
    """
    flags = _flags(
        {
            ("web", "listen_address"): listen,
            ("web", "enable_lifecycle"): lifecycle,
            ("discovery", "shard"): shard,
            ("log", "level"): log_level,
            ("log", "format"): log_format,
        }
    )
    if settings_file is not None:
        flags["settings_file"] = settings_file
    _live(config, secrets, flags, record)


def _live(config: Path | None, secrets: Path | None, flags: dict[str, Any], record: Path | None) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the daemon hears it: else a reload would end it
    from pinchpoint import logs
    from pinchpoint.config import ConfigError, Loaded, Settings, read
    from pinchpoint.daemon import Daemon
    from pinchpoint.daemon.process import live

    def read_all() -> Loaded:
        return read(config, secrets=secrets, flags=flags)

    def load_settings() -> Settings:
        return _noted(read_all())

    try:
        loaded = read_all()
    except ConfigError as error:
        fail(str(error))
    logs.configure(loaded.settings.log.level, loaded.settings.log.format)
    settings = _noted(loaded)
    recorder = _recorder(record, settings) if record else None
    live(lambda: Daemon(settings, load_settings, recorder=recorder))


def _noted(loaded: "Loaded") -> "Settings":
    """The settings, once the log has told what is odd about where they came from."""
    import structlog

    for notice in loaded.notices:
        structlog.get_logger(__name__).warning("the configuration surprises", note=str(notice))
    return loaded.settings


def _flags(given: dict[tuple[str, str], Any]) -> dict[str, Any]:
    """The flags that were given, nested like the configuration."""
    flags: dict[str, Any] = {}
    for (section, key), value in given.items():
        if value is not None:
            flags.setdefault(section, {})[key] = value
    return flags


def _recorder(folder: Path, settings: "Settings") -> "Recorder":
    """Records at the pace of the scrapes, so that a replay sees each of them once."""
    from pinchpoint.outputs.recorder import Recorder

    try:
        return Recorder(folder, max(settings.tick_seconds, settings.engines.interval_seconds))
    except OSError as error:
        fail(f"--record {folder}: {error.strerror or error}; name a folder that is empty or new")
