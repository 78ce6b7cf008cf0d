"""A configuration file of another program: read whole or not at all, and never trusted."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

MAX_BYTES = 4 << 20  # a tool's state may hold a long history

Document = Mapping[str, Any]


class ToolFileError(Exception):
    """A file that can't be read, or that tells of no API. The message says what and what to do, and quotes nothing."""


def read_document(path: Path) -> Document:
    """The object in a JSON or TOML file; the assignments of an .env file under ``env``. Raises ``ToolFileError``."""
    text = read_text(path)
    if path.name.endswith(".env"):
        return {"env": dict(_assignments(text))}
    try:
        document = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except json.JSONDecodeError as error:
        raise ToolFileError(f"{path}:{error.lineno}: is no valid JSON: {error.msg}; mend the syntax there") from None
    except tomllib.TOMLDecodeError as error:
        raise ToolFileError(f"{path}: is no valid TOML ({_place(str(error))}); mend the syntax there") from None
    except (RecursionError, ValueError):
        raise ToolFileError(
            f"{path}: can't be read as {path.suffix.lstrip('.') or 'JSON'}; name another file"
        ) from None
    if not isinstance(document, dict):
        raise ToolFileError(f"{path}: holds no object with settings; name a tool's configuration")
    return document


def sibling(path: Path, name: str) -> Document:
    """The document beside ``path``, which tools keep the other half in; empty where there is none to read."""
    try:
        return read_document(path.parent / name)
    except ToolFileError:
        return {}


def read_text(path: Path, most: int = MAX_BYTES) -> str:
    """The text of a file of at most ``most`` bytes. Raises ``ToolFileError``."""
    if not path.is_file():  # a pipe would wait for its writer
        raise ToolFileError(f"{path}: is no file; name a tool's configuration")
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise ToolFileError(f"{path}: can't be read: {(error.strerror or 'error').lower()}; check its rights") from None
    if len(content) > most:
        raise ToolFileError(f"{path}: is larger than {most >> 20} MiB; name a tool's configuration")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ToolFileError(f"{path}: is not UTF-8 text; name a tool's configuration") from None


def mapping(holder: object, *path: str) -> Document:
    """The object at the end of a path of keys; empty where there is none."""
    for key in path:
        holder = holder.get(key) if isinstance(holder, Mapping) else None
    return holder if isinstance(holder, Mapping) else {}


def words(holder: Document, *names: str) -> str:
    """The first of these that is a text with something in it."""
    return next((value.strip() for name in names if isinstance(value := holder.get(name), str) and value.strip()), "")


def name_of(holder: Document, *names: str) -> str:
    """Which of the names ``words`` has taken; the first where none is given."""
    return next((name for name in names if words(holder, name)), names[0])


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    """``NAME=value`` line by line, as shells, systemd and Docker read such files; nothing in it is expanded."""
    for line in text.splitlines():
        name, sign, value = line.strip().removeprefix("export ").partition("=")
        if sign and name.strip().isidentifier():
            yield name.strip(), value.strip().strip("\"'")


def _place(message: str) -> str:
    return message[message.rfind("(") :].strip("()") if message.endswith(")") else "somewhere"
