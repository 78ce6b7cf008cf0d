"""``pinchpoint rules``: write the Prometheus alert rules."""

from pathlib import Path
from typing import Annotated

import typer

from pinchpoint.cli.exits import fail
from pinchpoint.cli.generated import write


def rules(
    directory: Annotated[
        Path, typer.Argument(help="Folder to write pinchpoint.rules.yml into, over one that is there.")
    ] = Path("alerts"),
    grafana_url: Annotated[
        str, typer.Option(help="Your Grafana. Without: dashboard links are paths, dead in a pager.")
    ] = "",
    runbook_url: Annotated[
        str, typer.Option(help="Where your copy of the runbooks lies. Default: the project's.")
    ] = "",
) -> None:
    """Write the Prometheus alert rules.

    Example: pinchpoint rules /etc/prometheus/rules --grafana-url https://grafana.mysite.net
    """
    from pinchpoint.alerting import ALERTS, RUNBOOKS, rules_file

    for option, url in (("--grafana-url", grafana_url), ("--runbook-url", runbook_url)):
        if url and not url.startswith(("http://", "https://")):
            fail(f"{option} {url}: is no URL that a pager can open; write https://HOST/PATH")
    write(directory / "pinchpoint.rules.yml", rules_file(ALERTS, grafana_url, runbook_url or RUNBOOKS))
