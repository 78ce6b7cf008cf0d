"""The process's own metrics (``process_*``, ``python_*``), under the names that every Python program gives them."""

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from pinchpoint.outputs.exposition.lines import label_text

_REGISTRY = CollectorRegistry()  # not the library's global one, to which anyone may add
ProcessCollector(registry=_REGISTRY)
PlatformCollector(registry=_REGISTRY)
GCCollector(registry=_REGISTRY)


def process_metrics() -> tuple[str, str]:
    """The process now, in text 0.0.4 and in OpenMetrics; the latter ends with ``# EOF``.

    The library would collect everything once for each, and look at each name again: five times the work.
    """
    text, openmetrics = "", ""
    for family in _REGISTRY.collect():  # counters and gauges
        lines = ""
        for name, labels, value, *_ in family.samples:
            inner = label_text(tuple(labels), tuple(labels.values()))
            lines += f"{name}{{{inner}}} {float(value)!r}\n" if inner else f"{name} {float(value)!r}\n"
        full_name = f"{family.name}_total" if family.type == "counter" else family.name
        text += f"# HELP {full_name} {family.documentation}\n# TYPE {full_name} {family.type}\n{lines}"
        openmetrics += f"# HELP {family.name} {family.documentation}\n# TYPE {family.name} {family.type}\n{lines}"
    return text, f"{openmetrics}# EOF\n"
