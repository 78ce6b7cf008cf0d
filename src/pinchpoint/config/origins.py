"""Where a setting came from: which layer, and where in it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pinchpoint.config.file import Location

DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origins:
    """What each layer holds, by setting: its place, not its value."""

    file: Path | None
    prefix: str
    lines: Mapping[Location, int] = field(default_factory=dict)
    variables: frozenset[str] = frozenset()  # in upper case
    flags: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)  # variable in upper case -> file in the secrets folder
    places: Mapping[Location, str] = field(default_factory=dict)  # of the shared settings

    def of(self, location: Location) -> str:
        """Where to look about ``location``: the layer that gives it, else what holds it."""
        if (above := self.above(location)) is not None:
            return above
        for prefix in _prefixes(location):
            if (here := self._in_file(prefix)) is not None:
                return here
        return "configuration" if self.file is None else str(self.file)

    def given(self, location: Location) -> str:
        """Where exactly ``location`` is given, or that it is a default."""
        return self.above(location) or self._in_file(location) or DEFAULT

    def above(self, location: Location) -> str | None:
        """The layer above the file that gives ``location`` or what holds it."""
        node: Any = self.flags
        for part in location:
            node = node.get(part) if isinstance(node, Mapping) else None
        if node is not None:
            return "flags"
        names = [self.prefix + "__".join(map(str, prefix)).upper() for prefix in _prefixes(location)]
        if variable := next((name for name in names if name in self.variables), None):
            return f"environment {variable}"
        return next((self.secrets[name] for name in names if name in self.secrets), None)

    def _in_file(self, location: Location) -> str | None:
        if location in self.lines:
            return f"{self.file}:{self.lines[location]}"
        return self.places.get(location)


def _prefixes(location: Location) -> Iterator[Location]:
    """The location and what holds it, the nearest first."""
    return (location[:n] for n in range(len(location), 0, -1))
