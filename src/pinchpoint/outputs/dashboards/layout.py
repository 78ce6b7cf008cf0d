"""Where panels stand: under their row titles, left to right in Grafana's 24 columns."""

from collections.abc import Iterable

from pinchpoint.outputs.dashboards.panel import Json

COLUMNS = 24


def laid_out(rows: Iterable[tuple[str, tuple[Json, ...]]]) -> list[Json]:
    """The panels with their places and ids; one that does not fit beside the others begins a new line."""
    placed: list[Json] = []
    y = 0
    for title, panels in rows:
        row = {"type": "row", "title": title, "collapsed": False, "panels": []}
        placed.append({**row, "gridPos": _place(1, COLUMNS, 0, y)})
        y, x, tallest = y + 1, 0, 0
        for panel in panels:
            size = panel["gridPos"]
            if x + size["w"] > COLUMNS:
                y, x, tallest = y + tallest, 0, 0
            placed.append({**panel, "gridPos": _place(size["h"], size["w"], x, y)})
            x, tallest = x + size["w"], max(tallest, size["h"])
        y += tallest
    return [{"id": number, **panel} for number, panel in enumerate(placed, start=1)]


def _place(height: int, width: int, x: int, y: int) -> Json:
    return {"h": height, "w": width, "x": x, "y": y}
