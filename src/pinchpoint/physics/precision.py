"""Bytes per weight and per KV element, and the tensor peak, from the words of a config and of vLLM's flags."""

from collections.abc import Mapping
from typing import Any

from pinchpoint.physics.gpus import Gpu

_BYTES = {
    "float32": 4.0, "float": 4.0, "bfloat16": 2.0, "float16": 2.0, "half": 2.0,
    "fp8": 1.0, "float8": 1.0, "int8": 1.0,
}  # fmt: skip
_SCALES = 1.03  # 4-bit weights in groups of 128 with a 16-bit scale and a zero point each (Frantar et al., GPTQ)
_FOUR_BITS = ("int4", "awq", "gptq", "w4a16", "nvfp4", "mxfp4", "fp4", "marlin", "bitsandbytes", "bnb")
_EIGHT_BITS = ("fp8", "int8", "w8a8", "w8a16", "modelopt")


def dtype_bytes(config: Mapping[str, Any]) -> float:
    """Of a tensor that is not quantised: the config's ``torch_dtype`` (or ``dtype``), else the 2 of bf16."""
    said = config.get("torch_dtype") or config.get("dtype") or ""
    return _BYTES.get(str(said).removeprefix("torch."), 2.0)


def weight_dtype_bytes(quantization: str | None, config: Mapping[str, Any]) -> float:
    """Per weight, of an engine started with ``--quantization`` or of a model whose config says how it is quantised.

    What stays at 16 bits (embeddings, router, norms) is not told apart. A word that is not known counts as not
    quantised.
    """
    method = (quantization or _config_method(config)).lower().replace("-", "_")
    if any(word in method for word in _FOUR_BITS):
        return (1.0 if _config_bits(config) == 8 else 0.5) * _SCALES
    if any(word in method for word in _EIGHT_BITS):
        return 1.0
    bits = _config_bits(config)
    return bits / 8 * (_SCALES if bits < 8 else 1.0) if bits else dtype_bytes(config)


def kv_dtype_bytes(kv_cache_dtype: str | None, config: Mapping[str, Any]) -> float:
    """Per element of the KV cache: ``auto`` is the model's own type."""
    said = (kv_cache_dtype or "auto").lower()
    if said.startswith(("fp8", "int8")):
        return 1.0
    return 0.5625 if "fp4" in said else _BYTES.get(said, dtype_bytes(config))


def tensor_peak_flops(gpu: Gpu, quantization: str | None, config: Mapping[str, Any]) -> float:
    """What the tensor cores reach on these weights: FP8's peak where both know it, else that of bf16, in which weights
    of four bits are computed (weight-only quantisation)."""
    method = (quantization or _config_method(config)).lower()
    return gpu.fp8_flops if gpu.fp8_flops is not None and "fp8" in method else gpu.bf16_flops


def _quantization_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    for key in ("quantization_config", "quantization"):
        if isinstance(said := config.get(key), Mapping):
            return said
    return {}


def _config_method(config: Mapping[str, Any]) -> str:
    said = _quantization_config(config)
    return f"{said.get('quant_method') or ''} {said.get('quant_algo') or ''} {said.get('format') or ''}".strip()


def _config_bits(config: Mapping[str, Any]) -> int:
    bits = _quantization_config(config).get("bits")
    return int(bits) if isinstance(bits, int | float) and 1 <= bits <= 16 else 0
