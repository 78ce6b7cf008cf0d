"""Prometheus' target groups, as file_sd and http_sd have them: bad items are left out and named, good ones taken."""

from collections.abc import Iterator, Mapping
from itertools import islice

from pinchpoint.snapshot import EngineTarget, Reason
from pinchpoint.sources.discovery.described import MAX_LABELS, Build, described
from pinchpoint.sources.discovery.finder import Finding
from pinchpoint.sources.http.failure import SourceError

MAX_TARGETS = 10_000  # of one list, before shards, and groups; each costs tens of microseconds to check
MAX_REFUSED = 100  # said one by one

_KEYS = {"targets", "labels"}


def read_groups(groups: object, where: str, found_by: str, build: Build) -> Finding:
    """The engines of a parsed list; ``where`` (a file, a URL) names it in messages.

    Raises ``SourceError`` when it is no list at all. Takes seconds for a list at its limit: not on the event loop.
    """
    if not isinstance(groups, list):
        raise SourceError(
            Reason.INVALID, f"{where} is no list of groups like [{{'targets': ['host:port']}}]; [] is an empty one"
        )
    # Groups without targets count too: by aliases a small YAML file can hold a hundred thousand of them.
    items = list(islice(_items(groups[:MAX_TARGETS], found_by, build), MAX_TARGETS + 1))
    targets = tuple(item for item in items[:MAX_TARGETS] if isinstance(item, EngineTarget))
    refused = [f"{where}: {item}" for item in items[:MAX_TARGETS] if isinstance(item, str)]
    if len(refused) > MAX_REFUSED:
        refused[MAX_REFUSED:] = [f"{where}: {len(refused) - MAX_REFUSED} more"]
    if len(items) > MAX_TARGETS or len(groups) > MAX_TARGETS:
        what = "targets" if len(items) > MAX_TARGETS else "groups"
        refused.insert(0, f"{where}: has more than {MAX_TARGETS} {what}, the rest is left out; make several lists")
    return Finding(targets=targets, refused=tuple(refused))


def _items(groups: list[object], found_by: str, build: Build) -> Iterator[EngineTarget | str]:
    """Each target as an engine, or as the line that says why it is none; so is a group that can't be read."""
    for number, group in enumerate(groups, 1):
        try:
            addresses, labels = _group(group)
        except ValueError as error:
            yield f"group {number} {error}"
            continue
        for address in addresses:
            if not isinstance(address, str):
                yield f"group {number}: a target is no text; write it as 'host:port'"
                continue
            try:
                yield described(address, labels, alone=len(addresses) == 1, found_by=found_by, build=build)
            except ValueError as error:
                yield f"group {number}: target {address[:200].rpartition('@')[2]!r} {error}"


def _group(group: object) -> tuple[list[object], Mapping[str, str]]:
    if not isinstance(group, dict):
        raise ValueError("is no mapping; write {'targets': ['host:port'], 'labels': {}}")  # noqa: TRY004 - bad input, not a bad call
    if unknown := [str(key)[:50] for key in group if key not in _KEYS]:
        raise ValueError(f"has the key {unknown[0]!r}; a group has targets and labels")
    addresses, labels = group.get("targets"), group.get("labels") or {}
    if not isinstance(addresses, list):
        raise ValueError("has no list of targets; write 'targets': ['host:port']")  # noqa: TRY004
    if not isinstance(labels, dict):
        raise ValueError("has labels that are no mapping; write 'labels': {'engine': 'chat'}")  # noqa: TRY004
    if len(labels) > MAX_LABELS:  # before they are copied, once for each group
        raise ValueError(f"has more than {MAX_LABELS} labels; shorten")
    return addresses, {str(key): _text(str(key), value) for key, value in labels.items()}


def _text(key: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError(f"has the label {key[:50]!r} without a text; put the value in quotes")
