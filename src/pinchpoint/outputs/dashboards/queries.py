"""PromQL that several panels need. ``@`` stands for the matchers of job and instance, as ``panel.query`` takes it."""

from pinchpoint.outputs.dashboards.panel import Json, query

ENGINE = '@, engine=~"$engine"'
GPU = '@, gpu=~"$gpu"'
RANGE = "[$__rate_interval]"
FINE = "unknown|no_data|idle|healthy|sleeping"  # classes that ask for nothing


def rate(name: str, by: str = "engine", matchers: str = ENGINE, window: str = RANGE) -> str:
    """Per second, added up by some labels, or altogether."""
    return f"sum{f' by ({by})' if by else ''} (rate({name}{{{matchers}}}{window}))"


def share(part: str, whole: str) -> str:
    """``part`` of ``whole``; nothing where there is no whole, rather than NaN."""
    return f"{part} / ({whole} > 0)"


def mean(histogram: str, by: str, matchers: str = ENGINE) -> str:
    """The mean of what a histogram observed."""
    return share(rate(f"{histogram}_sum", by, matchers), rate(f"{histogram}_count", by, matchers))


def quantiles(histogram: str, *wanted: str, by: str = "engine", matchers: str = ENGINE) -> tuple[Json, ...]:
    """``p95`` and the like, a target each; nothing where nothing was observed."""
    buckets = rate(f"{histogram}_bucket", f"{by}, le", matchers)
    seen = rate(f"{histogram}_count", by, matchers)
    legend = " ".join(f"{{{{{label.strip()}}}}}" for label in by.split(","))
    return tuple(
        query(f"histogram_quantile(0.{q[1:]}, {buckets}) and ({seen} > 0)", f"{legend} {q}".strip()) for q in wanted
    )


def promise(signal: str) -> Json:
    """What the service promised, as a line."""
    return query(f'max by (engine) (pinchpoint_slo_threshold_seconds{{{ENGINE}, signal="{signal}"}})', "{{engine}} SLO")


def kept(signal: str, by: str = "engine", window: str = RANGE) -> str:
    """The share of first tokens (``ttft``) or paces (``tpot``) that kept the promise."""
    matchers = f'{ENGINE}, signal="{signal}"'
    good = rate("pinchpoint_engine_slo_good_events_total", by, matchers, window)
    return share(good, rate("pinchpoint_engine_slo_events_total", by, matchers, window))


def of_its_gpus(expr: str) -> str:
    """Only the chosen GPUs of the chosen engines. A filter and no join: engines may share a GPU."""
    return f'{expr} and on (job, instance, gpu) pinchpoint_engine_gpu_info{{{ENGINE}, gpu=~"$gpu"}}'
