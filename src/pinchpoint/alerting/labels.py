"""Sets of labels, and conditions on them, as Prometheus has them: a label that is empty is no label."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

Labels = frozenset[tuple[str, str]]  # name and value; never ``__name__``
NO_LABELS: Labels = frozenset()

# What Python's expressions read otherwise than RE2's, or what RE2 does not have.
_NOT_RE2 = re.compile(r"\\[^dDwWsSbBntrfv\W_]|\(\?(?!:|i\)|P<)|\[\[|&&|--|~~|\|\|(?=[^\[]*\])|[*+?}]\+")


def labels_of(labels: Mapping[str, str]) -> Labels:
    """The set of those labels that are not empty."""
    return frozenset((name, value) for name, value in labels.items() if value)


def value_of(labels: Labels, name: str) -> str:
    """The label's value; empty where there is none."""
    return next((value for label, value in labels if label == name), "")


@lru_cache(16_384)
def keeping(labels: Labels, names: frozenset[str]) -> Labels:
    """Only the labels of those names."""
    return frozenset(pair for pair in labels if pair[0] in names)


@lru_cache(16_384)
def dropping(labels: Labels, names: frozenset[str]) -> Labels:
    """All labels but those of these names."""
    return frozenset(pair for pair in labels if pair[0] not in names)


def anchored(pattern: str) -> re.Pattern[str]:
    """A regular expression of PromQL: RE2's syntax as far as Python reads it alike, to be used with ``fullmatch``.

    Raises ``ValueError`` for what Python would read otherwise.
    """
    if found := _NOT_RE2.search(pattern):
        raise ValueError(f"the regular expression {pattern!r} has {found[0]!r}, which is not read alike everywhere")
    try:
        return re.compile(pattern, re.DOTALL | re.ASCII)
    except re.error as error:
        raise ValueError(f"the regular expression {pattern!r} is none: {error}") from None


@dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on one label: ``operator`` is ``=``, ``!=``, ``=~`` or ``!~``; the latter two have a ``pattern``."""

    label: str
    operator: str
    value: str
    pattern: re.Pattern[str] | None = field(default=None, compare=False)

    def accepts(self, labels: Labels) -> bool:
        """Whether the labels meet the condition; one that is not there is empty."""
        found = value_of(labels, self.label)
        holds = found == self.value if self.pattern is None else self.pattern.fullmatch(found) is not None
        return holds is not self.operator.startswith("!")


def matcher(label: str, operator: str, value: str) -> Matcher:
    """A condition with its expression compiled. Raises ``ValueError`` as ``anchored`` does."""
    return Matcher(label, operator, value, anchored(value) if operator.endswith("~") else None)
