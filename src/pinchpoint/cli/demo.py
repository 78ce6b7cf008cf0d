"""``pinchpoint demo``: everything, on a simulated node."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pinchpoint.cli.exits import fail

if TYPE_CHECKING:
    from pinchpoint.snapshot import EngineTarget


def demo(
    listen: Annotated[
        str, typer.Option("--web.listen-address", help="HOST:PORT to serve on. Loopback unless you say otherwise.")
    ] = "127.0.0.1:10770",
    scenario: Annotated[
        str | None, typer.Option(help="Stay in one scenario. Without: they take turns. `list` prints their names.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=5, help="Seconds per scenario while they take turns.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Seed of the simulation: the same seed draws the same node.")] = 0,
    log_level: Annotated[str, typer.Option("--log.level", help="debug, info, warning or error.")] = "info",
    log_format: Annotated[str, typer.Option("--log.format", help="auto, console, logfmt or json.")] = "auto",
) -> None:
    """Run a simulated node, the daemon and the status page; scenarios take turns. Needs no GPU.

    Example: pinchpoint demo --scenario memory_wall
    """
    import structlog

    from pinchpoint import logs
    from pinchpoint.config import ConfigError, load
    from pinchpoint.daemon import Daemon
    from pinchpoint.daemon.node import Node
    from pinchpoint.daemon.process import live
    from pinchpoint.simulator import SCENARIOS, SimulatedNode, ThreadedNode

    if scenario == "list":
        print("\n".join(SCENARIOS))
        return
    if scenario is not None and scenario not in SCENARIOS:
        fail(f"--scenario {scenario}: no such scenario; use one of {', '.join(SCENARIOS)}")
    simulated = SimulatedNode(seed=seed, scenario=scenario, scenario_seconds=seconds)
    thread = ThreadedNode(simulated)
    thread.start()
    flags = {
        "web": {"listen_address": listen},
        "log": {"level": log_level, "format": log_format},
        "discovery": {"loopback": False},
        "host": {"interval_seconds": 1},
        "pods": {"enabled": False},  # this machine's pods have nothing to do with simulated cards
        "engines": {"interval_seconds": 1, "targets": [_engine(target) for target in simulated.targets()]},
        "probes": {"targets": [_probe(target) for target in simulated.targets()]},
    }
    try:
        settings = load(flags=flags, environment={})
    except ConfigError as error:
        fail(str(error))
    logs.configure(settings.log.level, settings.log.format)
    log = structlog.get_logger(__name__)
    for target in simulated.targets():
        log.info("simulated engine listens", engine=target.engine, url=target.url)
    node = Node(gpus=simulated.gpus, host=simulated.host, simulated=True)
    live(lambda: Daemon(settings, lambda: settings, node=node))


def _engine(target: "EngineTarget") -> dict[str, Any]:
    """A simulated engine as its operator would configure it."""
    own = {"name": target.engine, "url": target.url, "gpus": target.gpus, "slo": asdict(target.slo)}
    return {**own, **target.facts.known()}


def _probe(target: "EngineTarget") -> dict[str, Any]:
    """Impatient, so that a scenario that keeps a user waiting shows as a probe that fails."""
    deadlines = {"first_token": 8, "overall": 20}
    return {
        "name": target.engine,
        "url": target.url,
        "engine": target.engine,
        "interval_seconds": 10,
        "deadlines": deadlines,
    }
