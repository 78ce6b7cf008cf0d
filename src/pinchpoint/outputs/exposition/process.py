"""The process's own metrics (``process_*``, ``python_*``), under the names that every Python program gives them."""

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest as as_text
from prometheus_client.openmetrics.exposition import generate_latest as as_openmetrics

_REGISTRY = CollectorRegistry()  # not the library's global one, to which anyone may add
ProcessCollector(registry=_REGISTRY)
PlatformCollector(registry=_REGISTRY)
GCCollector(registry=_REGISTRY)


def process_metrics() -> tuple[str, str]:
    """The process now, in text 0.0.4 and in OpenMetrics; the latter ends with ``# EOF``."""
    openmetrics: bytes = as_openmetrics(_REGISTRY)  # type: ignore[no-untyped-call]
    return as_text(_REGISTRY).decode(), openmetrics.decode()
