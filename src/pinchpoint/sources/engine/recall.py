"""What two scrapes of one target have in common: all but the numbers, as a rule. It is read once.

A body is compared with the one before by everything that is no value: the heads of its sample lines, and its comments.
When they are the same, only the values are read. Never changes what a body says: what is not plainly the same, or was
not plain in the first place (timestamps, exemplars, malformed lines), is read in full each time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import groupby
from math import isfinite
from operator import itemgetter
from sys import intern
from typing import NamedTuple

MAX_VALUE_CHARS = 64


class Sample(NamedTuple):
    """One line: what it is labelled with, and its finite value."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class _Shape:
    """``names`` are of the sample lines in their order, with how many lines in a row bear each."""

    digest: bytes
    names: tuple[tuple[str, int], ...]
    labels: tuple[Mapping[str, str], ...]
    declared: frozenset[str]
    ended: bool


class Recall:
    """The shape of one target's last body. Costs about 50 kB for 400 series."""

    def __init__(self) -> None:
        self._shape: _Shape | None = None

    def read(self, lines: Sequence[str]) -> tuple[dict[str, tuple[Sample, ...]], frozenset[str], bool] | None:
        """Samples by name, the names declared, and whether ``# EOF`` came; ``None``: read in full.

        ``lines`` are a whole body split at its line ends.
        """
        shape = self._shape
        if shape is None:
            return None
        comments, heads, values = _taken_apart(lines)
        same = len(values) == len(shape.labels) and _digest(comments, heads) == shape.digest
        if not same or (shape.ended and not _ends_with_eof(lines)):
            return None
        numbers = _numbers(values)
        if numbers is None:
            return None
        every = list(map(Sample, shape.labels, numbers))
        sound = all(map(isfinite, numbers))
        samples: dict[str, tuple[Sample, ...]] = {}
        start = 0
        for name, count in shape.names:
            found = every[start : start + count]
            start += count
            if not sound:
                found = [sample for sample in found if isfinite(sample.value)]
            if found and not name.endswith("_created"):
                samples[name] = samples.get(name, ()) + tuple(found)
        return samples, shape.declared, shape.ended

    def keep(
        self,
        lines: Sequence[str],
        read: Sequence[tuple[str, Mapping[str, str]]],
        declared: frozenset[str],
        ended: bool,
    ) -> None:
        """Keeps the shape of a body that was read in full, if it is plain: ``read`` are name and labels of each sample.

        Call it only where each line is blank, a comment, or the sample whose head is all but its value.
        """
        comments, heads, values = _taken_apart(lines)
        plain = len(values) == len(read) and _numbers(values) is not None and ended == ("# EOF" in comments)
        if not plain or (ended and not _ends_with_eof(lines)):
            self._shape = None
            return
        names = tuple((intern(name), len(list(lines))) for name, lines in groupby(read, key=itemgetter(0)))
        labels = tuple(labels for _, labels in read)
        self._shape = _Shape(_digest(comments, heads), names, labels, _shared(declared), ended)

    def forget(self) -> None:
        self._shape = None


@lru_cache(maxsize=64)
def _shared(declared: frozenset[str]) -> frozenset[str]:
    """The same object for equal sets: engines of one release declare the same."""
    return declared


def _ends_with_eof(lines: Sequence[str]) -> bool:
    return "# EOF" in lines[-2:]


def _taken_apart(lines: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Comments; the heads of the samples, all up to the last blank; and what comes after it."""
    comments = [line for line in lines if line[:1] == "#"]
    samples = [line.rpartition(" ") for line in lines if line and line[0] != "#"]
    return comments, [head for head, _, _ in samples], [value for _, _, value in samples]


def _digest(comments: Sequence[str], heads: Sequence[str]) -> bytes:
    text = "\n".join((*comments, "", *heads))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _numbers(texts: Sequence[str]) -> list[float] | None:
    """Equal texts give one object: most buckets of a histogram are equal, and a history holds thousands of them."""
    together = "".join(texts)
    if "_" in together or not together.isascii() or max(map(len, texts), default=0) > MAX_VALUE_CHARS:
        return None  # Python reads more as a number than Prometheus does
    try:
        known = dict(zip(texts, map(float, texts), strict=True))
    except ValueError:
        return None
    return [known[text] for text in texts]
