"""The alert of probes. Its text looks up the reason, for a label that changes would make a new alert at each change."""

from pinchpoint.alerting.alert import Alert, Severity

_TARGET = "job=%q,instance=%q,target=%q"
_LABELS = "$labels.job $labels.instance $labels.target"
# The last probe's reason; where that one went well, the most frequent of the last ten minutes.
_REASON = (
    '{{ $reason := "" }}'
    f'{{{{ with query (printf "pinchpoint_probe_consecutive_failures{{{_TARGET}}} or on () topk(1,'
    f' sum by (reason) (increase(pinchpoint_probe_failures_total{{{_TARGET}}}[10m])))" {_LABELS} {_LABELS}) }}}}'
    '{{ $reason = . | first | label "reason" }}{{ end }}'
)
_MEND = (
    (
        "auth|forbidden|quota|model_not_found|not_found|bad_request|context_length|content_filter",
        "That is this target's own key, account, model or URL: mend the configuration. Other users may be served well.",
    ),
    (
        "dns|connect_refused|connect_timeout|tls|proxy|reset",
        "The way there is broken, for users too: see whether the server runs, then name, certificate, firewall, proxy.",
    ),
    ("rate_limited|overloaded", "There is too much load, from us or from others: probe less often, or add room."),
    (
        "not_streamed|invalid_response|empty_output",
        "What answers is no healthy stream: look at the gateway in between, and at the target's URL and max_tokens.",
    ),
    ("internal", "The defect is pinchpoint's: its log has the traceback."),
)
_ENGINE = "Users see the same: look at the engine's log and the status page, of a hosted API at its provider's."

PROBE_FAILING = Alert(
    name="PinchpointProbeFailing",
    # One failure of one is no news: it takes three in a row, however rarely the target is probed, or most of at least
    # three in ten minutes. But a refused key and an empty account don't mend themselves, and hosted probes stop then.
    expr=(
        "sum without (reason) (increase(pinchpoint_probe_failures_total[10m]))\n"
        "  / increase(pinchpoint_probe_requests_total[10m]) > 0.5\n"
        "and increase(pinchpoint_probe_requests_total[10m]) >= 3\n"
        "or max without (reason) (pinchpoint_probe_consecutive_failures) >= 3\n"
        'or max without (reason) (pinchpoint_probe_consecutive_failures{reason=~"auth|quota"}) >= 1'
    ),
    for_seconds=300,
    severity=Severity.WARNING,
    summary="Synthetic requests fail.",
    description=(
        f"{_REASON}Probes of {{{{ $labels.target }}}} ({{{{ $labels.placement }}}}) keep failing"
        "{{ with $reason }}, lately by {{ . }}{{ end }}. "
        "{{ "
        + "{{ else ".join(f'if match "^({reasons})$" $reason }}}}{words}' for reasons, words in _MEND)
        + f"{{{{ else }}}}{_ENGINE}{{{{ end }}}} The runbook has a remedy for each reason; on its node, "
        "`pinchpoint probe --config.file /etc/pinchpoint/pinchpoint.yaml {{ $labels.target }}` the one for this case."
    ),
    panel_variables=("instance",),
)
