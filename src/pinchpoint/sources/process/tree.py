"""Whose process is whose: the engine's root, its tree, and each replica's part of it, by the titles they give
themselves. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping

Parents = Mapping[int, int]  # of a process its parent
_TITLE = re.compile(r"\w[\w.-]*::\w+")  # VLLM::EngineCore_DP0, sglang::scheduler_DP1_TP0; the prefix can be set
_RANK = re.compile(r"_DP(\d{1,4})(?![0-9])")
MAX_DEPTH = 64


def is_title(text: str) -> bool:
    """Whether a process calls itself by a part of an engine rather than by a command line."""
    return _TITLE.match(text) is not None


def ancestors(pid: int, parents: Parents) -> tuple[int, ...]:
    """From the parent up."""
    found: list[int] = []
    while (pid := parents.get(pid, 0)) > 0 and pid not in found and len(found) < MAX_DEPTH:
        found.append(pid)
    return tuple(found)


def root_of(holders: Collection[int], parents: Parents, is_engine: Callable[[int], bool]) -> int | None:
    """The topmost process of the engine that ``holders`` belong to.

    Of those that hold the socket, one that an engine's command line speaks for, else the oldest; from there up as long
    as the parent is the engine's too. Process 1 holds sockets for others (socket activation), unless it is the engine.
    """
    own = [pid for pid in holders if not set(ancestors(pid, parents)) & set(holders) - {1}]
    spoken = [pid for pid in own if is_engine(pid)]
    root = min(spoken or [pid for pid in own if pid != 1], default=None)
    while root is not None and (parent := parents.get(root, 0)) > 0 and is_engine(parent):
        root = parent
    return root


def tree_of(root: int, parents: Parents) -> tuple[int, ...]:
    """``root`` and its descendants, in order."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found, left = {root}, [root]
    while left:
        new = [child for child in children.get(left.pop(), ()) if child not in found]
        found.update(new)
        left += new
    return tuple(sorted(found))


def by_replica(titles: Mapping[int, str], pids: Iterable[int], parents: Parents) -> dict[str, tuple[int, ...]]:
    """The processes of each data-parallel rank: those whose title says it, and their descendants without one.

    Empty where no title says a rank: then there is one replica, or nobody tells.
    """
    ranks = {pid: rank[1] for pid, title in titles.items() if is_title(title) and (rank := _RANK.search(title))}
    found: dict[str, list[int]] = {}
    for pid in pids:
        number = next((ranks[each] for each in (pid, *ancestors(pid, parents)) if each in ranks), None)
        if number is not None:
            found.setdefault(str(int(number)), []).append(pid)
    return {replica: tuple(sorted(own)) for replica, own in sorted(found.items())}
