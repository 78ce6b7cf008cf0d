"""``pinchpoint dashboards``: write the Grafana dashboards."""

from pathlib import Path
from typing import Annotated

import typer

from pinchpoint.cli.generated import write


def dashboards(
    directory: Annotated[
        Path, typer.Argument(help="Folder to write the dashboards into; files of the same name are overwritten.")
    ] = Path("grafana/dashboards"),
) -> None:
    """Write the Grafana dashboards as JSON files for provisioning.

    Example: pinchpoint dashboards /var/lib/grafana/dashboards
    """
    from pinchpoint.outputs.dashboards import dashboard_files

    for name, text in dashboard_files().items():
        write(directory / name, text)
