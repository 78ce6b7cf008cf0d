"""Capacity, over weeks: where the time went, how much room is left and for how long, and what it costs."""

from pinchpoint.alerting import KV_CACHE_HIGH_RATIO
from pinchpoint.outputs.dashboards.frame import dashboard
from pinchpoint.outputs.dashboards.looks import CLASS_PARTS, GREEN, ORANGE, RED
from pinchpoint.outputs.dashboards.panel import bars, empty_means, lines, query, shares, stacked, steps
from pinchpoint.outputs.dashboards.queries import ENGINE, FINE, kept, quantiles, rate, share
from pinchpoint.outputs.dashboards.table import Column, joined
from pinchpoint.outputs.dashboards.variables import ENGINE as ENGINE_CHOICE
from pinchpoint.outputs.dashboards.variables import MODEL, number

_HOUR, _DAY, _ALL = "[1h]", "[1d]", "[$__range]"
_WEEK_SECONDS = 7 * 86_400
_KV = f"pinchpoint_engine_kv_cache_usage_ratio{{{ENGINE}}}"
_KV_P95 = f"max by (engine) (quantile_over_time(0.95, {_KV}{_ALL}))"  # of the fullest replica
_KV_SLOPE = f"max by (engine) (deriv({_KV}{_ALL}))"
_IN_TROUBLE = f'{ENGINE}, class!~"{FINE}"'
_SECONDS = "pinchpoint_bottleneck_class_seconds_total"
_NO_ENGINE = "no engine configured or found"
_IDLE = "nobody asked anything in this time"


def _time(by: str, matchers: str = ENGINE) -> str:
    """The seconds of the whole range that engines spent in classes."""
    return f"sum by ({by}) (increase({_SECONDS}{{{matchers}}}{_ALL}))"


def _per_million_tokens(window: str) -> str:
    """GPU-hours for a million generated tokens, idle hours included, which cost the same.

    Time and tokens are those of the same watched time, so that a day that has only begun is no cheap one.
    """
    gpus = f"count by (engine) (count by (instance, engine, gpu) (pinchpoint_engine_gpu_info{{{ENGINE}}}))"
    watched = rate(_SECONDS, window=window)
    tokens = rate("pinchpoint_engine_generation_tokens_total", window=window)
    return f"{gpus} * {watched} * 1e6 / 3600 / ({tokens} > 0)"


_TIME = (
    empty_means(_NO_ENGINE, bars(
        "Time in each class", "Share of all engines' time in the range, exactly: counted by the daemon at each tick.",
        query(f"{_time('class')} / on () group_left () sum({_time('class')}) > 0.0005", "{{class}}"),
        unit="percentunit", most=1, parts=CLASS_PARTS)),
    empty_means(_NO_ENGINE, shares(
        "Time in each class, over time", "The same, as it went.",
        query(rate(_SECONDS, "class") + " > 0", "{{class}}"), parts=CLASS_PARTS, width=16, beside=True)),
    empty_means(_NO_ENGINE, lines(
        "Time in trouble", "Share of each hour in a class that asks for something.",
        query(share(rate(_SECONDS, matchers=_IN_TROUBLE, window=_HOUR), rate(_SECONDS, window=_HOUR)),
              "{{engine}}"), unit="percentunit", most=1, width=12)),
    empty_means(_IDLE, lines(
        "First tokens in time", "Share of each hour's first tokens that kept the promise (SLO).",
        query(kept("ttft", window=_HOUR), "{{engine}}"), unit="percentunit", most=1, width=12)),
)  # fmt: skip

_ROOM = (
    empty_means(_NO_ENGINE, joined(
        "Headroom", "Each engine over the whole range, its fullest replica. The trend is the slope of a straight line "
        "through all of it, so whole weeks serve it best; 'days until full' (p95 at the paging threshold) is empty "
        "where it does not rise.",
        (
            Column(name="In trouble", unit="percentunit", thresholds=steps(GREEN, (0.05, ORANGE), (0.25, RED)),
                   expr=f"{_time('engine', _IN_TROUBLE)} / ({_time('engine')} > 0)"),
            Column(name="KV cache p95", unit="percentunit",
                   thresholds=steps(GREEN, (0.75, ORANGE), (KV_CACHE_HIGH_RATIO, RED)),
                   expr=_KV_P95),
            Column(name="KV headroom", unit="percentunit",
                   expr=f"clamp_min({KV_CACHE_HIGH_RATIO} - {_KV_P95}, 0)"),
            Column(name="KV p95 in a week", unit="percentunit",
                   expr=f"clamp_min({_KV_P95} + {_WEEK_SECONDS} * {_KV_SLOPE}, 0)"),
            Column(name="Days until full", thresholds=steps(RED, (14, ORANGE), (60, GREEN)),
                   expr=f"clamp_min(({KV_CACHE_HIGH_RATIO} - {_KV_P95}) / ({_KV_SLOPE} > 0) / 86400, 0) < 3650"),
            Column(name="Batch p95", unit="percentunit",
                   expr=f"max by (engine) (quantile_over_time(0.95, pinchpoint_engine_requests_running{{{ENGINE}}}"
                        f"{_ALL})) / (max by (engine) (pinchpoint_engine_max_num_seqs{{{ENGINE}}}) > 0)"),
            Column(name="Queue p95",
                   expr=f"max by (engine) (quantile_over_time(0.95, pinchpoint_engine_requests_waiting{{{ENGINE}}}"
                        f"{_ALL}))"),
        ), sort="In trouble", height=8)),
    empty_means(_NO_ENGINE, lines(
        "KV cache: p95 of each hour", "The fullest replica of each engine.",
        query(f"max by (engine) (quantile_over_time(0.95, {_KV}{_HOUR}))", "{{engine}}"),
        unit="percentunit", most=1, limit=KV_CACHE_HIGH_RATIO)),
    empty_means(_NO_ENGINE, lines(
        "KV cache: peak of the day before", "The fullest replica of each engine. When the peaks rise from week to "
        "week, room is running out.",
        query(f"max by (engine) (max_over_time({_KV}{_DAY}))", "{{engine}}"),
        unit="percentunit", most=1, limit=KV_CACHE_HIGH_RATIO)),
    empty_means("the engines don't tell how many may run at once", lines(
        "Batch: mean of each hour", "Requests that run over those that may run at once.",
        query(f"max by (engine) (avg_over_time(pinchpoint_engine_requests_running{{{ENGINE}}}{_HOUR})) / "
              f"(max by (engine) (pinchpoint_engine_max_num_seqs{{{ENGINE}}}) > 0)", "{{engine}}"),
        unit="percentunit", most=1)),
)  # fmt: skip

_DEMAND = (
    stacked("Requests", "Finished, mean of each hour.",
            query(rate("pinchpoint_engine_request_success_total", window=_HOUR), "{{engine}}"), unit="reqps"),
    stacked("Tokens generated", "Mean of each hour.",
            query(rate("pinchpoint_engine_generation_tokens_total", window=_HOUR), "{{engine}}"),
            unit="suffix: tok/s"),
    empty_means(_IDLE, lines(
        "Size of prompts", "p95, of the requests that finished: when prompts grow, the KV cache shrinks.",
        *quantiles("pinchpoint_engine_request_prompt_tokens", "p95"), unit="suffix: tok")),
)  # fmt: skip

_COST = (
    empty_means(_IDLE, lines(
        "Cost of a million tokens", "US dollars for a million generated tokens: GPUs times the price of a GPU-hour, "
        "which is chosen above (at 1 this is GPU-hours). Idle hours are in it.",
        query(f"$gpu_hour_usd * {_per_million_tokens(_DAY)}", "{{engine}}"), unit="currencyUSD", width=6)),
    empty_means("no GPU tells its energy", stacked(
        "Energy", "kWh a day at the pace of each hour, by node.",
        query(f"{rate('pinchpoint_gpu_energy_joules_total', 'instance', '@', _HOUR)} * 86400 / 3.6e6", "{{instance}}"),
        unit="suffix: kWh/d", width=6)),
    empty_means("no hosted target with a price is probed", lines(
        "Spent on probes", "US dollars a day, at the pace of each hour.",
        query(f"86400 * {rate('pinchpoint_probe_spend_usd_total', 'target', '@', _HOUR)}", "{{target}}"),
        unit="currencyUSD", width=6)),
    empty_means("no cap in US dollars is set", bars(
        "Probe budget left", "US dollars until the nearest cap, by UTC day and month.",
        query("min by (target, period) (pinchpoint_probe_budget_remaining_usd{@})", "{{target}} this {{period}}"),
        unit="currencyUSD", width=6)),
)  # fmt: skip

CAPACITY = dashboard(
    "capacity",
    "Where the time of weeks went, how much room is left and for how long, and what it costs.",
    (MODEL, ENGINE_CHOICE, number("gpu_hour_usd", "USD per GPU-hour", "1")),
    (
        ("Where the time went", _TIME),
        ("Room", _ROOM),
        ("Demand", _DEMAND),
        ("Cost", _COST),
    ),
    since="now-14d",
    refresh="5m",
)
