"""What must hold between settings: within lists, and across sections. Looks at what was given, valid or not.

So that a mistake here is reported beside the others: pydantic looks at a whole only when every part of it is valid.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pinchpoint.config.file import Location
from pinchpoint.diagnosis.thresholds import Thresholds

Given = Mapping[str, Any]

FINDERS = ("discovery.files", "discovery.http")  # lists of those who find engines

# (a, b, what happens when a is above b)
_NOT_ABOVE: tuple[tuple[str, str, str], ...] = (
    ("diagnosis.window_seconds", "history_seconds", "a verdict looks at no more than the history that is kept"),
    ("diagnosis.idle_seconds", "diagnosis.window_seconds", "nothing could last long enough to be idle"),
    ("diagnosis.stall_seconds", "diagnosis.window_seconds", "nothing could last long enough to be stalled"),
    ("diagnosis.min_scrapes", "diagnosis.full_scrapes", "confidence would be full before there is a verdict"),
    ("engines.interval_seconds", "diagnosis.stale_seconds", "every scrape would be no data before the next one"),
    *(
        (f"diagnosis.{name}", f"diagnosis.{name.removesuffix('begins')}certain", "it would be certain before it begins")
        for name in Thresholds.model_fields
        if name.endswith("_begins")
    ),
)


@dataclass(frozen=True, slots=True)
class Broken:
    """A relation that does not hold, at the key to change."""

    location: Location
    what: str
    remedy: str


def broken_relations(given: Given, defaults: object) -> Iterator[Broken]:
    """Every relation that ``given`` (nested like the file) breaks, with ``defaults`` for what it leaves out."""
    engines, probes = _entries(given, "engines"), _entries(given, "probes")
    yield from _names_twice("engines", engines)
    yield from _names_twice("probes", probes)
    for section in FINDERS:
        yield from _names_twice(section, _entries(given, section))
    yield from _urls_twice(engines)
    yield from _engines_unknown(given, engines, probes)
    yield from _too_high(given, defaults)
    yield from _history_too_short(given, defaults)


def _entries(given: Given, section: str) -> Mapping[int, Given]:
    """The entries of a section's list that are mappings, by their number."""
    targets = _at(given, _list_of(section))
    found = enumerate(targets) if isinstance(targets, list | tuple) else ()
    return {number: target for number, target in found if isinstance(target, Mapping)}


def _list_of(section: str) -> Location:
    return tuple(section.split(".")) if section in FINDERS else (section, "targets")


def _names_twice(section: str, targets: Mapping[int, Given]) -> Iterator[Broken]:
    seen: set[str] = set()
    for number, target in targets.items():
        if (name := str(target.get("name"))) in seen and "name" in target:
            location = (*_list_of(section), number, "name")
            yield Broken(location, f"{name!r} is given twice", "names become labels, so make each unique")
        seen.add(name)


def _urls_twice(engines: Mapping[int, Given]) -> Iterator[Broken]:
    first: dict[tuple[str, str], Any] = {}
    for number, engine in engines.items():
        if "url" not in engine:
            continue
        exposition = str(engine["url"]).rstrip("/"), str(engine.get("metrics_path", "/metrics"))
        if exposition in first:
            what = f"is the URL of engine {first[exposition]!r} too"
            remedy = "name an engine once; replicas behind one URL are told apart by their labels"
            yield Broken(("engines", "targets", number, "url"), what, remedy)
        first.setdefault(exposition, engine.get("name"))


def _engines_unknown(given: Given, engines: Mapping[int, Given], probes: Mapping[int, Given]) -> Iterator[Broken]:
    """A probe may name an engine that discovery will find, so this is a mistake only where nothing is discovered."""
    if not engines or _at(given, ("discovery", "loopback")) not in (None, False):
        return
    if any(_at(given, _list_of(section)) for section in FINDERS):
        return
    names = {str(engine.get("name")) for engine in engines.values()}
    for number, probe in probes.items():
        behind = probe.get("engine")
        if behind is not None and str(behind) not in names:
            what = f"names no configured engine ({str(behind)!r})"
            yield Broken(("probes", "targets", number, "engine"), what, f"use one of: {', '.join(sorted(names))}")


def _too_high(given: Given, defaults: object) -> Iterator[Broken]:
    for key, limit, why in _NOT_ABOVE:
        value, most = _number(given, defaults, key), _number(given, defaults, limit)
        if value is not None and most is not None and value > most:
            yield _between(given, key, limit, f"{key} ({value:g}) is above {limit} ({most:g}): {why}")


def _history_too_short(given: Given, defaults: object) -> Iterator[Broken]:
    interval, scrapes, history = (
        _number(given, defaults, key)
        for key in ("engines.interval_seconds", "diagnosis.min_scrapes", "history_seconds")
    )
    if interval is None or scrapes is None or history is None or (scrapes - 1) * interval <= history:
        return
    what = f"{scrapes:g} scrapes, {interval:g} s apart, don't fit into history_seconds ({history:g}): never a verdict"
    yield _between(given, "engines.interval_seconds", "history_seconds", what)


def _between(given: Given, key: str, limit: str, what: str) -> Broken:
    """At the key that was given; the other one may be a default."""
    location, other = tuple(key.split(".")), tuple(limit.split("."))
    if _at(given, location) is None and _at(given, other) is not None:
        return Broken(other, what, f"raise it, or lower {key}")
    return Broken(location, what, f"lower it, or raise {limit}")


def _number(given: Given, defaults: object, key: str) -> float | None:
    """As given (a variable is text), else the default; ``None`` when it is no number, which is reported elsewhere."""
    location = tuple(key.split("."))
    value = _at(given, location)
    if value is None:
        value = defaults
        for part in location:
            value = getattr(value, part)
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _at(given: Any, location: Location) -> Any:
    for part in location:
        given = given.get(part) if isinstance(given, Mapping) else None
    return given
