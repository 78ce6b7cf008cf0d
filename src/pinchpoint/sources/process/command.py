"""Which engine a command line starts, and with which arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*t?")
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")  # options of Python that take the next word


@dataclass(frozen=True, slots=True)
class Command:
    """``kind`` is empty where no known engine is started. ``arguments`` follow the program and its subcommand."""

    kind: str
    arguments: tuple[str, ...] = ()


# Program or module, with its subcommand where it has any.
_STARTS: Mapping[tuple[str, ...], str] = {
    ("vllm", "serve"): "vllm",
    ("vllm.entrypoints.cli.main", "serve"): "vllm",
    ("vllm.entrypoints.openai.api_server",): "vllm",
    ("vllm.entrypoints.api_server",): "vllm",
    ("sglang", "serve"): "sglang",
    ("sglang.launch_server",): "sglang",
    ("text-generation-launcher",): "tgi",
    ("text-generation-router",): "tgi",
    ("llama-server",): "llamacpp",
    ("lmdeploy", "serve", "api_server"): "lmdeploy",
    ("lmdeploy.serve.openai.api_server",): "lmdeploy",
    ("trtllm-serve", "serve"): "trtllm",
    ("trtllm-serve",): "trtllm",
    ("tritonserver",): "triton",
}
_LONGEST_FIRST = sorted(_STARTS, key=len, reverse=True)
_TITLES = {"VLLM::": "vllm", "sglang::": "sglang"}
_SCRIPTS = {  # a module started by its file
    "vllm/entrypoints/openai/api_server.py": "vllm.entrypoints.openai.api_server",
    "vllm/entrypoints/api_server.py": "vllm.entrypoints.api_server",
    "sglang/launch_server.py": "sglang.launch_server",
}


def command_of(line: Sequence[str]) -> Command:
    """What ``line`` starts: a program, a Python module or script, or a title such as ``VLLM::EngineCore``."""
    words = _program(line)
    if words and (kind := next((kind for title, kind in _TITLES.items() if words[0].startswith(title)), "")):
        return Command(kind)
    for start in _LONGEST_FIRST:
        if tuple(words[: len(start)]) == start:
            return Command(_STARTS[start], tuple(words[len(start) :]))
    return Command("")


def _program(line: Sequence[str]) -> list[str]:
    """The program's name or module, and what follows; Python and its options are left out."""
    words = list(line)
    if words and _PYTHON.fullmatch(PurePosixPath(words[0]).name):
        words = words[1:]
        while words and words[0].startswith("-"):
            option = words.pop(0)
            if option.startswith("-m"):
                return [option[2:], *words] if option != "-m" else words
            if option in _WITH_VALUE and words:
                words.pop(0)
        module = next((module for end, module in _SCRIPTS.items() if words and words[0].endswith(end)), None)
        if module:
            return [module, *words[1:]]
    return [PurePosixPath(words[0]).name, *words[1:]] if words else []
