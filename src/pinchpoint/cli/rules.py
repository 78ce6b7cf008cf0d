"""``pinchpoint rules``: write the Prometheus alert rules."""

from pathlib import Path
from typing import Annotated

import typer

from pinchpoint.cli.generated import write


def rules(
    directory: Annotated[Path, typer.Argument(help="Folder to write pinchpoint.rules.yml into.")] = Path("alerts"),
    grafana_url: Annotated[str, typer.Option(help="Your Grafana, for the alerts' dashboard links.")] = "",
) -> None:
    """Write the Prometheus alert rules.

    Example: pinchpoint rules /etc/prometheus/rules --grafana-url https://grafana.mysite.net
    """
    from pinchpoint.alerting import ALERTS, rules_file

    write(directory / "pinchpoint.rules.yml", rules_file(ALERTS, grafana_url))
