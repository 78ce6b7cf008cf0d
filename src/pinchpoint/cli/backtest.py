"""``pinchpoint rules backtest``: how often each alert would have fired."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from pinchpoint.cli.duration import seconds_of
from pinchpoint.cli.exits import BAD_NEWS, fail, fail_over


def backtest(
    prometheus: Annotated[str, typer.Option(metavar="URL", help="The Prometheus, or what answers like one.")],
    since: Annotated[str, typer.Option(help="How far back to look.")] = "30d",
    interval: Annotated[
        str, typer.Option(help="How often the rules are evaluated. Default: Prometheus' own evaluation_interval.")
    ] = "1m",
    alert: Annotated[
        list[str] | None, typer.Option(help="Only this alert, with each time that it fired. May be repeated.")
    ] = None,
    bearer_token_file: Annotated[Path | None, typer.Option(help="File with the bearer token.")] = None,
    username: Annotated[str, typer.Option(help="User of the basic authentication.")] = "",
    password_file: Annotated[Path | None, typer.Option(help="File with that user's password.")] = None,
    cert_file: Annotated[Path | None, typer.Option(help="Our certificate, PEM, where it demands one.")] = None,
    key_file: Annotated[Path | None, typer.Option(help="The certificate's key, PEM. Default: in --cert-file.")] = None,
    tenant: Annotated[str, typer.Option(help="Sent as X-Scope-OrgID (Mimir).")] = "",
    ca_file: Annotated[
        Path | None, typer.Option(help="Authority that signed its certificate, PEM, instead of the system's.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Tell how often each alert would have fired on what a Prometheus has recorded, for how long, and when.

    Each alert's expression is asked for at every evaluation; `for` and `keep_firing_for` are applied here.
    VictoriaMetrics answers increase() and rate() without extrapolation, so that its counts may differ a little.

    Exit code 0: told; 1: some alerts had no answer, the lines say why; 2: wrong usage or input, or no data.

    \b
    Examples:
      pinchpoint rules backtest --prometheus http://127.0.0.1:9090
      pinchpoint rules backtest --prometheus https://mimir/prometheus --tenant ml --since 7d --json
    """
    from pydantic import ValidationError

    from pinchpoint.alerting import ALERTS
    from pinchpoint.cli.backtest_report import as_object, print_report
    from pinchpoint.cli.backtesting import backtest_all
    from pinchpoint.sources.prometheus import PrometheusSettings, QueryError

    chosen = _chosen(ALERTS, alert or [])
    back, every = _duration("--since", since), _duration("--interval", interval)
    access: dict[str, Any] = {
        "bearer_token_file": bearer_token_file,
        "tls": {"ca_file": ca_file, "certificate_file": cert_file, "key_file": key_file},
        "tenant": tenant or None,
    }
    if username:
        access["basic_auth"] = {"username": username, "password_file": password_file}
    elif password_file is not None:
        fail("--password-file is given without --username; give both")
    try:
        settings = PrometheusSettings(url=prometheus, **access)
    except ValidationError as error:
        fail_over(prometheus, error)
    try:
        report = asyncio.run(backtest_all(settings, chosen, time.time() - back, time.time(), every))
    except QueryError as error:
        fail(f"{settings.url}: {error}")
    if not report.times:
        fail(f"{settings.url}: has no pinchpoint_build_info in the last {since}; does it scrape pinchpoint?")
    if as_json:
        print(json.dumps(as_object(report), indent=2))
    else:
        print_report(report, each_time=bool(alert))
    for warning in report.warnings:
        print(f"pinchpoint: {settings.url} warns: {warning}", file=sys.stderr)
    failures = [f"{each.alert.name}: {each.failure}" for each in report.alerts if each.failure]
    if failures:
        fail("\n".join(failures), BAD_NEWS)


def _chosen(alerts: tuple[Any, ...], names: list[str]) -> list[Any]:
    """Those of that name; without names all that are not always there."""
    known = {each.name for each in alerts}
    if unknown := [name for name in names if name not in known]:
        fail(f"--alert {unknown[0]}: is none of {', '.join(sorted(known))}")
    return [each for each in alerts if each.name in names] if names else [a for a in alerts if a.severity != "none"]


def _duration(option: str, text: str) -> int:
    try:
        seconds = seconds_of(text)
    except ValueError as error:
        fail(f"{option}: {error}")
    if seconds == 0:
        fail(f"{option}: must be more than 0")
    return seconds
