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
    text = _text(file)
    try:
        content = yaml.safe_load(text)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}:{mark.line + 1}" if mark else str(file)
        what = str(getattr(error, "problem", None) or "the nesting is too deep")
        raise ConfigError(Problem(where, "", f"is no valid YAML: {what}", "mend the syntax at that line")) from None
    if content is None:
        return {}, {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise ConfigError(Problem(str(file), "", "is no mapping of sections", "start with a section, such as `web:`"))
    given = {section: value for section, value in content.items() if value is not None}  # `gpu:` alone is the defaults
    return given, dict(_key_lines(node, (), set()))


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise ConfigError(Problem(str(file), "", "is larger than 1 MiB", "name pinchpoint's own configuration"))
        return file.read_text(encoding="utf-8")
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
