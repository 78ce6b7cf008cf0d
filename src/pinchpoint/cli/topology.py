"""How the GPUs are connected, as ``pinchpoint diagnose`` tells it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pinchpoint.diagnosis.topology import learn_links, node_topology
from pinchpoint.snapshot import Snapshot

STYLES = {"tp_fine": "green", "tp_costly": "yellow", "use_dp": "red", None: "dim"}


def topology_of(snapshots: Sequence[Snapshot]) -> dict[str, Any] | None:
    """The matrix and what follows for each engine, of the last snapshot that knows it, as a JSON object."""
    ever_up: Mapping[str, frozenset[str]] = {}
    for snapshot in snapshots:
        ever_up = learn_links(ever_up, snapshot.gpus)
    known = (topology for snapshot in reversed(snapshots) if (topology := node_topology(snapshot, ever_up)))
    topology = next(known, None)
    return asdict(topology) if topology else None


def print_topology(topology: Mapping[str, Any], console: Console) -> None:
    """The matrix as ``nvidia-smi topo -m`` prints it, then a paragraph for each engine."""
    console.print("[bold]how the GPUs are connected[/bold]")
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    for head in ("", *(f"GPU{gpu}" for gpu in topology["gpus"])):
        table.add_column(head, no_wrap=True)
    for gpu, row in zip(topology["gpus"], topology["matrix"], strict=True):
        table.add_row(Text(f"  GPU{gpu}", "bold"), *(Text(word, _style(word)) for word in row))
    console.print(table)
    for judgement in topology["judgements"]:
        who = judgement["engine"] or "all GPUs"
        verdict = judgement["verdict"] or "unknown"
        console.print(
            Text.assemble(f"  {who}: ", (verdict, STYLES.get(judgement["verdict"], "dim")), f"  {judgement['text']}"),
            soft_wrap=True,
        )
    for gpu, links in topology["links_lost"].items():
        console.print(
            Text(f"  GPU {gpu}: NVLink {', '.join(links)} was up and is down; look for Xid 74 in dmesg", "red"),
            soft_wrap=True,
        )


def _style(word: str) -> str:
    if word.startswith("NV"):
        return "green"
    return {"X": "dim", "?": "dim", "SYS": "red"}.get(word, "yellow")
