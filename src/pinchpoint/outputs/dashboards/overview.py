"""The overview: which bottleneck, since when, and what speaks for it; from symptom to cause, top to bottom."""

from pinchpoint.alerting import DASHBOARD, KV_CACHE_HIGH_RATIO
from pinchpoint.diagnosis.verdict import CODES, Bottleneck
from pinchpoint.outputs.class_words import CLASS_WORDS
from pinchpoint.outputs.dashboards.panel import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    YELLOW,
    Json,
    empty_means,
    laid_out,
    lines,
    query,
    shares,
    stat,
    table,
    timeline,
)
from pinchpoint.outputs.dashboards.variables import ANNOTATIONS, FIRING, VARIABLES

_COLOURS = {
    Bottleneck.UNKNOWN: GREY,
    Bottleneck.NO_DATA: GREY,
    Bottleneck.IDLE: SKY,
    Bottleneck.HEALTHY: GREEN,
    Bottleneck.KV_CAPACITY: RED,
    Bottleneck.COMPUTE: BLUE,
    Bottleneck.MEMORY_BANDWIDTH: PURPLE,
    Bottleneck.SCHEDULER: ORANGE,
    Bottleneck.HOST_CPU: YELLOW,
    Bottleneck.INTERCONNECT: PURPLE,
    Bottleneck.NETWORK: YELLOW,
    Bottleneck.HARDWARE: RED,
    Bottleneck.IMBALANCE: ORANGE,
    Bottleneck.MEMORY_GROWTH: ORANGE,
    Bottleneck.STALLED: RED,
    Bottleneck.SLEEPING: SKY,
}
CODE_LOOKS = {CODES[one]: (CLASS_WORDS[one], colour) for one, colour in _COLOURS.items()}
UP_WORDS = {0: ("Down", RED), 1: ("Up", GREEN)}
HELP_WORDS = {0: ("No", ORANGE), 1: ("Yes", BLUE)}
THROTTLE_WORDS = {0: ("Free", GREEN), 1: ("Held down", RED)}
_ENGINE = '@, engine=~"$engine"'
_RANGE = "[$__rate_interval]"


def _quantiles(histogram: str) -> tuple[Json, ...]:
    rate = f"sum by (engine, le) (rate({histogram}_bucket{{{_ENGINE}}}{_RANGE}))"
    wanted = (("0.5", "p50"), ("0.95", "p95"), ("0.99", "p99"))
    return tuple(query(f"histogram_quantile({q}, {rate})", f"{{{{engine}}}} {name}") for q, name in wanted)


def _promise(signal: str) -> Json:
    return query(
        f'max by (engine) (pinchpoint_slo_threshold_seconds{{{_ENGINE}, signal="{signal}"}})', "{{engine}} SLO"
    )


def _mean(stage: str) -> Json:
    name = f"pinchpoint_engine_{stage}_seconds"
    rates = (f"sum(rate({name}_{part}{{{_ENGINE}}}{_RANGE}))" for part in ("sum", "count"))
    return query(" / ".join(rates), stage)


def _rate(name: str, by: str = "engine", matchers: str = _ENGINE) -> str:
    return f"sum by ({by}) (rate({name}{{{matchers}}}{_RANGE}))"


_NOW = (
    stat("Engines down", "Engines that give no usable metrics.",
         query(f"count(pinchpoint_engine_up{{{_ENGINE}}} == 0) or vector(0)")),
    stat("GPUs down", "GPUs that are lost, hung or closed to us.",
         query("count(pinchpoint_gpu_up{@} == 0) or vector(0)")),
    stat("Alerts firing", "pinchpoint's alerts that fire in this Prometheus, the watchdog aside.",
         query(f"count({FIRING}) or vector(0)")),
    stat("Requests running", "Requests in all running batches.",
         query(f"sum(pinchpoint_engine_requests_running{{{_ENGINE}}})"), red_from_one=False),
    stat("Requests waiting", "Requests in all queues.",
         query(f"sum(pinchpoint_engine_requests_waiting{{{_ENGINE}}})"), red_from_one=False),
    stat("Simulated", "1: nothing here is real, a simulator made it.",
         query("max(pinchpoint_simulated{@})")),
    empty_means("no engine configured or found", timeline(
        "Bottleneck", "The class of each engine's bottleneck. One that is shorter than a pixel does not show: see the "
        "shares beside.", query(f"pinchpoint_bottleneck_class_code{{{_ENGINE}}}", "{{engine}}"),
        words=CODE_LOOKS, width=16)),
    shares("Time in each class", "How the time was spent, exactly: counted by the daemon at each tick.",
           query(_rate("pinchpoint_bottleneck_class_seconds_total", "class"), "{{class}}"), unit="percentunit"),
    empty_means("the evidence does not say", timeline(
        "Would more GPUs help?", "The verdict for one more replica; a gap is: the evidence does not say.",
        query(f"pinchpoint_more_gpus_help{{{_ENGINE}}}", "{{engine}}"), words=HELP_WORDS, width=8)),
    lines("Scores", "How strongly each class speaks. The class that holds has been on top for a while.",
          query(f"pinchpoint_bottleneck_score{{{_ENGINE}}}", "{{engine}} {{class}}"), unit="percentunit", most=1),
    empty_means("nothing to advise", table(
        "Advice", "What the diagnosis advises now, engine by engine.",
        query(f"pinchpoint_advice{{{_ENGINE}}} == 1", instant=True))),
)  # fmt: skip

_ENGINES = (
    lines("KV cache", "Share of KV-cache blocks held by live requests. Full is no harm while nothing waits.",
          query(f"pinchpoint_engine_kv_cache_usage_ratio{{{_ENGINE}}}", "{{engine}}/{{replica}}"),
          unit="percentunit", most=1, limit=KV_CACHE_HIGH_RATIO),
    lines("Queue", "Requests that wait and that run, and how many may run at once.",
          query(f"sum by (engine) (pinchpoint_engine_requests_waiting{{{_ENGINE}}})", "{{engine}} waiting"),
          query(f"sum by (engine) (pinchpoint_engine_requests_running{{{_ENGINE}}})", "{{engine}} running"),
          query(f"max by (engine) (pinchpoint_engine_max_num_seqs{{{_ENGINE}}})", "{{engine}} most at once"),
          unit="short"),
    lines("Preemptions", "Requests thrown out of the batch for want of KV-cache blocks; their work is done twice.",
          query(_rate("pinchpoint_engine_preemptions_total"), "{{engine}}"), unit="reqps"),
    lines("Time to first token", "As the engine sees it; the SLO beside it.",
          *_quantiles("pinchpoint_engine_ttft_seconds"), _promise("ttft"), unit="s"),
    lines("Time between tokens", "As the engine sees it; the SLO for time per output token beside it.",
          *_quantiles("pinchpoint_engine_inter_token_seconds"), _promise("tpot"), unit="s"),
    lines("First tokens", "How many requests the quantiles rest on: with few, they say little.",
          query(_rate("pinchpoint_engine_ttft_seconds_count"), "{{engine}}"), unit="reqps"),
    shares("Where a request's time goes", "Mean queue, prefill and decode time of the requests that finished.",
           _mean("queue"), _mean("prefill"), _mean("decode"), unit="s"),
    lines("Tokens", "Tokens generated and prompt tokens taken in.",
          query(_rate("pinchpoint_engine_generation_tokens_total"), "{{engine}} generated"),
          query(_rate("pinchpoint_engine_prompt_tokens_total"), "{{engine}} prompt"), unit="cps"),
    lines("Prefix cache hits", "Share of looked-up tokens that were found.",
          query(_rate("pinchpoint_engine_prefix_cache_hits_total") + " / "
                + _rate("pinchpoint_engine_prefix_cache_queries_total"), "{{engine}}"), unit="percentunit", most=1),
)  # fmt: skip

_GPUS = (
    lines("GPU utilisation", "Share of time with a kernel resident. 100 % may still be far from the card's peak.",
          query("pinchpoint_gpu_utilization_ratio{@}", "{{instance}} {{gpu}}"), unit="percentunit", most=1),
    empty_means("no profiling counters (GPM) are read", lines(
        "Real activity", "Share of cycles in which tensor pipes or memory worked.",
        query("pinchpoint_gpu_tensor_active_ratio{@}", "{{instance}} {{gpu}} tensor"),
        query("pinchpoint_gpu_dram_active_ratio{@}", "{{instance}} {{gpu}} memory"), unit="percentunit", most=1)),
    lines("Device memory", "Memory in use. An engine takes its share at start, so it is flat: see the KV cache.",
          query("pinchpoint_gpu_memory_used_bytes{@}", "{{instance}} {{gpu}} used"),
          query("pinchpoint_gpu_memory_total_bytes{@}", "{{instance}} {{gpu}} total"), unit="bytes"),
    lines("Power", "Power drawn and the limit that is enforced.",
          query("pinchpoint_gpu_power_watts{@}", "{{instance}} {{gpu}}"),
          query("pinchpoint_gpu_power_limit_watts{@}", "{{instance}} {{gpu}} limit"), unit="watt"),
    lines("Temperature", "By sensor.",
          query("pinchpoint_gpu_temperature_celsius{@}", "{{instance}} {{gpu}} {{sensor}}"), unit="celsius"),
    lines("SM clock", "Clock of the streaming multiprocessors and the highest there is.",
          query('pinchpoint_gpu_clock_hertz{@, domain="sm"}', "{{instance}} {{gpu}}"),
          query('pinchpoint_gpu_clock_max_hertz{@, domain="sm"}', "{{instance}} {{gpu}} highest"), unit="hertz"),
    empty_means("nothing holds a clock down", timeline(
        "Held down by", "Reasons that hold the clocks down. The software power cap is normal at full load.",
        query("max by (instance, gpu, reason) (pinchpoint_gpu_throttle_active{@}) == 1",
              "{{instance}} {{gpu}} {{reason}}"), words=THROTTLE_WORDS, width=16)),
    empty_means("no PCIe counters are read", lines(
        "PCIe traffic", "Into and out of each GPU.",
        query("pinchpoint_gpu_pcie_receive_bytes_per_second{@}", "{{instance}} {{gpu}} in"),
        query("pinchpoint_gpu_pcie_transmit_bytes_per_second{@}", "{{instance}} {{gpu}} out"), unit="Bps")),
)  # fmt: skip

_NO_PROBE = "no probe target configured, or none answered"
_CLIENT = (
    empty_means(_NO_PROBE, lines(
        "Probe: time to first token", "The same small request to each target: ours (local) and theirs (hosted).",
        query("pinchpoint_probe_last_ttft_seconds{@}", "{{target}} ({{placement}})"), unit="s")),
    empty_means(_NO_PROBE, lines(
        "Probe: time per output token", "The same small request to each target: ours (local) and theirs (hosted).",
        query("pinchpoint_probe_last_tpot_seconds{@}", "{{target}} ({{placement}})"), unit="s")),
    empty_means("no probe failed", lines(
        "Probe: failures", "By reason.",
        query(_rate("pinchpoint_probe_failures_total", "target, reason", "@") + " > 0", "{{target}} {{reason}}"),
        unit="reqps")),
    lines("Host CPU", "Busy, out of cgroup quota, and with a task that waits for a CPU.",
          query("pinchpoint_host_cpu_utilization_ratio{@}", "{{instance}} busy"),
          query("pinchpoint_host_cpu_throttled_ratio{@}", "{{instance}} out of quota"),
          query("pinchpoint_host_cpu_pressure_ratio{@}", "{{instance}} waiting"), unit="percentunit", most=1),
    empty_means("no hosted target configured, or none answered", lines(
        "Ours over theirs", "Medians of a local target over the hosted one's. Above 1, ours is slower; characters per "
        "second: below 1.",
        query("pinchpoint_probe_local_to_hosted_ratio{@}", "{{target}} {{signal}}"), unit="none")),
    empty_means("no probe leads to a watched engine", lines(
        "First token: on the way", "Share of a probe's time to first token that the engine does not account for.",
        query('pinchpoint_diagnosis_signal{@, signal="network_ttft_share"}', "{{engine}}"),
        unit="percentunit", most=1)),
    empty_means("no probe, or none was answered in full", lines(
        "Probe: phases", "Mean seconds of each phase, all targets of a kind together.",
        query(_rate("pinchpoint_probe_phase_seconds_sum", "placement, phase", "@") + " / "
              + _rate("pinchpoint_probe_phase_seconds_count", "placement, phase", "@"), "{{placement}} {{phase}}"),
        unit="s")),
    empty_means("no probe target configured", lines(
        "Probes sent", "How many probes the figures rest on.",
        query(_rate("pinchpoint_probe_requests_total", "target", "@"), "{{target}}"), unit="reqps")),
)  # fmt: skip

_SELF = (
    timeline("Sources", "Whether each source gives readings.",
             query("pinchpoint_source_up{@}", "{{instance}} {{source}}"), words=UP_WORDS, width=8),
    # A label that is empty has no cell of its own: it would show the panel's word for nothing at all.
    empty_means("everything can be read", table(
        "Not available", "What can't be read, and why.",
        query('label_replace(pinchpoint_metric_unavailable{@} == 1, "metric", "(all)", "metric", "")', instant=True))),
    lines("Age of the readings", "Time since each source last gave one.",
          query("time() - pinchpoint_source_last_success_timestamp_seconds{@}", "{{instance}} {{source}}"), unit="s"),
    lines("Event-loop lag", "A loop that lags makes probes look slow.",
          query("pinchpoint_event_loop_lag_seconds{@}", "{{instance}}"), unit="s"),
    lines("Jobs in trouble", "Scheduled runs that failed, came too late or were left out.",
          query(_rate("pinchpoint_job_failures_total", "job_name", "@"), "{{job_name}} failed"),
          query(_rate("pinchpoint_job_missed_total", "job_name", "@"), "{{job_name}} too late"),
          query(_rate("pinchpoint_job_skipped_total", "job_name", "@"), "{{job_name}} left out"), unit="ops"),
    lines("CPU and memory of pinchpoint", "CPU cores that the daemon uses.",
          query(_rate("process_cpu_seconds_total", "instance", "@"), "{{instance}}"), unit="short"),
)  # fmt: skip

OVERVIEW: Json = {
    "uid": DASHBOARD,
    "title": "pinchpoint / overview",
    "description": "What the bottleneck of each inference engine is, and what speaks for it.",
    "tags": ["pinchpoint"],
    "schemaVersion": 39,
    "id": None,
    "editable": False,
    "graphTooltip": 1,
    "refresh": "30s",
    "timezone": "browser",
    "time": {"from": "now-1h", "to": "now"},
    "templating": {"list": VARIABLES},
    "annotations": {"list": ANNOTATIONS},
    "links": [
        {"type": "dashboards", "title": "pinchpoint", "tags": ["pinchpoint"], "asDropdown": True, "keepTime": True,
         "includeVars": True},
    ],
    "panels": laid_out(
        (
            ("Verdict", _NOW),
            ("Engines", _ENGINES),
            ("GPUs", _GPUS),
            ("Seen by a client, and the host", _CLIENT),
            ("pinchpoint itself", _SELF),
        )
    ),
}  # fmt: skip
