"""An engine's own arguments as facts. What is not in the kind's table, a secret above all, is passed over unread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from pinchpoint.snapshot import EngineFacts
from pinchpoint.sources.process.command import Command
from pinchpoint.sources.process.numbers import whole, word
from pinchpoint.sources.process.options import MODEL_OPTIONS, OPTIONS, Options

_SHORTEST_ABBREVIATION = 6  # "max-nu": argparse lets options be cut short where that is unambiguous
_NONE = Options(values={})
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the other one takes seconds for 64 kB of brackets


def facts_of(command: Command, variables: Mapping[str, str] | None = None, config: str = "") -> EngineFacts:
    """What a command line says, then the environment's ``variables``, then the text of its configuration file.

    Pure; raises nothing. A text that is no value of its kind is passed over, as are the engine's own defaults.
    """
    options = OPTIONS.get(command.kind, _NONE)
    given = {
        **_from_config(config),
        **_from_variables(options, variables or {}),
        **dict(_from_words(options, command.arguments)),
    }
    said: dict[str, Any] = {}
    for option, text in given.items():
        if option in options.flags and text in ("", "true", "True"):
            fact, value = options.flags[option]
        elif option in options.values:
            fact, read = options.values[option]
            value = read(text)
        else:
            continue
        if value is not None:
            said[fact] = value
    said.setdefault("model", next((model for name in MODEL_OPTIONS if (model := word(given.get(name, "")))), None))
    return EngineFacts(kind=command.kind, **said)


def config_file(command: Command) -> str:
    """The path of its configuration file, as the process sees it; empty where there is none."""
    options = OPTIONS.get(command.kind, _NONE)
    return dict(_from_words(options, command.arguments)).get(options.config, "") if options.config else ""


def port_of(command: Command, variables: Mapping[str, str] | None = None) -> int | None:
    """The port that it listens on, as far as its words, or its kind's default, tell."""
    options = OPTIONS.get(command.kind)
    if options is None:
        return None
    given = {**_from_variables(options, variables or {}), **dict(_from_words(options, command.arguments))}
    text = given.get("port") or (given.get("p", "") if command.kind == "tgi" else "")
    return whole(text) if text else options.port


def _from_words(options: Options, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Option and value, in order: ``--a b``, ``--a=b``, ``-a b``, ``--a_b c``, ``--a`` alone; of several values one."""
    if words and not words[0].startswith("-"):
        yield "model-tag", words[0]
    for place, text in enumerate(words):
        if not text.startswith("-") or text.lstrip("-")[:1].isdigit():
            continue
        name, equals, value = text.partition("=")
        option = _full(options, name.lstrip("-").replace("_", "-"))
        following = words[place + 1] if place + 1 < len(words) else "-"
        if not equals and option not in options.flags and not following.startswith("-"):
            value = following
        yield option, value


def _full(options: Options, option: str) -> str:
    """The option that an abbreviation stands for; itself where it is none, or could be several."""
    known = (*options.values, *options.flags, options.config, "port")
    if option in known or option in MODEL_OPTIONS or len(option) < _SHORTEST_ABBREVIATION:
        return option
    meant = [name for name in known if name.startswith(option)]
    return meant[0] if len(meant) == 1 else option


def _from_variables(options: Options, variables: Mapping[str, str]) -> dict[str, str]:
    return {option: variables[name] for name, option in options.variables.items() if name in variables}


def _from_config(text: str) -> dict[str, str]:
    """A YAML mapping of options; of a list the first, of what is nested nothing."""
    try:
        content = yaml.load(text, _Loader) if text else None  # noqa: S506 - a safe one
        if not isinstance(content, dict):
            return {}
        plain = {key: value[0] if isinstance(value, list) and value else value for key, value in content.items()}
        return {
            str(key).replace("_", "-"): str(value) if not isinstance(value, bool) else str(value).lower()
            for key, value in plain.items()
            if isinstance(value, str | int | float)
        }
    except (yaml.YAMLError, ValueError, RecursionError, LookupError, TypeError, AttributeError, ArithmeticError):
        return {}  # !!bool x is no bool, and an int may be too long to be written: PyYAML lets out what Python says
