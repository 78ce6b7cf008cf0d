"""``pinchpoint rules``: write the Prometheus rules."""

from pathlib import Path
from typing import Annotated

import typer

from pinchpoint.cli.exits import fail
from pinchpoint.cli.generated import write


def rules(
    directory: Annotated[Path, typer.Argument(help="Folder to write the rule files into, over those there.")] = Path(
        "alerts"
    ),
    grafana_url: Annotated[
        str, typer.Option(help="Your Grafana. Without: dashboard links are paths, dead in a pager.")
    ] = "",
    runbook_url: Annotated[
        str, typer.Option(help="Where your copy of the runbooks lies. Default: the project's.")
    ] = "",
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Write a PrometheusRule for the Prometheus Operator instead.")
    ] = False,
    runbook_skeletons: Annotated[
        bool, typer.Option("--runbook-skeletons", help="Write the beginning of each runbook that is missing instead.")
    ] = False,
) -> None:
    """Write the Prometheus alert and recording rules.

    Example: pinchpoint rules /etc/prometheus/rules --grafana-url https://grafana.mysite.net
    """
    from pinchpoint import alerting

    for option, url in (("--grafana-url", grafana_url), ("--runbook-url", runbook_url)):
        if url and not url.startswith(("http://", "https://")):
            fail(f"{option} {url}: is no URL that a pager can open; write https://HOST/PATH")
    links = alerting.Links(grafana_url=grafana_url, runbook_url=runbook_url or alerting.RUNBOOKS)
    if runbook_skeletons:
        for alert in alerting.ALERTS:
            if not (page := directory / "runbooks" / alert.runbook).exists():
                write(page, alerting.runbook_skeleton(alert))
    elif kubernetes:
        write(directory / "pinchpoint.prometheusrule.yaml", alerting.prometheus_rule(links))
    else:
        write(directory / "pinchpoint.rules.yml", alerting.rules_file(links=links))
        write(directory / "pinchpoint.recording.rules.yml", alerting.recording_rules_file())
