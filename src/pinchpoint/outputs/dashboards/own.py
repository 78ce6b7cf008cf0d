"""pinchpoint itself: what it sees and what not, whether it is in time and is heard, and what it takes."""

from pinchpoint.outputs.dashboards.frame import dashboard
from pinchpoint.outputs.dashboards.looks import GOOD, UP
from pinchpoint.outputs.dashboards.panel import empty_means, lines, query, stat, timeline
from pinchpoint.outputs.dashboards.queries import RANGE, rate, share
from pinchpoint.outputs.dashboards.table import labels

_ALL = "@"


def _jobs(what: str) -> str:
    return f"{rate(f'pinchpoint_job_{what}_total', 'instance, job_name', _ALL)} > 0"


_NOW = (
    stat("Daemons", "Daemons that answer.", query("count(pinchpoint_build_info{@})")),
    stat("Sources down", "Sources that give no readings.",
         query("sum(pinchpoint_source_up{@} == bool 0)"), bad_from=1),
    stat("Oldest reading", "Time since the source that is silent for longest gave one.",
         query("max(time() - pinchpoint_source_last_success_timestamp_seconds{@})"), unit="s", bad_from=900),
    stat("Event-loop lag", "The most of any daemon. From a tenth of a second on, probes look slow that are not.",
         query("max(pinchpoint_event_loop_lag_seconds{@})"), unit="s", bad_from=0.1),
    stat("Configuration in use", "Whether the configuration in the file is the one in use, everywhere.",
         query("min(pinchpoint_config_last_reload_successful{@})"), words=GOOD),
    empty_means("no call of NVML hangs", stat(
        "NVML call that hangs", "Age of the oldest NVML call in progress.",
        query("max(pinchpoint_gpu_nvml_call_stuck_seconds{@})"), unit="s", bad_from=10)),
)  # fmt: skip

_SEES = (
    timeline("Sources", "Whether each source gives readings.",
             query("pinchpoint_source_up{@}", "{{instance}} {{source}}"), words=UP, width=14),
    # A label that is empty has no cell of its own: it would show the panel's word for nothing at all.
    empty_means("everything can be read", labels(
        "Not available", "What can't be read, and why; whole sources first.",
        query('label_replace(pinchpoint_metric_unavailable{@} == 1, "metric", "(all)", "metric", "")', instant=True),
        "source", "metric", "reason", "instance", width=10, sort="metric")),
    lines("Age of the readings", "Time since each source last gave one.",
          query("time() - pinchpoint_source_last_success_timestamp_seconds{@}", "{{instance}} {{source}}"), unit="s"),
    lines("Time of an attempt", "How long each source's last attempt took.",
          query("pinchpoint_source_duration_seconds{@}", "{{instance}} {{source}}"), unit="s"),
    empty_means("no discovery is configured", lines(
        "Discovered engines", "Engines in the list of each finder.",
        query("pinchpoint_discovery_targets{@}", "{{instance}} {{discovery}}"), unit="short")),
)  # fmt: skip

_IN_TIME = (
    lines("Event-loop lag over time", "A loop that lags makes probes look slow.",
          query("pinchpoint_event_loop_lag_seconds{@}", "{{instance}}"), unit="s"),
    empty_means("every job runs, and in time", lines(
        "Jobs in trouble", "Scheduled runs that failed, came too late or were left out.",
        query(_jobs("failures"), "{{job_name}} failed"),
        query(_jobs("missed"), "{{job_name}} too late"),
        query(_jobs("skipped"), "{{job_name}} left out"), unit="ops")),
    lines("Time of a render", "How long it took to render an exposition.",
          query("pinchpoint_exposition_render_seconds{@}", "{{instance}}"), unit="s"),
    empty_means("no probe target configured", lines(
        "Probes sent", "How many probes the figures rest on.",
        query(rate("pinchpoint_probe_requests_total", "target", _ALL), "{{target}}"), unit="reqps")),
    empty_means("no probe failed", lines(
        "Probes that failed", "By reason.",
        query(f"{rate('pinchpoint_probe_failures_total', 'target, reason', _ALL)} > 0", "{{target}} {{reason}}"),
        unit="reqps")),
    empty_means("every probe was sent and believed", lines(
        "Probes left out", "Probes not sent, by cause; latencies that our own lag spoilt, by signal.",
        query(f"{rate('pinchpoint_probe_skipped_total', 'target, cause', _ALL)} > 0", "{{target}} {{cause}}"),
        query(f"{rate('pinchpoint_probe_discarded_total', 'target, signal', _ALL)} > 0", "{{target}} {{signal}} late"),
        unit="reqps")),
)  # fmt: skip

_NO_DELIVERY = "pinchpoint evaluates no alerts itself: a Prometheus does"
_TELLS = (
    empty_means(_NO_DELIVERY, timeline(
        "Alertmanagers", "Whether each member took the last notification.",
        query("pinchpoint_alertmanager_up{@}", "{{instance}} {{alertmanager}}"), words=UP, width=10)),
    empty_means(_NO_DELIVERY, lines(
        "Alerts yet to be told", "Alerts whose newest state a member has not heard.",
        query("pinchpoint_alertmanager_queue_length{@}", "{{instance}} {{alertmanager}}"), unit="short", width=7)),
    empty_means("none failed", lines(
        "Notifications that failed", "By reason.",
        query(f"{rate('pinchpoint_alertmanager_notifications_failed_total', 'alertmanager, reason', _ALL)} > 0",
              "{{alertmanager}} {{reason}}"), unit="ops", width=7)),
    empty_means(_NO_DELIVERY, lines(
        "Age of the evaluation", "Time since the alerts were last evaluated.",
        query("time() - pinchpoint_alert_last_evaluation_timestamp_seconds{@}", "{{instance}}"), unit="s", width=10)),
    empty_means(_NO_DELIVERY, lines(
        "Time of an evaluation", "How long the last evaluation of all alerts took.",
        query("pinchpoint_alert_evaluation_seconds{@}", "{{instance}}"), unit="s", width=7)),
    empty_means("none failed, and all had room", lines(
        "Alerts that can't be judged", "Evaluations that failed; series and alerts that did not fit into memory.",
        query(f"{rate('pinchpoint_alert_evaluation_failures_total', 'instance', _ALL)} > 0", "{{instance}} failed"),
        query("pinchpoint_alert_evaluation_refused{@} > 0", "{{instance}} no room"), unit="short", width=7)),
)  # fmt: skip

_TAKES = (
    lines("CPU", "CPU cores that the daemon uses.",
          query(f"rate(process_cpu_seconds_total{{@}}{RANGE})", "{{instance}}"), unit="short"),
    lines("Memory", "Resident memory of the daemon.",
          query("process_resident_memory_bytes{@}", "{{instance}}"), unit="bytes"),
    empty_means("NVML is not used", lines(
        "NVML: mean time of a call", "By function. The driver serialises many of them.",
        query(share(rate("pinchpoint_gpu_nvml_call_seconds_total", "call", _ALL),
                    rate("pinchpoint_gpu_nvml_calls_total", "call", _ALL)), "{{call}}"), unit="s")),
    lines("Scrapes: duration", "How long Prometheus' scrapes of pinchpoint take.",
          query("scrape_duration_seconds{@}", "{{instance}}"), unit="s"),
    lines("Scrapes: samples", "Samples in a scrape.",
          query("scrape_samples_scraped{@}", "{{instance}}"), unit="short"),
    lines("Open files", "File descriptors in use over the most there may be.",
          query("process_open_fds{@} / process_max_fds{@}", "{{instance}}"), unit="percentunit"),
)  # fmt: skip

OWN = dashboard(
    "self",
    "What pinchpoint sees and what not, whether it is in time and is heard, and what it takes.",
    (),
    (
        ("Now", _NOW),
        ("What it sees", _SEES),
        ("In time", _IN_TIME),
        ("What it tells Alertmanager", _TELLS),
        ("What it takes", _TAKES),
    ),
)
