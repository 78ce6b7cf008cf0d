"""The alerts of promises: how fast the budget of late first tokens and late answers is burnt.

Google's SRE workbook, "Alerting on SLOs": a burn rate over a long window, and over a short one so that the alert ends
soon after its cause. What is late is counted by the engine's own objectives (``slo_threshold_seconds``): no latency is
written here.
"""

from dataclasses import dataclass

from pinchpoint.alerting.alert import Alert, Dashboard, Severity

# Of 30 days. With 95 % a fast burn would be 72 % late, and an hour in which half of the users wait would tell nobody.
SLO_TARGET_RATIO = 0.99
SLO_MIN_REQUESTS = 100  # in the long window: with fewer, one late request is a burn of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class _Burn:
    speed: str
    factor: float  # times the pace at which the budget lasts 30 days
    long: str
    short: str
    for_seconds: int
    severity: Severity
    budget: str
    lasting: str


_BURNS = (
    _Burn(
        speed="Fast",
        factor=14.4,
        long="1h",
        short="5m",
        for_seconds=120,
        severity=Severity.CRITICAL,
        budget="2 % of a month's budget in an hour",
        lasting="and many do",
    ),
    _Burn(
        speed="Slow",
        factor=6.0,
        long="6h",
        short="30m",
        for_seconds=900,
        severity=Severity.WARNING,
        budget="5 % of a month's budget in six hours",
        lasting="for hours now",
    ),
)
_SIGNALS = {
    "ttft": ("TTFT", "first tokens", "First tokens come", "the queue, then prefill and the prefix cache"),
    "tpot": ("TPOT", "answers' tokens", "Answers are written", "the batch size, then preemptions and the GPUs' clocks"),
}


def _late(signal: str, window: str) -> str:
    good, every = (
        f'sum without (replica, model) (increase(pinchpoint_engine_slo_{name}_total{{signal="{signal}"}}[{window}]))'
        for name in ("good_events", "events")
    )
    return f"1 - {good}\n  / {every}"


def _alert(signal: str, burn: _Burn) -> Alert:
    short_name, what, does, look = _SIGNALS[signal]
    threshold = f"{burn.factor * (1 - SLO_TARGET_RATIO):.3g}"
    requests = f'increase(pinchpoint_engine_slo_events_total{{signal="ttft"}}[{burn.long}])'
    return Alert(
        name=f"Pinchpoint{short_name}BudgetBurn{burn.speed}",
        expr=(
            f"({_late(signal, burn.long)}) > {threshold}\n"
            f"and ({_late(signal, burn.short)}) > {threshold}\n"
            f"and on (job, instance, engine) sum by (job, instance, engine) ({requests}) >= {SLO_MIN_REQUESTS}"
        ),
        for_seconds=burn.for_seconds,
        keep_firing_for_seconds=300,
        severity=burn.severity,
        summary=f"{does} late, {burn.lasting}.",
        description=(
            f"{{{{ $value | humanizePercentage }}}} of the {what} of engine {{{{ $labels.engine }}}} were later than "
            f"promised over the last {burn.long}, and it goes on. The threshold is {100 * float(threshold):g} %: "
            f"{burn.factor:g} times what a target of {100 * SLO_TARGET_RATIO:g} % allows. The class on the status page "
            f"names the cause; look at {look}."
        ),
        why=(
            f"{burn.factor:g} times the pace of a {100 * SLO_TARGET_RATIO:g} % target over 30 days: {burn.budget}. "
            f"The last {burn.short} must burn as fast, so that it ends soon. At least {SLO_MIN_REQUESTS} requests in "
            f"{burn.long}: fewer are no ground for a share."
        ),
        dashboard_uid=Dashboard.ENGINE,
        panel_variables=("job", "instance", "engine"),
    )


SLO_ALERTS: tuple[Alert, ...] = tuple(_alert(signal, burn) for signal in _SIGNALS for burn in _BURNS)
