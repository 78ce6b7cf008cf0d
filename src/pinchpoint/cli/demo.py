"""``pinchpoint demo``: everything, on a simulated node."""

from typing import Annotated

import typer

from pinchpoint.cli.exits import fail


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
    from pinchpoint import logs
    from pinchpoint.config import ConfigError, load
    from pinchpoint.daemon import Daemon
    from pinchpoint.daemon.node import Node
    from pinchpoint.daemon.process import live
    from pinchpoint.simulator import SCENARIOS, ThreadedNode

    if scenario == "list":
        print("\n".join(SCENARIOS))
        return
    if scenario is not None and scenario not in SCENARIOS:
        fail(f"--scenario {scenario}: no such scenario; use one of {', '.join(SCENARIOS)}")
    try:
        base = load(
            flags={
                "web": {"listen_address": listen},
                "log": {"level": log_level, "format": log_format},
                "discovery": {"loopback": False},
                "engines": {"interval_seconds": 1},
                "host": {"interval_seconds": 1},
            },
            environment={},
        )
    except ConfigError as error:
        fail(str(error))
    logs.configure(base.log.level, base.log.format)
    simulated = ThreadedNode(seed=seed, scenario=scenario, scenario_seconds=seconds)
    simulated.start()
    settings = base.model_copy(
        update={
            "engines": base.engines.watching(simulated.targets()),
            "probes": base.probes.probing(simulated.targets(), interval_seconds=10),
        }
    )
    node = Node(gpus=simulated.gpus, host=simulated, links=simulated.links, simulated=True)
    live(lambda: Daemon(settings, lambda: settings, node=node))
