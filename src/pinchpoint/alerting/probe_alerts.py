"""The alerts of probes: that they fail and, by what a human does about it, why; what they cost; whose fault slow is.

A reason is no label of an alert, for one that changes would make a new alert at each change. Reasons with one remedy
are one alert: it ends when others come in between, and ``PinchpointProbeFailing`` goes on.
"""

from pinchpoint.alerting.alert import Alert, Dashboard, Severity

MISCONFIGURED = "forbidden|model_not_found|not_found|bad_request|context_length|content_filter"  # ours to mend
REFUSED_FOR_GOOD = "auth|quota"  # ours too, and a hosted target is then asked once an hour
UNREACHABLE = "dns|connect_refused|connect_timeout|tls|proxy|reset"
TURNED_AWAY = "rate_limited|overloaded"
UNANSWERED = "first_token_timeout|stalled|overall_timeout|engine_dead|server_error|stream_error|truncated"

_VARIABLES = ("job", "instance")
_TARGET = "{{ $labels.target }} ({{ $labels.placement }})"
_COMMAND = (
    "On its node, `pinchpoint probe --config.file /etc/pinchpoint/pinchpoint.yaml {{ $labels.target }}` names the "
    "reason and the remedy of this very case."
)
_SENT = "increase(pinchpoint_probe_requests_total[10m])"


def in_a_row(reasons: str, enough: str = ">= 3", matchers: str = "") -> str:
    """The failures up to the last probe, where that one failed for one of ``reasons``."""
    return f'max without (reason) (pinchpoint_probe_consecutive_failures{{{matchers}reason=~"{reasons}"}}) {enough}'


_GROUP_WHY = (
    "Three in a row, the last for one of these reasons, however rarely the target is probed. Five minutes more to fire "
    "and to end, so that a restart is no alert and a probe that gets through now and then ends none."
)

PROBE_ALERTS: tuple[Alert, ...] = (
    Alert(
        name="PinchpointProbeFailing",
        expr=(
            f"sum without (reason) (increase(pinchpoint_probe_failures_total[10m])) > 0.5 * {_SENT}\n"
            f"and {_SENT} >= 3\n"
            "or max without (reason) (pinchpoint_probe_consecutive_failures) >= 3"
        ),
        severity=Severity.WARNING,
        summary="Synthetic requests fail.",
        description=(
            f"{{{{ $value | humanize }}}} probes of {_TARGET} failed, in a row or within ten minutes, and it has gone "
            f"on for 5 minutes. The runbook has a remedy for each reason. {_COMMAND}"
        ),
        why=(
            "One failure of one is no news: it takes three in a row, however rarely the target is probed, or most of "
            "at least three in ten minutes. Five minutes more, so that a restart is no alert."
        ),
        for_seconds=300,
        panel_variables=_VARIABLES,
    ),
    Alert(
        name="PinchpointProbeUnanswered",
        expr=in_a_row(UNANSWERED, matchers='placement="local", '),
        severity=Severity.CRITICAL,
        summary="An engine of ours takes synthetic requests and does not answer them.",
        description=(
            f"The last {{{{ $value }}}} probes of {_TARGET} reached the server and got no whole answer in time: users "
            "see the same. See whether the engine stands still (class stalled), has died, or has a queue longer than "
            f"a probe waits. {_COMMAND}"
        ),
        why=f"A page, for it is what users see. {_GROUP_WHY}",
        for_seconds=300,
        keep_firing_for_seconds=300,
        panel_variables=_VARIABLES,
    ),
    Alert(
        name="PinchpointProbeUnreachable",
        expr=in_a_row(UNREACHABLE),
        severity=Severity.WARNING,
        summary="Synthetic requests do not reach their target.",
        description=(
            f"The last {{{{ $value }}}} probes of {_TARGET} got no connection that works. The way there is broken, "
            "for users too: see whether the server runs, then name, certificate, firewall, proxy. "
            f"{_COMMAND}"
        ),
        why=f"A warning: where our own engine is down, PinchpointEngineDown pages. {_GROUP_WHY}",
        for_seconds=300,
        keep_firing_for_seconds=300,
        panel_variables=_VARIABLES,
    ),
    Alert(
        name="PinchpointProbeTurnedAway",
        expr=in_a_row(TURNED_AWAY),
        severity=Severity.WARNING,
        summary="Synthetic requests are turned away for too much load.",
        description=(
            f"The last {{{{ $value }}}} probes of {_TARGET} were turned away. There is too much load, from us or from "
            "others: of a hosted API probe less often or raise its limit; of our own look at its queue limit and add "
            f"room. {_COMMAND}"
        ),
        why=_GROUP_WHY,
        for_seconds=300,
        keep_firing_for_seconds=300,
        panel_variables=_VARIABLES,
    ),
    Alert(
        name="PinchpointProbeMisconfigured",
        expr=f"{in_a_row(MISCONFIGURED)}\nor {in_a_row(REFUSED_FOR_GOOD, enough='> 0')}",
        severity=Severity.WARNING,
        summary="A target refuses the synthetic requests as they are.",
        description=(
            f"{_TARGET} refused the last probes ({{{{ $value }}}} in a row). That is this target's own key, account, "
            f"model or URL: mend the configuration. Other users may be served well, but nothing watches it. {_COMMAND}"
        ),
        why=(
            "A refused key and an empty account do not mend themselves, and a hosted target is then asked once an "
            f"hour: one is enough. Of the others: {_GROUP_WHY[0].lower()}{_GROUP_WHY[1:]}"
        ),
        for_seconds=300,
        keep_firing_for_seconds=300,
        panel_variables=_VARIABLES,
    ),
)

_OBJECTIVE = 'on (job, instance, engine) pinchpoint_slo_threshold_seconds{signal="ttft"}'
_JOIN = "on (job, instance, target, placement)"
_DAY, _MONTH = 14400, 259200  # seconds ahead: four hours of a day, three days of a month


def _covered(unit: str, period: str, window: str, seconds: int) -> str:
    """The part that is left of a cap over what is still to be spent at the pace of ``window``."""
    left = f'pinchpoint_probe_budget_remaining_{unit}{{period="{period}"}}'
    return f"{left} / {_JOIN} (rate(pinchpoint_probe_spend_{unit}_total[{window}]) * {seconds}) < 1"


HOSTED_ALERTS: tuple[Alert, ...] = (
    Alert(
        name="PinchpointHostedSlowToo",
        expr=(
            f'pinchpoint_diagnosis_signal{{signal="probe_hosted_ttft_seconds"}} > {_OBJECTIVE}\n'
            "and on (job, instance, engine) (\n"
            f'  pinchpoint_diagnosis_signal{{signal="probe_local_ttft_seconds"}} > {_OBJECTIVE}\n'
            ")"
        ),
        for_seconds=300,
        keep_firing_for_seconds=300,
        severity=Severity.INFO,
        summary="An engine is slow for our probes, and so is the hosted API beside it.",
        description=(
            "The hosted API needs {{ $value | humanizeDuration }} for a first token too, more than engine "
            "{{ $labels.engine }} promises. Both are slow: look at what they have in common (this node's way out, "
            "proxy, DNS, CPU, the length of the prompt) before you tune the engine or add GPUs."
        ),
        why=(
            "Both medians of the last five probes beyond the engine's own objective: what two servers share is then "
            "the suspect. It never pages; it tells whoever was paged for latency that it may not be us."
        ),
        dashboard_uid=Dashboard.ENGINE,
        panel_variables=("job", "instance", "engine"),
    ),
    Alert(
        name="PinchpointProbeSpendCapNear",
        expr="\nor ".join(
            (
                _covered("usd", "day", "1h", _DAY),
                _covered("tokens", "day", "1h", _DAY),
                _covered("usd", "month", "6h", _MONTH),
                _covered("tokens", "month", "6h", _MONTH),
            )
        ),
        for_seconds=1800,
        severity=Severity.WARNING,
        summary="Probes of a hosted API will reach their spending cap.",
        description=(
            f"What is left of the cap of {_TARGET} covers {{{{ $value | humanizePercentage }}}} of what its probes "
            "cost in four hours, or in three days where it is the month's. They stop then, and nothing compares with "
            "it. Probe less often or with fewer tokens, or raise the cap."
        ),
        why=(
            "Time enough to act. Not more: the cap that a target has by default leaves six hours over at the day's "
            "end. Half an hour, for a retry is not a pace."
        ),
        panel_variables=_VARIABLES,
    ),
    Alert(
        name="PinchpointProbeSpendCapReached",
        expr='sum without (cause) (increase(pinchpoint_probe_skipped_total{cause=~"budget|ledger"}[30m])) >= 1',
        for_seconds=300,
        severity=Severity.INFO,
        summary="Probes of a hosted API are held back by their spending cap.",
        description=(
            f"{{{{ $value | humanize }}}} probes of {_TARGET} were not sent in the last half hour: its cap is reached, "
            "or what it spends can't be written down (cause ledger: see the state directory's disk). Nothing compares "
            "our engines with it until the next day or month of UTC."
        ),
        why="The cap did its work, so nobody is called; but a comparison that stands still should not surprise.",
        panel_variables=_VARIABLES,
    ),
)
