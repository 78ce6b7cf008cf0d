"""One engine, or some: the verdict first, then what speaks for it, from symptom to cause."""

from pinchpoint.alerting import KV_CACHE_HIGH_RATIO
from pinchpoint.outputs.dashboards.frame import dashboard
from pinchpoint.outputs.dashboards.looks import CLASS_PARTS, CLASSES, HELD_DOWN, HELP
from pinchpoint.outputs.dashboards.panel import Json, empty_means, heatmap, lines, query, shares, stat, timeline
from pinchpoint.outputs.dashboards.queries import (
    ENGINE,
    mean,
    of_its_gpus,
    promise,
    quantiles,
    rate,
    share,
)
from pinchpoint.outputs.dashboards.table import labels
from pinchpoint.outputs.dashboards.variables import ENGINE as ENGINE_CHOICE
from pinchpoint.outputs.dashboards.variables import GPU as GPU_CHOICE
from pinchpoint.outputs.dashboards.variables import MODEL

# Of the evidence, what is a share of time or of a limit, so that it can stand on one axis.
_SPEAKING = (
    "kv_full_share|queue_share|compute_utilization_ratio|memory_bandwidth_utilization_ratio|host_gap_ratio|"
    "communication_share|gpu_clock_ratio|network_ttft_share|prefill_time_share"
)
_IDLE = "nobody asked anything in this time"

_VERDICT = (
    stat("Bottleneck", "The class of the bottleneck now.",
         query(f"max by (engine) (pinchpoint_bottleneck_class_code{{{ENGINE}}})", "{{engine}}"),
         words=CLASSES, width=8),
    stat("Confidence", "How sure the diagnosis is.",
         query(f"max by (engine) (pinchpoint_bottleneck_confidence_ratio{{{ENGINE}}})", "{{engine}}"),
         unit="percentunit", width=5),
    stat("In this class for", "Time since the class began to hold.",
         query(f"time() - min by (engine) (pinchpoint_bottleneck_since_timestamp_seconds{{{ENGINE}}})", "{{engine}}"),
         unit="s", width=5),
    empty_means("the evidence does not say", stat(
        "Would more GPUs help?", "The verdict for one more replica.",
        query(f"max by (engine) (pinchpoint_more_gpus_help{{{ENGINE}}})", "{{engine}}"), words=HELP, width=6)),
    timeline("Bottleneck over time", "The class that holds. One that is shorter than a pixel does not show: see the "
             "shares below.", query(f"max by (engine) (pinchpoint_bottleneck_class_code{{{ENGINE}}})", "{{engine}}"),
             words=CLASSES, height=6),
    lines("Scores", "How strongly each class speaks, if at all. The class that holds has been on top for a while.",
          query(f"max by (engine, class) (pinchpoint_bottleneck_score{{{ENGINE}}}) > 0", "{{engine}} {{class}}"),
          unit="percentunit", most=1),
    lines("What speaks", "The evidence that is a share of time or of a limit.",
          query(f'max by (engine, signal) (pinchpoint_diagnosis_signal{{{ENGINE}, signal=~"{_SPEAKING}"}})',
                "{{engine}} {{signal}}"), unit="percentunit", most=1),
    shares("Time in each class", "Exactly: counted by the daemon at each tick.",
           query(rate("pinchpoint_bottleneck_class_seconds_total", "class") + " > 0", "{{class}}"), parts=CLASS_PARTS),
    empty_means("nothing to advise", labels(
        "Advice", "What the diagnosis advises now.",
        query(f"max by (engine, action) (pinchpoint_advice{{{ENGINE}}}) == 1", instant=True), "engine", "action",
        width=10)),
    labels("Evidence", "All that the diagnosis measured over its window, in the unit that a signal's name ends in.",
           query(f"max by (engine, signal) (pinchpoint_diagnosis_signal{{{ENGINE}}})", instant=True),
           "engine", "signal", width=14, value="value", unit="short"),
)  # fmt: skip

_QUEUE = (
    lines("KV cache", "Share of KV-cache blocks held by live requests. Full is no harm while nothing waits.",
          query(f"max by (engine, replica) (pinchpoint_engine_kv_cache_usage_ratio{{{ENGINE}}})",
                "{{engine}}/{{replica}}"), unit="percentunit", most=1, limit=KV_CACHE_HIGH_RATIO),
    lines("Requests", "Requests that wait and that run, and how many may run at once in one replica.",
          query(f"sum by (engine) (pinchpoint_engine_requests_waiting{{{ENGINE}}})", "{{engine}} waiting"),
          query(f"sum by (engine) (pinchpoint_engine_requests_running{{{ENGINE}}})", "{{engine}} running"),
          query(f"max by (engine) (pinchpoint_engine_max_num_seqs{{{ENGINE}}})", "{{engine}} most at once"),
          unit="short", dashed="/most at once/"),
    lines("Preemptions", "Requests thrown out of the batch for want of KV-cache blocks; their work is done twice.",
          query(rate("pinchpoint_engine_preemptions_total"), "{{engine}}"), unit="reqps"),
    empty_means("the engine does not tell why requests wait", lines(
        "Waiting, by what for", "capacity: for blocks or a place in the batch; deferred: for something else first.",
        query(f"sum by (engine, reason) (pinchpoint_engine_requests_waiting_by_reason{{{ENGINE}}})",
              "{{engine}} {{reason}}"), unit="short")),
    empty_means(_IDLE, lines(
        "Prefix cache hits", "Share of looked-up tokens that were found.",
        query(share(rate("pinchpoint_engine_prefix_cache_hits_total"),
                    rate("pinchpoint_engine_prefix_cache_queries_total")), "{{engine}}"),
        unit="percentunit", most=1)),
    lines("KV cache in tokens", "Tokens that the cache holds at most, in all replicas.",
          query(f"sum by (engine) (pinchpoint_engine_kv_cache_capacity_tokens{{{ENGINE}}})", "{{engine}}"),
          unit="short"),
)  # fmt: skip


def _stage(stage: str) -> Json:
    return query(mean(f"pinchpoint_engine_{stage}_seconds", ""), stage)


_LATENCY = (
    empty_means(_IDLE, shares(
        "Where a request's time goes", "Mean queue, prefill and decode time of the requests that finished.",
        _stage("queue"), _stage("prefill"), _stage("decode"))),
    empty_means(_IDLE, lines(
        "Time to first token", "As the engine sees it; the promise beside it.",
        *quantiles("pinchpoint_engine_ttft_seconds", "p50", "p95", "p99"), promise("ttft"), unit="s", dashed="/SLO/")),
    empty_means(_IDLE, lines(
        "Time per output token", "Between tokens, as the engine sees it; the promise beside it.",
        *quantiles("pinchpoint_engine_inter_token_seconds", "p50", "p95", "p99"), promise("tpot"),
        unit="s", dashed="/SLO/")),
    lines("First tokens", "How many requests the quantiles rest on: with few, they say little.",
          query(rate("pinchpoint_engine_ttft_seconds_count"), "{{engine}}"), unit="reqps"),
    lines("Tokens", "Tokens generated and prompt tokens taken in.",
          query(rate("pinchpoint_engine_generation_tokens_total"), "{{engine}} generated"),
          query(rate("pinchpoint_engine_prompt_tokens_total"), "{{engine}} prompt"), unit="suffix: tok/s"),
    empty_means(_IDLE, lines(
        "Size of requests", "Median tokens of a finished request.",
        query(quantiles("pinchpoint_engine_request_prompt_tokens", "p50")[0]["expr"], "{{engine}} prompt"),
        query(quantiles("pinchpoint_engine_request_generation_tokens", "p50")[0]["expr"], "{{engine}} answer"),
        unit="suffix: tok")),
)  # fmt: skip

_PROBES = "Probes bear no engine's name: this is every target of the chosen instances."


def _spread(title: str, text: str, histogram: str, matchers: str) -> Json:
    return empty_means("no observation in this time", heatmap(
        title, text, query(rate(f"{histogram}_bucket", "le", matchers), buckets=True)))  # fmt: skip


def _placed(what: str, histogram: str, unit: str) -> tuple[Json, ...]:
    """All requests, then probes of ours, then probes of theirs."""
    own = f"pinchpoint_engine_{histogram}_seconds"
    probe = f"pinchpoint_probe_{unit}_seconds"
    return (
        _spread(f"{what}: all requests", "As the engine sees it.", own, ENGINE),
        _spread(f"{what}: probes, local", f"As a client sees it. {_PROBES}", probe, '@, placement="local"'),
        _spread(f"{what}: probes, hosted", f"The same request to a hosted API. {_PROBES}", probe,
                '@, placement="hosted"'),
    )  # fmt: skip


_LOCAL_AND_HOSTED = (
    *_placed("First token", "ttft", "ttft"),
    *_placed("Output token", "inter_token", "tpot"),
    empty_means("no hosted target configured, or none answered", lines(
        "Ours over theirs", "Medians of a local target over the hosted one's. Above 1, ours is slower; characters per "
        f"second: below 1. {_PROBES}",
        query("pinchpoint_probe_local_to_hosted_ratio{@}", "{{target}} {{signal}}"), unit="none", limit=1, width=12)),
    empty_means("no probe leads to a watched engine", lines(
        "First token: on the way", "Share of a probe's time to first token that the engine does not account for.",
        query(f'max by (engine) (pinchpoint_diagnosis_signal{{{ENGINE}, signal="network_ttft_share"}})', "{{engine}}"),
        unit="percentunit", most=1, width=12)),
)  # fmt: skip

_ITS_GPUS = (
    lines("GPU utilisation", "Share of time with a kernel resident. 100 % may still be far from the card's peak.",
          query(of_its_gpus("pinchpoint_gpu_utilization_ratio{@}"), "{{instance}} GPU {{gpu}}"),
          unit="percentunit", most=1),
    empty_means("no profiling counters (GPM) are read", lines(
        "Real activity", "Share of cycles in which tensor pipes or memory worked.",
        query(of_its_gpus("pinchpoint_gpu_tensor_active_ratio{@}"), "{{instance}} GPU {{gpu}} tensor"),
        query(of_its_gpus("pinchpoint_gpu_dram_active_ratio{@}"), "{{instance}} GPU {{gpu}} memory"),
        unit="percentunit", most=1)),
    lines("SM clock", "Clock of the streaming multiprocessors over the highest there is.",
          query(of_its_gpus('pinchpoint_gpu_clock_hertz{@, domain="sm"} / pinchpoint_gpu_clock_max_hertz{@, '
                            'domain="sm"}'), "{{instance}} GPU {{gpu}}"), unit="percentunit", most=1),
    lines("Power", "Power drawn over the limit that is enforced.",
          query(of_its_gpus("pinchpoint_gpu_power_watts{@} / pinchpoint_gpu_power_limit_watts{@}"),
                "{{instance}} GPU {{gpu}}"), unit="percentunit"),
    lines("Device memory", "Memory in use. An engine takes its share at start, so it is flat: see the KV cache.",
          query(of_its_gpus("pinchpoint_gpu_memory_used_bytes{@}"), "{{instance}} GPU {{gpu}} used"),
          query(of_its_gpus("pinchpoint_gpu_memory_total_bytes{@}"), "{{instance}} GPU {{gpu}} total"),
          unit="bytes", dashed="/total/"),
    empty_means("nothing holds a clock down", timeline(
        "Held down by", "Reasons that hold the clocks down. The software power cap is normal at full load.",
        query(of_its_gpus("max by (job, instance, gpu, reason) (pinchpoint_gpu_throttle_active{@}) == 1"),
              "{{instance}} GPU {{gpu}} {{reason}}"), words=HELD_DOWN, width=8, height=8)),
)  # fmt: skip

ENGINE_DASHBOARD = dashboard(
    "engine",
    "What the bottleneck of an engine is, what speaks for it, and what its users notice.",
    (MODEL, ENGINE_CHOICE, GPU_CHOICE),
    (
        ("Verdict", _VERDICT),
        ("KV cache and queue", _QUEUE),
        ("What users notice", _LATENCY),
        ("Local against hosted", _LOCAL_AND_HOSTED),
        ("Its GPUs", _ITS_GPUS),
    ),
)
