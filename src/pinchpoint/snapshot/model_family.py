"""Which models are kin: the same name, whatever their size, tuning or date. A reading of names, no table of models."""

import re

_MAKERS = ("meta-", "nvidia-")  # that write themselves before the model's own name
_PARTS = re.compile(r"[-_:@ ]+")
# What begins the part of a name that tells one of a family from another: a size, a date, a tuning or a format.
_VARIANT = re.compile(
    r"(e?\d+(\.\d+)?[bmt]|a\d+(\.\d+)?b|\d+x\d+b|\d{4,}|v\d+\.\d+|base|chat|it|instruct|turbo|mini|nano|lite|small|"
    r"medium|large|latest|preview|hf|gguf|mlx|awq|gptq|fp8|fp16|bf16|fp4|nvfp4|int4|int8|w4a16|w8a8|q\d.*|\d+bit)"
)


def model_family(name: str | None) -> str | None:
    """``Qwen/Qwen2.5-14B-Instruct-AWQ`` and ``qwen2.5-7b-instruct`` are both ``qwen2.5``; ``None`` for no name."""
    own = (name or "").rpartition("/")[2].lower()
    for maker in _MAKERS:
        own = own.removeprefix(maker)
    parts = [part for part in _PARTS.split(own) if part]
    kept = next((number for number, part in enumerate(parts) if number and _VARIANT.fullmatch(part)), len(parts))
    return "-".join(parts[:kept]) or None


def are_kin(one: str | None, other: str | None) -> bool | None:
    """Whether two models are of one family; ``None`` where that can't be told."""
    families = model_family(one), model_family(other)
    return None if None in families else families[0] == families[1]
