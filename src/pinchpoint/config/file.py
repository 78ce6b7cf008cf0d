"""The YAML file: its content, and the line of each key for the messages."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from pinchpoint.config.problem import ConfigError, Problem

MAX_FILE_BYTES = 1 << 20  # a thousand engines fit; a wrong file named by mistake does not fill the memory

Location = tuple[str | int, ...]


def read_file(file: Path) -> tuple[Mapping[str, Any], Mapping[Location, int]]:
    """The content of ``file`` and the line of each key. Raises ``ConfigError`` when it is no mapping in YAML."""
    content, lines = _parsed(file, read_text(file))
    if content is None:
        return {}, {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise ConfigError(Problem(str(file), "", "is no mapping of sections", "start with a section, such as `web:`"))
    given = {section: value for section, value in content.items() if value is not None}  # `gpu:` alone is the defaults
    return given, lines


def _parsed(file: Path, text: str) -> tuple[Any, Mapping[Location, int]]:
    """The value of a YAML text, and the line of each key, of which none may be there twice."""
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        keys = list(_key_lines(node, (), set()))  # first: constructing unfolds the merge keys in the nodes
        content = None if node is None else loader.construct_document(node)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}:{mark.line + 1}" if mark else str(file)
        deep = "the nesting is too deep" if isinstance(error, RecursionError) else str(error)  # or 2024-13-01, no date
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or deep
        raise ConfigError(Problem(where, "", f"is no valid YAML: {what}", "mend the syntax at that line")) from None
    lines: dict[Location, int] = {}
    twice: list[Problem] = []
    for path, line in keys:
        if path in lines:
            said = f"is given twice, first in line {lines[path]}"
            twice.append(Problem(f"{file}:{line}", ".".join(map(str, path)), said, "keep one of them"))
        lines.setdefault(path, line)
    if twice:
        raise ConfigError(*twice)
    return content, lines


def read_text(file: Path) -> str:
    """The text of a file of at most 1 MiB. Raises ``ConfigError``."""
    try:
        with file.open("rb") as opened:
            read = opened.read(MAX_FILE_BYTES + 1)  # not its size: a device has none, and no end
        if len(read) > MAX_FILE_BYTES:
            raise ConfigError(Problem(str(file), "", "is larger than 1 MiB", "name pinchpoint's own configuration"))
        return read.decode("utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(Problem(str(file), "", f"can't be read: {reason}", "check the path and its rights")) from None
    except UnicodeDecodeError:
        raise ConfigError(Problem(str(file), "", "is not UTF-8 text", "name pinchpoint's own configuration")) from None


def _key_lines(node: yaml.Node | None, path: Location, seen: set[int]) -> Iterator[tuple[Location, int]]:
    if id(node) in seen:  # an alias: walked where it was defined; it may even contain itself
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, str(key.value))
            yield here, key.start_mark.line + 1
            yield from _key_lines(value, here, seen)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            here = (*path, number)
            yield here, value.start_mark.line + 1
            yield from _key_lines(value, here, seen)
