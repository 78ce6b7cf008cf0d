"""Tables: the labels of one instant query, or several joined on the labels that they share."""

from collections.abc import Iterable
from dataclasses import dataclass

from pinchpoint.outputs.dashboards.looks import Words
from pinchpoint.outputs.dashboards.panel import Json, fields, override, panel, query, value_map

_HIDDEN = ("Time", "__name__", "job")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a joined table: one instant query whose value it shows. ``thresholds`` colour its cells.

    Without ``shown`` the value is left out: the query is there for its labels.
    """

    name: str
    expr: str
    unit: str = "short"
    words: Words | None = None
    thresholds: Json | None = None
    most: float | None = None
    link: str = ""
    shown: bool = True
    width: int | None = None


def labels(
    title: str,
    text: str,
    target: Json,
    *columns: str,
    width: int = 8,
    value: str = "",
    unit: str = "none",
    sort: str = "",
) -> Json:
    """The labels ``columns`` of an instant query, and its value in a column called ``value``.

    Sorted by the column ``sort``, least first.
    """
    order = {label: number for number, label in enumerate((*columns, "Value"))}
    hidden = _HIDDEN if value else (*_HIDDEN, "Value")
    organize: Json = {
        "excludeByName": dict.fromkeys(hidden, True),
        "indexByName": order,
        "renameByName": {"Value": value} if value else {},
    }
    drawn = _table(title, text, [target], organize, [], width, 8, unit)
    if sort:
        drawn["options"]["sortBy"] = [{"displayName": sort, "desc": False}]
    return drawn


def joined(
    title: str, text: str, columns: Iterable[Column], *, width: int = 24, height: int = 9, sort: str = ""
) -> Json:
    """A row for each set of labels, a column for each query. The rows are sorted by the column ``sort``, most first."""
    told = list(columns)
    letters = [chr(ord("A") + number) for number in range(len(told))]
    values = {f"Value #{letter}": column for letter, column in zip(letters, told, strict=True)}
    hidden = [*_HIDDEN, *(field for field, column in values.items() if not column.shown)]
    organize: Json = {
        "excludeByName": dict.fromkeys(hidden, True),
        "renameByName": {field: column.name for field, column in values.items() if column.shown},
    }
    looks = [override(column.name, _looks(column)) for column in told if column.shown]
    targets = [query(column.expr, instant=True) for column in told]
    drawn = _table(title, text, targets, organize, looks, width, height, "none")
    drawn["transformations"].insert(0, {"id": "merge", "options": {}})
    if sort:
        drawn["options"]["sortBy"] = [{"displayName": sort, "desc": True}]
    return drawn


def linked(drawn: Json, field: str, title: str, url: str) -> Json:
    """A table whose cells of ``field`` (a label) lead to ``url``."""
    link = override(field, {"links": [{"title": title, "url": url, "targetBlank": False}]})
    config = drawn["fieldConfig"]
    return {**drawn, "fieldConfig": fields(config["defaults"], [*config["overrides"], link])}


def _looks(column: Column) -> Json:
    looks: Json = {"unit": column.unit}
    if column.words:
        looks |= {
            "mappings": value_map(column.words),
            "custom.cellOptions": {"type": "color-background", "mode": "basic"},
        }
    if column.thresholds:
        looks |= {"thresholds": column.thresholds, "custom.cellOptions": {"type": "color-text"}}
    if column.most is not None:
        looks |= {"min": 0, "max": column.most}
    if column.width is not None:
        looks["custom.width"] = column.width
    return looks


def _table(
    title: str, text: str, targets: list[Json], organize: Json, looks: list[Json], width: int, height: int, unit: str
) -> Json:
    drawn = panel("table", title, text, targets, width, height)
    options: Json = {"showHeader": True, "cellHeight": "sm"}
    config = fields({"unit": unit, "custom": {"align": "left"}}, looks)
    return {
        **drawn,
        "fieldConfig": config,
        "options": options,
        "transformations": [{"id": "organize", "options": organize}],
    }
