"""The settings that a team shares between its tools: ``VLLM_…`` and ``TAOTOKEN_…`` names, believed least of all.

They come, the stronger first, from the environment, from the secrets folder (the key alone) and from a settings.json,
which is one flat JSON object. What they say lands in ``local_engine`` and in one hosted probe target, beneath the YAML
file. A hosted probe costs money, so there is one only with both a key and a model. Two places that differ are no
mistake, for their order is known; they are a notice, as is a half of what a hosted probe needs.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pinchpoint.config.file import read_text
from pinchpoint.config.problem import ConfigError, Problem
from pinchpoint.sources.http.secret_file import read_secret
from pinchpoint.sources.process.numbers import Read, ratio, whole, word

_READ: Mapping[str, Read] = {
    "VLLM_MODEL": word,
    "VLLM_TENSOR_PARALLEL_SIZE": whole,
    "VLLM_GPU_MEMORY_UTILIZATION": ratio,
    "VLLM_MAX_MODEL_LEN": whole,
    "VLLM_MAX_NUM_SEQS": whole,
}  # texts as vLLM's own command line reads them: 8k is 8000
ENGINE_NAMES: Mapping[str, str] = {name: name.removeprefix("VLLM_").lower() for name in _READ}
HOSTED_NAMES: Mapping[str, str] = {"TAOTOKEN_BASE_URL": "url", "TAOTOKEN_MODEL": "model", "TAOTOKEN_API_KEY": "api_key"}
KEY_NAME = "TAOTOKEN_API_KEY"
NAMES = (*ENGINE_NAMES, *HOSTED_NAMES)


@dataclass(frozen=True, slots=True)
class Said:
    """What one name is given, and where."""

    name: str
    value: object = field(repr=False)
    where: str

    def differs_from(self, other: object) -> bool:
        """Whether another layer's value is another one: a variable is text, and ``0.90`` is ``0.9``."""
        try:
            return float(str(self.value)) != float(str(other))
        except ValueError:
            return _plain(self.value) != _plain(other)


def _plain(value: object) -> str:
    return str(value).strip().rstrip("/").removesuffix("/v1")  # a base URL may be written with it or without


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What was found, by name, and what is odd about it."""

    said: Mapping[str, Said] = field(default_factory=dict)
    notices: tuple[Problem, ...] = ()

    def of(self, names: Mapping[str, str]) -> dict[str, Said]:
        """By the setting that each name stands for."""
        return {setting: self.said[name] for name, setting in names.items() if name in self.said}


def read_shared(environment: Mapping[str, str], secrets: Path | None, file: Path | None) -> Shared:
    """Reads every place. Raises ``ConfigError`` when the file is given and is no JSON object of texts and numbers."""
    notices: list[Problem] = []
    sources = [list(_in_environment(environment, notices)), *_in_folder(secrets)]
    if file is not None:
        text = read_text(file)
        sources.append(_in_file(file, text))
        notices += _misspelt(file, text)
    said: dict[str, Said] = {}
    for each in (each for source in sources for each in source):
        first = said.setdefault(each.name, each)
        if first is not each and first.differs_from(each.value):
            notices.append(overruled(each, first.value, first.where))
    return Shared(said=said, notices=(*notices, *_halves(said)))


def overruled(loser: Said, value: object, where: str) -> Problem:
    """That a name's value does not count, because a stronger place says another."""
    if loser.name == KEY_NAME:
        what = f"is not the key at {where}, which counts"
    else:
        what = f"is {str(loser.value)[:100]}, and {where} says {str(value)[:100]}, which counts"
    return Problem(loser.where, loser.name, what, "keep one of them")


def _in_environment(environment: Mapping[str, str], notices: list[Problem]) -> Iterator[Said]:
    """What is no value here is a notice: a variable may have been meant for another program."""
    for name in NAMES:
        where, text = f"environment {name}", environment.get(name, "").strip()
        value = _READ[name](text) if name in _READ else text
        if value is not None and text:
            yield Said(name, value, where)
        elif text and text != "auto":
            notices.append(Problem(where, "", f"is {text[:40]!r}, which is no value: it is not used", "correct it"))


def _in_folder(secrets: Path | None) -> list[list[Said]]:
    if secrets is None or not (path := secrets / KEY_NAME).exists():
        return []
    try:
        return [[Said(KEY_NAME, read_secret(path), str(path))]]
    except ValueError as error:
        what, _, remedy = str(error).removeprefix(f"{path} ").partition("; ")
        raise ConfigError(Problem(str(path), "", what, remedy)) from None


def _in_file(file: Path, text: str) -> list[Said]:
    given = _object(file, text)
    found = []
    for name in NAMES:
        value = given.get(name)
        where = f"{file}:{_line(text, name)}"
        if isinstance(value, bool) or not isinstance(value, str | int | float | None):
            raise ConfigError(Problem(where, name, "should be a text or a number", f'write it like "{name}": "…"'))
        if isinstance(value, str):
            value = value.strip()
            value = (_READ[name](value) if name in _READ else None) or value  # a mistake stays, to be told as one
        if value not in (None, "", "auto"):
            found.append(Said(name, value, where))
    return found


def _object(file: Path, text: str) -> Mapping[str, Any]:
    """The names of the file: at its top, or under ``env``, where coding tools keep theirs."""
    try:
        document = json.loads(text, object_pairs_hook=partial(_each_once, file, text))
    except json.JSONDecodeError as error:
        where = f"{file}:{error.lineno}"
        raise ConfigError(Problem(where, "", f"is no valid JSON: {error.msg}", "mend the syntax there")) from None
    except (RecursionError, ValueError):
        raise ConfigError(Problem(str(file), "", "is no JSON that can be read", "mend its syntax")) from None
    if not isinstance(document, dict):
        raise ConfigError(Problem(str(file), "", "is no JSON object", 'write it like {"VLLM_MODEL": "…"}'))
    nested = document.get("env")
    return {**(nested if isinstance(nested, dict) else {}), **document}


def _each_once(file: Path, text: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object. Two addresses for one key would be a guess where the key goes."""
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name in given and name in NAMES:
            raise ConfigError(Problem(f"{file}:{_line(text, name)}", name, "is given twice", "keep one of them"))
        given[name] = value
    return given


def _line(text: str, name: str) -> int:
    found = re.search(rf'"{name}"\s*:', text)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def _misspelt(file: Path, text: str) -> Iterator[Problem]:
    """A name that is nearly one of ours. vLLM has many variables of its own that are none of them."""
    for name in sorted({*re.findall(r'"((?:VLLM|TAOTOKEN)_\w{1,100})"\s*:', text)} - {*NAMES}):
        if close := difflib.get_close_matches(name, NAMES, n=1, cutoff=0.85):
            yield Problem(f"{file}:{_line(text, name)}", name, "is not read", f"did you mean `{close[0]}`?")


def _halves(said: Mapping[str, Said]) -> Iterator[Problem]:
    key, model = said.get(KEY_NAME), said.get("TAOTOKEN_MODEL")
    told = model or said.get("TAOTOKEN_BASE_URL")
    if key and not model:
        yield Problem(key.where, KEY_NAME, "is given without a model: nothing hosted is probed", "add TAOTOKEN_MODEL")
    if told and not key:
        remedy = "add TAOTOKEN_API_KEY to the environment or to the secrets folder"
        yield Problem(told.where, told.name, "is given without a key: nothing hosted is probed", remedy)
