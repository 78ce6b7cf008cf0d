"""llama.cpp's server: tools/server's README. No KV usage since May 2025, no latency histogram, no queue time.

Its averages (``*_seconds`` gauges, ``n_busy_slots_per_decode``) are over the lifetime or since the last scrape by
anybody, and not read as rates. Tokens are counted when a request ends; its decode steps show progress before. Scraping
has side effects: it keeps a server from going to sleep, and in router mode loads a model.
"""

import re

from pinchpoint.sources.engine.kinds.kind import EngineKind
from pinchpoint.sources.engine.kinds.table import Table
from pinchpoint.sources.engine.vocabulary import Kind, Term

TABLE = Table(
    prefix="llamacpp:",
    terms={
        "requests_running": Term(Kind.GAUGE, ("llamacpp:requests_processing",)),
        "requests_waiting": Term(Kind.GAUGE, ("llamacpp:requests_deferred",)),
        "kv_cache_usage_ratio": Term(Kind.RATIO, ("llamacpp:kv_cache_usage_ratio",)),
        "prompt_tokens_total": Term(Kind.COUNTER, ("llamacpp:prompt_tokens",)),
        "prefix_cache_hits_total": Term(Kind.COUNTER, ("llamacpp:prompt_tokens_cached",)),
        "steps_total": Term(Kind.COUNTER, ("llamacpp:n_decode",)),
        "generation_tokens_total": Term(Kind.COUNTER, ("llamacpp:tokens_predicted",)),
    },
)

PROPS_PATH = "/props"  # asking for it wakes nobody, loads nothing and restarts no clock
_PROPS = re.compile(rb'"(?:default_generation_settings|total_slots|is_sleeping)"')


def kind_in_props(body: bytes) -> str:
    """``llamacpp`` where ``body`` looks like its /props."""
    return KIND.name if _PROPS.search(body) else ""


KIND = EngineKind(
    name="llamacpp",
    title="llama.cpp",
    marks=("llamacpp:",),
    says=TABLE.says,
    read=TABLE.read,
    remedy="start llama-server with --metrics",
    asked_every_seconds=5.0,
)
