"""Which engine speaks here? Names folded into one spelling, and what to say when no engine does."""

from pinchpoint.snapshot import Reason
from pinchpoint.sources.engine.exposition import Families, Sample
from pinchpoint.sources.http.failure import SourceError

# The colon is not safe everywhere: Ray and OpenMetrics' "escaping=underscores" replace it, Ray also prefixes.
_UNDERSCORED = ("vllm_", "sglang_", "lmdeploy_")

_OTHERS = {
    "sglang:": "SGLang",
    "lmdeploy:": "LMDeploy",
    "tgi_": "TGI",
    "llamacpp:": "llama.cpp",
    "trtllm_": "TensorRT-LLM",
    "nv_": "Triton",
    "dynamo_": "Dynamo",
    "pinchpoint_": "pinchpoint itself",
}


def fold(name: str) -> str:
    """One spelling for a metric name: ``ray_vllm_x``, ``ray_vllm:x`` and ``vllm_x`` are ``vllm:x``."""
    name = name.removeprefix("ray_")
    return name.replace("_", ":", 1) if name.startswith(_UNDERSCORED) else name


def folded(families: Families) -> Families:
    """The same exposition with every name in its one spelling."""
    samples: dict[str, tuple[Sample, ...]] = {}
    for name, found in families.samples.items():
        samples[fold(name)] = samples.get(fold(name), ()) + found
    return Families(samples, frozenset(fold(name) for name in families.declared), families.malformed_lines)


def require_vllm(families: Families) -> None:
    """Raise ``METRICS_MISSING`` with the likely causes unless (folded) ``families`` are a vLLM server's.

    Families that are declared without samples pass: the server is warming up, and what it does not say is unknown.
    """
    names = families.names
    if not any(name.startswith("vllm:") for name in names):
        raise SourceError(Reason.METRICS_MISSING, _why_missing(names))


def _why_missing(names: frozenset[str]) -> str:
    for prefix, engine in _OTHERS.items():
        if any(name.startswith(prefix) for name in names):
            return f"this looks like {engine}, which is not read yet; only vLLM's metrics are"
    if any(name.startswith("http_") for name in names):
        return "no vllm: family beside http_*: statistics are off; start vLLM without --disable-log-stats"
    if not names:
        return "the exposition is empty; check port and metrics_path, or the server has just started"
    return (
        "no vllm: family; wrong port, a router's or exporter's /metrics, statistics off (--disable-log-stats), "
        "or an old vLLM with a multiprocess frontend"
    )
