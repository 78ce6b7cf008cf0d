"""The values that no line of the log may hold, whatever library quotes them: every secret of a configuration."""

import os
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, SecretStr

from pinchpoint.sources.http.secret_file import read_secret

_FILES = ("token_file", "password_file", "api_key_file")  # how the names of settings end that name a secret's file


def secrets_of(settings: BaseModel) -> Iterator[str]:
    """Each as it is now: a file is read, and one that is rotated later is known at the next load."""
    for name in type(settings).model_fields:
        yield from _in(name, getattr(settings, name))


def _in(name: str, value: object) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        yield from secrets_of(value)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _in(name, each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _in(str(key), each)
    elif isinstance(value, Path) and name.endswith(_FILES):
        try:
            yield read_secret(value)
        except ValueError:
            return  # whoever needs it says so
    elif isinstance(value, str) and name == "api_key_variable":
        yield os.environ.get(value, "")
