"""``pinchpoint run``: the daemon."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pinchpoint.cli.exits import fail


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
    record: Annotated[
        Path | None, typer.Option(help="Also record what is seen into this new folder, for `diagnose --replay`.")
    ] = None,
    log_level: Annotated[str | None, typer.Option("--log.level", help="debug, info, warning or error.")] = None,
    log_format: Annotated[str | None, typer.Option("--log.format", help="auto, console, logfmt or json.")] = None,
) -> None:
    """Watch this node's GPUs and engines, name the bottleneck, serve /metrics and the status page.

    Example: pinchpoint run --config.file /etc/pinchpoint/pinchpoint.yaml
    """
    from pinchpoint import logs
    from pinchpoint.config import ConfigError, Settings, load
    from pinchpoint.daemon import Daemon
    from pinchpoint.daemon.process import live
    from pinchpoint.outputs.recorder import Recorder

    given = {
        ("web", "listen_address"): listen,
        ("web", "enable_lifecycle"): lifecycle,
        ("log", "level"): log_level,
        ("log", "format"): log_format,
    }
    flags: dict[str, Any] = {}
    for (section, key), value in given.items():
        if value is not None:
            flags.setdefault(section, {})[key] = value

    def load_settings() -> Settings:
        return load(config, secrets=secrets, flags=flags)

    try:
        settings = load_settings()
    except ConfigError as error:
        fail(str(error))
    logs.configure(settings.log.level, settings.log.format)
    try:
        recorder = Recorder(record, settings.tick_seconds) if record else None
    except OSError as error:
        fail(f"--record {record}: {error.strerror or error}; name a folder that is empty or new")
    live(lambda: Daemon(settings, load_settings, recorder=recorder))
