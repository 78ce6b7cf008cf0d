"""Lines of an engine's start-up log as facts: every form that vLLM has had since 0.3.3, and SGLang's. Pure.

Sources: the log calls of vllm/entrypoints (arguments), vllm/engine and vllm/v1/core/kv_cache_utils.py (KV cache);
sglang/srt/managers/scheduler.py. A line is text from outside: what is taken is checked, the rest is dropped unread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields
from typing import Any

from pinchpoint.snapshot import EngineFacts
from pinchpoint.sources.process.numbers import Read, ratio, whole, word, yes_or_no

MAX_LINE = 65_536
_ROUNDING = 0.006  # a concurrency is printed with two digits behind the point

_STAMP = re.compile(r"\([\w-]+ pid=(\d{1,9})\)")
_WORTH_A_LOOK = re.compile(
    r"pid=|args: |ServerArgs|LLM engine|API server version|KV cache|concurrency|blocks|num_|max "
)
# The line with which a start begins: what was before it was another start's.
_BEGINS = re.compile(r"non-default args: \{|\bargs: Namespace\(|server_args=ServerArgs\(")
_ARGUMENTS = re.compile(_BEGINS.pattern + r"|Initializing an? (?:V\d )?LLM engine|\bmax_total_num_tokens=\d+, ")
_PAIR = re.compile(r"""(?:'(\w+)': |\b(\w+)=)\[?('[^'\\]{0,256}'|"[^"\\]{0,256}"|[\w.+-]{1,64})""")
_VERSION = re.compile(r"(?:LLM engine \(v|API server version )(\w[\w.+-]{0,62})")
_KV_SIZE = re.compile(r"KV cache size: ([\d,]+) tokens")
_CONCURRENCY = re.compile(r"Maximum concurrency for ([\d,]+) tokens per request: ([\d,]+(?:\.\d+)?)x")
_BLOCKS = re.compile(r"# (?:GPU|\w{1,16}) blocks: (\d+)(?:,|\s|$)|num_gpu_blocks is: (\d+)")
_MEMORY = re.compile(r"Available KV cache memory: (\d+(?:\.\d+)?) ?([KMGT]i?B)")
_BUDGET = re.compile(r"Chunked prefill is enabled with max_num_batched_tokens=(\d+)")
_MODEL_LENGTH = re.compile(r"Using max model len (\d+)")
_BYTES = {"K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}

# An argument's name in the log, the fact that it is, how its text is read.
_NAMES: Mapping[str, tuple[str, Read]] = {
    **{
        name: (name, whole)
        for name in (
            "max_num_seqs",
            "max_num_batched_tokens",
            "max_model_len",
            "tensor_parallel_size",
            "pipeline_parallel_size",
            "data_parallel_size",
            "block_size",
        )
    },
    "max_seq_len": ("max_model_len", whole),
    "gpu_memory_utilization": ("gpu_memory_utilization", ratio),
    "enable_prefix_caching": ("enable_prefix_caching", yes_or_no),
    "kv_cache_dtype": ("kv_cache_dtype", word),
    "quantization": ("quantization", word),
    "served_model_name": ("model", word),
    "model": ("path", word),
    # SGLang
    "model_path": ("path", word),
    "max_running_requests": ("max_num_seqs", whole),
    "context_length": ("max_model_len", whole),
    "context_len": ("max_model_len", whole),
    "tp_size": ("tensor_parallel_size", whole),
    "pp_size": ("pipeline_parallel_size", whole),
    "dp_size": ("data_parallel_size", whole),
    "mem_fraction_static": ("gpu_memory_utilization", ratio),
    "page_size": ("block_size", whole),
    "max_total_num_tokens": ("kv_cache_capacity_tokens", whole),
}
_FACTS = frozenset(each.name for each in fields(EngineFacts))


def facts_in(lines: Iterable[str], pids: Collection[int] = (), *, certain: bool = True) -> EngineFacts:
    """What the newest start in ``lines`` says, later lines over earlier.

    Lines stamped by another process than ``pids`` (if given) are another run's. Unless ``certain`` that the lines are
    of this run, only stamped ones count.
    """
    said: dict[str, Any] = {}
    for text in lines:
        if not _WORTH_A_LOOK.search(line := _unwrapped(text[:MAX_LINE])):
            continue
        stamp = _STAMP.search(line)
        if (stamp is None and not certain) or (stamp is not None and pids and int(stamp[1]) not in pids):
            continue
        if _BEGINS.search(line):
            said.clear()
        _read(line, said)
    said.setdefault("kv_cache_capacity_tokens", _capacity(said))
    said.setdefault("model", said.get("path"))
    return EngineFacts(**{name: value for name, value in said.items() if name in _FACTS})


def _unwrapped(line: str) -> str:
    """The line that Docker keeps as JSON; any other as it is."""
    if line.startswith('{"log":'):
        try:
            return str(json.loads(line)["log"])
        except (ValueError, KeyError, RecursionError):
            return ""
    return line


def _read(line: str, said: dict[str, Any]) -> None:
    if _ARGUMENTS.search(line):
        for quoted, plain, text in reversed(_PAIR.findall(line)):  # a draft model's come behind the engine's own
            fact, read = _NAMES.get(quoted or plain, ("", word))
            # The engine core's own configuration has a data parallelism of 1, whatever the server's is.
            if fact == "data_parallel_size" and "LLM engine" in line:
                continue
            if fact and (value := read(text)) is not None:
                said[fact] = value
    for pattern, take in _FORMS:
        if found := pattern.search(line):
            said.update({name: value for name, value in take(found).items() if value is not None})


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], dict[str, Any]]], ...] = (
    (_VERSION, lambda m: {"version": m[1]}),
    (_KV_SIZE, lambda m: {"size": whole(m[1])}),
    (_CONCURRENCY, lambda m: {"length": whole(m[1]), "concurrency": float(m[2].replace(",", ""))}),
    (_BLOCKS, lambda m: {"blocks": whole(m[1] or m[2])}),
    (_MEMORY, lambda m: {"kv_cache_memory_bytes": float(m[1]) * _BYTES[m[2][0]]}),
    (_BUDGET, lambda m: {"max_num_batched_tokens": whole(m[1])}),
    (_MODEL_LENGTH, lambda m: {"max_model_len": whole(m[1])}),
)


def _capacity(said: Mapping[str, Any]) -> float | None:
    """Tokens that one replica's KV cache holds.

    The size, unless concurrency times length says otherwise: of a model with several kinds of layers, releases around
    0.19 print the size of one kind alone (vllm-project/vllm#40691). Blocks only where their size was said.
    """
    size, length, concurrency = said.get("size"), said.get("length"), said.get("concurrency")
    if length and concurrency:
        if size and abs(size - concurrency * length) <= _ROUNDING * length + 1:
            return float(size)
        return float(int(concurrency * length))
    if size:
        return float(size)
    blocks, block_size = said.get("blocks"), said.get("block_size")
    return float(blocks * block_size) if blocks and block_size else None
