"""The tables of docs/engines.md, made from the code and from every exposition under tests/data.

Write them anew, from the root of the repository: ``PYTHONPATH=src:. python -m tests.sources.engine.docs_tables``
"""

import re
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from pinchpoint.snapshot import EngineTarget, Histogram, ReplicaReading
from pinchpoint.sources.engine import KINDS, reading_from_body

DOCUMENT = Path("docs/engines.md")
DATA = Path("tests/data")
SHOWN = tuple(kind for kind in KINDS.values() if kind.says)
_BEGIN, _END = "<!-- {name}: generated -->\n", "<!-- {name}: end -->\n"


def files() -> list[Path]:
    """Every exposition, and of each real capture the scrape in the middle."""
    real = (sorted(folder.glob("*.prom")) for folder in sorted((DATA / "vllm-real").iterdir()))
    synthetic = (path for path in sorted((DATA / "engine-metrics").iterdir(), key=_natural) if path.suffix != ".md")
    return [*synthetic, *(captures[len(captures) // 2] for captures in real if captures)]


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path.name)]


def files_table() -> str:
    head = ("file", "kind", "version", "replicas", "running", "waiting", "KV usage", "KV capacity", "counters")
    return _table((*head, "histograms"), (_file_row(path) for path in files()))


def _file_row(path: Path) -> tuple[str, ...]:
    reading = reading_from_body(EngineTarget(engine="chat", url=""), path.read_bytes(), None, 0.0)
    version = re.search(r"\d+\.\d+(?:\.\d+)?|3\.x|(?:main|master)-[\d-]*\d", path.name)
    replicas = reading.replicas
    known = {each.name for each in fields(ReplicaReading) for r in replicas if getattr(r, each.name) not in (None, {})}
    histograms = {name for name in known if any(isinstance(getattr(r, name), Histogram) for r in replicas)}
    return (
        f"`{path.relative_to(DATA)}`",
        reading.facts.kind,
        version[0] if version else "0.32.0",  # the captures are all of one server
        str(len(replicas)),
        _each(replicas, "requests_running"),
        _each(replicas, "requests_waiting"),
        _each(replicas, "kv_cache_usage_ratio"),
        _each(replicas, "kv_cache_capacity_tokens"),
        str(len({name for name in known if name.endswith("_total")})),
        str(len(histograms)),
    )


def _each(replicas: tuple[ReplicaReading, ...], field: str) -> str:
    values = (getattr(replica, field) for replica in replicas)
    return ", ".join("–" if value is None else f"{value:.4g}" if value < 1 else f"{value:.0f}" for value in values)


def fields_table() -> str:
    """Which field any release of a kind may fill."""
    rows = (
        (f"`{each.name}`", *("●" if each.name in kind.says else "" for kind in SHOWN))
        for each in fields(ReplicaReading)
        if any(each.name in kind.says for kind in SHOWN)
    )
    return _table(("field", *(kind.title for kind in SHOWN)), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


TABLES = {"files": files_table, "fields": fields_table}


def written(text: str) -> str:
    """The document with its tables made anew."""
    for name, table in TABLES.items():
        before, begin, rest = text.partition(_BEGIN.format(name=name))
        _, end, after = rest.partition(_END.format(name=name))
        assert begin, f"the document has no place for the table of {name}"
        assert end, f"the table of {name} has no end"
        text = before + begin + table() + end + after
    return text


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text()))
