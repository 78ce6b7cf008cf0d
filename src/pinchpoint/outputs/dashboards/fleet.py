"""The fleet: which engine hurts, since when, whether promises are kept, and what is being paid."""

from pinchpoint.outputs.dashboards.frame import FIRING, dashboard, path_to
from pinchpoint.outputs.dashboards.looks import CLASS_PARTS, CLASSES, FINISHED, GREEN, HELP, ORANGE, RED, SIMULATED
from pinchpoint.outputs.dashboards.panel import bars, empty_means, lines, query, shares, stacked, stat, steps, timeline
from pinchpoint.outputs.dashboards.queries import ENGINE, FINE, kept, rate
from pinchpoint.outputs.dashboards.table import Column, joined, labels, linked
from pinchpoint.outputs.dashboards.variables import ENGINE as ENGINE_CHOICE
from pinchpoint.outputs.dashboards.variables import MODEL

_EACH = "instance, engine"
_NO_RULES = "nobody evaluates pinchpoint's alerts"

_OWN_FIRING = 'pinchpoint_alert_state{@, alertname!="PinchpointWatchdog", alertstate="firing"}'

_NOW = (
    stat("Engines down", "Engines that give no usable metrics.",
         query(f"sum(pinchpoint_engine_up{{{ENGINE}}} == bool 0)"), bad_from=1),
    stat("Engines in trouble", "Engines with a bottleneck, that stall, or whose hardware is ill.",
         query(f'sum(max by (job, {_EACH}) (pinchpoint_bottleneck{{{ENGINE}, class!~"{FINE}"}}))'), bad_from=1),
    stat("GPUs down", "GPUs that are lost, hung or closed to us.",
         query("sum(pinchpoint_gpu_up{@} == bool 0)"), bad_from=1),
    empty_means(_NO_RULES, stat(
        "Alerts firing", "pinchpoint's alerts that fire, the watchdog aside: in this Prometheus or, where that has no "
        "rules, in pinchpoint.",
        # The watchdog always fires: without it nobody evaluates the rules, and 0 would be a lie.
        query(f'count({FIRING}) or 0 * count(ALERTS{{alertname="PinchpointWatchdog"}}) or sum({_OWN_FIRING})'
              ' or 0 * sum(pinchpoint_alerts_firing{@})'), bad_from=1)),
    stat("Requests waiting", "Requests in all queues.",
         query(f"sum(pinchpoint_engine_requests_waiting{{{ENGINE}}})")),
    stat("Simulated", "Whether a simulator made any of this.",
         query("max(pinchpoint_simulated{@})"), words=SIMULATED),
)  # fmt: skip

_LATE = steps(GREEN, (0.01, ORANGE), (0.1, RED))
_ENGINES = joined(
    "Engines", "Each engine now; those that keep most first tokens waiting come first. A name leads to its engine.",
    (
        Column(name="Bottleneck", words=CLASSES,
               expr=f"max by ({_EACH}) (pinchpoint_bottleneck_class_code{{{ENGINE}}})", width=210),
        Column(name="For", unit="s",
               expr=f"time() - min by ({_EACH}) (pinchpoint_bottleneck_since_timestamp_seconds{{{ENGINE}}})"),
        Column(name="More GPUs help", words=HELP, expr=f"max by ({_EACH}) (pinchpoint_more_gpus_help{{{ENGINE}}})"),
        Column(name="Late first tokens", unit="percentunit", expr=f"1 - {kept('ttft', _EACH)}", thresholds=_LATE),
        Column(name="Late paces", unit="percentunit", expr=f"1 - {kept('tpot', _EACH)}", thresholds=_LATE),
        Column(name="Waiting", expr=f"sum by ({_EACH}) (pinchpoint_engine_requests_waiting{{{ENGINE}}})"),
        Column(name="Running", expr=f"sum by ({_EACH}) (pinchpoint_engine_requests_running{{{ENGINE}}})"),
        Column(name="KV cache", unit="percentunit",
               expr=f"max by ({_EACH}) (pinchpoint_engine_kv_cache_usage_ratio{{{ENGINE}}})"),
        Column(name="Tokens/s", expr=rate("pinchpoint_engine_generation_tokens_total", _EACH)),
    ),
    sort="Late first tokens",
    height=8,
)  # fmt: skip

_HURTS = (
    empty_means("no engine configured or found", linked(
        _ENGINES, "engine", "Open this engine", path_to("engine", "instance", "engine"))),
    empty_means("no engine configured or found", timeline(
        "Bottleneck over time", "The class of each engine. One that is shorter than a pixel does not show: see the "
        "shares beside.", query(f"max by ({_EACH}) (pinchpoint_bottleneck_class_code{{{ENGINE}}})", "{{engine}}"),
        words=CLASSES, width=15)),
    shares("Time in each class", "How all engines spent their time, exactly: counted by the daemon at each tick.",
           query(rate("pinchpoint_bottleneck_class_seconds_total", "class") + " > 0", "{{class}}"), parts=CLASS_PARTS,
           width=9, beside=True),
)  # fmt: skip

_NO_TRAFFIC = "nobody asked anything in this time"
_PROMISES = (
    empty_means(_NO_TRAFFIC, lines(
        "First tokens in time", "Share of first tokens within the promised time (SLO), as the engine measured them.",
        query(kept("ttft"), "{{engine}}"), unit="percentunit", most=1)),
    empty_means(_NO_TRAFFIC, lines(
        "Paces in time", "Share of requests whose mean time per output token kept the promise.",
        query(kept("tpot"), "{{engine}}"), unit="percentunit", most=1)),
    empty_means("no hosted target configured, or none answered", lines(
        "Ours over theirs: first token", "A probe's time to first token of each local target over the hosted one's. "
        "Above 1, ours is slower; when theirs is slow too, look at the way there.",
        query('pinchpoint_probe_local_to_hosted_ratio{@, signal="ttft"}', "{{target}}"), unit="none", limit=1)),
)  # fmt: skip

_LOAD = (
    stacked("Requests finished", "By reason; aborted ones left before their end.",
            query(rate("pinchpoint_engine_request_success_total", "finished_reason"), "{{finished_reason}}"),
            unit="reqps", parts=FINISHED),
    stacked("Tokens generated", "By engine.",
            query(rate("pinchpoint_engine_generation_tokens_total"), "{{engine}}"), unit="suffix: tok/s"),
    lines("Requests in the queue", "By engine.",
          query(f"sum by (engine) (pinchpoint_engine_requests_waiting{{{ENGINE}}})", "{{engine}}"), unit="short"),
)  # fmt: skip

_TO_DO = (
    empty_means(f"nothing fires, or {_NO_RULES}", labels(
        "Firing alerts", "pinchpoint's alerts that fire now, in this Prometheus or in pinchpoint. Their annotations "
        "lead to the runbooks.",
        query(f"sum by (severity, alertname, instance, engine, replica, gpu, target) ({FIRING} or {_OWN_FIRING})",
              instant=True),
        "severity", "alertname", "engine", "replica", "gpu", "target", "instance", width=12)),
    empty_means("nothing to advise", labels(
        "Advice", "What the diagnosis advises now, engine by engine.",
        query(f"max by (instance, engine, action) (pinchpoint_advice{{{ENGINE}}}) == 1", instant=True),
        "engine", "action", "instance", width=12)),
)  # fmt: skip

_NO_SPEND = "no hosted target with a price is probed"
_SPEND = (
    empty_means(_NO_SPEND, stat(
        "Spent on probes", "US dollars that hosted probes cost in the time shown, by the price that was configured.",
        query("sum(increase(pinchpoint_probe_spend_usd_total{@}[$__range]))"), unit="currencyUSD", height=8)),
    empty_means(_NO_SPEND, lines(
        "Probe spend", "US dollars a day, at the pace of the moment.",
        query(f"86400 * {rate('pinchpoint_probe_spend_usd_total', 'target', '@')}", "{{target}}"),
        unit="currencyUSD", width=10)),
    empty_means("no cap in US dollars is set", bars(
        "Budget left", "US dollars until the nearest cap, by UTC day and month. At 0 hosted probes stop.",
        query("min by (target, period) (pinchpoint_probe_budget_remaining_usd{@})", "{{target}} this {{period}}"),
        unit="currencyUSD", width=10)),
)  # fmt: skip

FLEET = dashboard(
    "fleet",
    "Which engine hurts, since when, whether promises are kept, and what is being paid.",
    (MODEL, ENGINE_CHOICE),
    (
        ("Now", _NOW),
        ("Which engine hurts", _HURTS),
        ("What to do", _TO_DO),
        ("Promises", _PROMISES),
        ("Load", _LOAD),
        ("Spend", _SPEND),
    ),
)
