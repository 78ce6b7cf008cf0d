"""Finds engines in Prometheus' file_sd files, and sees when they change.

A change is seen by looking (size, times, inode) every few seconds: that works on every file system, through symbolic
links as Kubernetes swaps them, and for files that are replaced whole.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, ClassVar

import yaml

from pinchpoint.snapshot import Reason
from pinchpoint.sources.discovery.described import let_in
from pinchpoint.sources.discovery.finder import Finding
from pinchpoint.sources.discovery.ground import Ground
from pinchpoint.sources.discovery.groups import read_groups
from pinchpoint.sources.discovery.settings import GLOB, FileDiscoverySettings
from pinchpoint.sources.http.failure import SourceError

MAX_FILE_BYTES = 2**20
MAX_FILES = 256
MAX_WAITS = 3  # looks at a file that never stands still, until it is read as it is
GONE_AFTER_LOOKS = 2  # a file that is moved away and back must not end its engines
DEADLINE_SECONDS = 5.0

_Safe = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times faster, where PyYAML was built with it


class _Loader(_Safe):  # type: ignore[misc,valid-type]
    """Takes a plain scalar as its text, as Prometheus does: 1.10 is not 1.1, nor 12:30 the number 750."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, object]]]] = {
        first: [rule for rule in rules if rule[0].endswith((":merge", ":null"))]
        for first, rules in _Safe.yaml_implicit_resolvers.items()
    }


Signature = tuple[int, int, int, int]


class FileFinder:
    """The engines of some files. A file that can't be read or is no list stands as it was, and the others go on."""

    def __init__(self, settings: FileDiscoverySettings, ground: Ground) -> None:
        self.name = f"file/{settings.name}"
        self.interval_seconds = settings.look_seconds
        self._settings, self._ground = settings, ground
        self._build = let_in(ground.build, settings.engine_access.access())
        self._files: dict[str, _File] = {}
        self._has_looked = False
        self._looking: asyncio.Task[Finding] | None = None

    async def find(self) -> Finding:
        """Looks in a thread. One that hangs on a dead file server is waited for, not joined by more."""
        if self._looking is None:
            self._looking = asyncio.create_task(asyncio.to_thread(self._look))
        done, _ = await asyncio.wait({self._looking}, timeout=DEADLINE_SECONDS)
        if not done:
            raise SourceError(
                Reason.HUNG, f"{self._settings.paths[0]}: no answer within {DEADLINE_SECONDS:g} s; is its disk there?"
            )
        look, self._looking = self._looking, None
        return look.result()

    def _look(self) -> Finding:
        now = self._ground.now()
        failures: list[SourceError] = []
        for path in self._paths(failures):
            file = self._files.setdefault(path, _File(path))
            file.look(now, self._settings.refresh_seconds, self._read, at_once=not self._has_looked)
            if file.failure is not None:
                failures.append(file.failure)
        self._has_looked = True
        files = [self._files[path] for path in sorted(self._files)]
        refused = tuple(line for file in files for line in file.finding.refused)
        if len(files) > MAX_FILES:
            refused = (f"{len(files)} files match, only {MAX_FILES} are read; make the pattern narrower", *refused)
        return Finding(
            targets=tuple(target for file in files[:MAX_FILES] for target in file.finding.targets),
            refused=refused,
            failure=_together(failures),
        )

    def _paths(self, failures: list[SourceError]) -> list[str]:
        """The files to look at now. Those that no pattern meets any more are dropped."""
        paths: list[str] = []
        for path in self._settings.paths:
            folder, name = os.path.split(path)
            if not GLOB & set(name):
                paths.append(path)
                continue
            try:
                there = sorted(os.listdir(folder))
            except OSError as error:  # the folder, not a file, is gone: nothing is known of the files
                failures.append(_unreadable(folder, error))
                paths += [known for known in self._files if os.path.dirname(known) == folder]
                continue
            names = [each for each in there if not each.startswith(".") and fnmatchcase(each, name)]
            paths += [os.path.join(folder, each) for each in names[: MAX_FILES + 1]]
        for gone in [path for path in self._files if path not in paths]:
            self._files[gone].missed += 1
            if self._files[gone].missed >= GONE_AFTER_LOOKS:
                del self._files[gone]
        return list(dict.fromkeys(paths))

    def _read(self, path: str, content: bytes) -> Finding:
        return read_groups(parsed(path, content), path, self.name, self._build)


@dataclass(slots=True)
class _File:
    """One file: what it held when it was last read well, and what is wrong with it now."""

    path: str
    finding: Finding = field(default_factory=Finding)
    failure: SourceError | None = None
    seen: Signature | None = None  # at the last look
    read: Signature | None = None
    read_at: float = 0.0
    bad: SourceError | None = None  # why the content of ``read`` could not be taken
    waits: int = 0
    missed: int = 0

    def look(
        self, now: float, refresh_seconds: float, parse: Callable[[str, bytes], Finding], *, at_once: bool
    ) -> None:
        """Reads the file if it has changed and stands still (or ``at_once``), or if it was last read long ago."""
        self.missed = 0
        try:
            signature = _signature(os.stat(self.path))
            if signature == self.read and now - self.read_at < refresh_seconds:
                self.failure, self.seen = self.bad, signature
                return
            if signature != self.seen and not at_once and self.waits < MAX_WAITS:
                self.seen, self.waits = signature, self.waits + 1
                return
            content, self.read = _content(self.path)
        except OSError as error:
            self.failure = _unreadable(self.path, error)
            return
        except SourceError as error:
            self.failure = error
            return
        self.seen, self.waits, self.read_at = self.read, 0, now
        try:
            self.finding, self.bad = parse(self.path, content), None
        except SourceError as error:
            self.bad = error
        self.failure = self.bad


def _signature(of: os.stat_result) -> Signature:
    return of.st_dev, of.st_ino, of.st_size, of.st_mtime_ns


def _content(path: str) -> tuple[bytes, Signature]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would wait for a writer
    with os.fdopen(descriptor, "rb") as file:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise SourceError(Reason.INVALID, f"{path} is no regular file; name a file with a list")
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise SourceError(Reason.TOO_LARGE, f"{path} is larger than {MAX_FILE_BYTES} bytes; make several files of it")
    return content, _signature(before)  # of before: what is written meanwhile is a change at the next look


def parsed(path: str, content: bytes) -> Any:
    """What a file holds, in the form that its name says. Raises ``SourceError``."""
    if not content.strip():
        raise SourceError(Reason.TRUNCATED, f"{path} is empty, so it may be half written; [] says that there is none")
    try:
        text = content.decode()
        return json.loads(text) if path.lower().endswith(".json") else yaml.load(text, _Loader)  # noqa: S506 - a safe one
    except UnicodeDecodeError:
        raise SourceError(Reason.INVALID, f"{path} is not UTF-8 text; name a list of engines") from None
    except json.JSONDecodeError as error:
        what = f"{path}:{error.lineno} is no valid JSON ({error.msg.lower()}); is it half written?"
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "a character that YAML does not allow"
        what = f"{path}{f':{mark.line + 1}' if mark else ''} is no valid YAML ({problem}); is it half written?"
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError, ArithmeticError):
        # 2024-13-01 is no date, !!bool x is no bool, and a depth may be no list's: PyYAML lets out what Python says.
        what = f"{path} holds what no list of engines has; mend it"
    raise SourceError(Reason.INVALID, what)


def _unreadable(path: str, error: OSError) -> SourceError:
    cause = (error.strerror or str(error)).lower()
    return SourceError(Reason.UNREADABLE, f"{path} can't be read: {cause}; check the path and its rights")


def _together(failures: list[SourceError]) -> SourceError | None:
    if len(failures) < 2:
        return failures[0] if failures else None
    return SourceError(failures[0].reason, f"{failures[0].detail}; {len(failures) - 1} more files fail")
