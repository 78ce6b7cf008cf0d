"""Which engine speaks here? Names folded into one spelling, and what to say when no engine does."""

import re

from pinchpoint.snapshot import Reason
from pinchpoint.sources.engine.exposition import Families, Sample
from pinchpoint.sources.engine.kinds import AUTO, KINDS, LOOKED_FOR, EngineKind, dynamo, trtllm
from pinchpoint.sources.http import SourceError

# The colon is not safe everywhere: Ray and OpenMetrics' "escaping=underscores" replace it, Ray also prefixes.
_UNDERSCORED = ("vllm_", "sglang_", "lmdeploy_", "llamacpp_")
# Dynamo puts a prefix before names that have none, and has spelt it both ways.
_COLON = "trtllm:"

_MARKS = re.compile(
    rb"(?:^|\n)(?:# (?:HELP|TYPE) )?(?:ray_)?(?:(?P<vllm>vllm[:_])|(?P<sglang>sglang[:_])|(?P<lmdeploy>lmdeploy[:_])"
    rb"|(?P<llamacpp>llamacpp[:_])|(?P<tgi>tgi_)|(?P<trtllm>trtllm[:_])|(?P<triton>nv_)|(?P<dynamo>dynamo_))"
)

# What speaks of engines and is none, by the start of a name.
_NO_ENGINES = {
    "vllm:current_qps": "production-stack's router",
    "inference_extension_": "the inference gateway's endpoint picker",
    "inference_objective_": "the inference gateway's endpoint picker",
    "inference_pool_": "the inference gateway's endpoint picker",
    "llm_d_": "llm-d's router",
    "smg_": "SGLang's model gateway",
    "sgl_router_": "SGLang's router",
    "litellm_": "LiteLLM's proxy",
    "envoy_": "Envoy",
}


def fold(name: str) -> str:
    """One spelling for a metric name: ``ray_vllm_x``, ``ray_vllm:x`` and ``vllm_x`` are ``vllm:x``."""
    name = name.removeprefix("ray_")
    if name.startswith(_COLON):
        return name.replace(":", "_", 1)
    return name.replace("_", ":", 1) if name.startswith(_UNDERSCORED) else name


def folded(families: Families) -> Families:
    """The same exposition with every name in its one spelling."""
    names = {name: fold(name) for name in families.names}
    every = frozenset(names.values())
    if not any(kind.speaks_in(every) for kind in LOOKED_FOR):
        names = _unhidden(every, names)
    samples: dict[str, tuple[Sample, ...]] = {}
    for name, found in families.samples.items():
        samples[names[name]] = samples.get(names[name], ()) + found
    return Families(samples, frozenset(names[name] for name in families.declared), families.malformed_lines)


def _unhidden(every: frozenset[str], names: dict[str, str]) -> dict[str, str]:
    """Names without an engine's mark: those of a TensorRT-LLM before 2026, or with a prefix chosen for Dynamo."""
    if trtllm.is_old(every):
        return {name: trtllm.prefixed(spelt) for name, spelt in names.items()}
    prefix = dynamo.own_prefix(every)
    if prefix is not None:
        return {name: spelt.replace(prefix, dynamo.PREFIX, 1) for name, spelt in names.items()}
    return names


def kind_in(body: bytes) -> str:
    """The kind of engine whose exposition ``body`` looks like, from its first telling line; empty where none does.

    For a search among strangers' ports: cheap, and works on the start of a body.
    """
    found = _MARKS.search(body)
    return found.lastgroup or "" if found else ""


def recognise(families: Families, said: str = AUTO) -> EngineKind:
    """The kind of engine that (folded) ``families`` are of.

    Families that are declared without samples count: the server is warming up, and what it does not say is unknown.
    Raises ``SourceError``: ``WRONG_KIND`` where that is not the kind that was ``said``, ``METRICS_MISSING`` with the
    likely causes where it is none.
    """
    names = families.names
    _refuse_what_is_no_engine(families)
    expected = KINDS.get(said)
    found = next((kind for kind in LOOKED_FOR if kind.speaks_in(names)), None)
    if found is not None and (expected is None or expected.passes_on):
        return found
    if expected is not None and expected.speaks_in(names):
        return expected
    if expected is not None and expected.lazy and not names:
        return expected
    if expected is not None and found is not None:
        raise SourceError(
            Reason.WRONG_KIND,
            f"kind is {said}, but this is {found.title}'s exposition; set kind to {found.name} or auto, or check url",
        )
    raise SourceError(Reason.METRICS_MISSING, _why_missing(names, expected))


def _refuse_what_is_no_engine(families: Families) -> None:
    names = families.names
    title = next((t for mark, t in _NO_ENGINES.items() if any(name.startswith(mark) for name in names)), None)
    # The router's own view of its engines bears their names, and their addresses.
    if any("server" in sample.labels for sample in families.samples.get("vllm:num_requests_running", ())):
        title = "production-stack's router"
    if title is not None:
        raise SourceError(
            Reason.METRICS_MISSING,
            f"this is {title}, which is no engine: name the engines behind it, each with its own url",
        )


def _why_missing(names: frozenset[str], expected: EngineKind | None) -> str:
    if any(name.startswith("pinchpoint_") for name in names):
        return "this is pinchpoint itself; check port"
    if not names:
        return "the exposition is empty; check port and metrics_path, or the server has just started"
    if expected is not None and expected.name != "vllm":
        return f"no family of {expected.title}; {expected.remedy}"
    if any(name.startswith("http_") for name in names):
        return "no engine's family beside http_*: statistics are off; start vLLM without --disable-log-stats"
    return (
        "no engine's family; wrong port, a router's or exporter's /metrics, statistics off (--disable-log-stats), "
        "or an old vLLM with a multiprocess frontend"
    )
