"""The self family: how pinchpoint itself fares, and what it can't see and why."""

from collections.abc import Iterable

from pinchpoint.outputs.catalog.metric import Each, Kind, Metric, Sample, gauge, info
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import JobReport, Reason, SourceReport


def _plain(field: str, text: str, name: str | None = None) -> Metric:
    """A number of the daemon: the self-report's field of the same name."""

    def read(scene: Scene) -> Iterable[Sample]:
        return [((), getattr(scene.self_report, field))]

    return Metric(name=name or field, kind=Kind.GAUGE, help=text, labels=(), read=read)


def _sources(scene: Scene) -> Iterable[tuple[str, SourceReport]]:
    return ((s.source, s) for s in scene.self_report.sources)


def _jobs(scene: Scene) -> Iterable[tuple[str, JobReport]]:
    return ((j.job, j) for j in scene.self_report.jobs)


def _source(field: str, text: str) -> Metric:
    """A number of each source: the report's field of the same name."""

    read = Each(_sources, lambda s: (((s.source,), getattr(s, field)),))
    return Metric(name=f"source_{field}", kind=Kind.GAUGE, help=text, labels=("source",), read=read)


def _job(field: str, text: str, kind: Kind = Kind.COUNTER) -> Metric:
    """A number of each scheduled job. The label is not called ``job``: that one is the scrape's."""

    read = Each(_jobs, lambda j: (((j.job,), getattr(j, field)),))
    return Metric(name=f"job_{field}", kind=kind, help=text, labels=("job_name",), read=read)


def _build(scene: Scene) -> Iterable[Sample]:
    return [((scene.self_report.version, scene.self_report.python_version), 1)]


def _unavailable(scene: Scene) -> Iterable[Sample]:
    for absence in scene.snapshot.absences:
        yield (absence.source, "", absence.reason), 1
    for g in scene.snapshot.gpus:
        yield from (((f"gpu/{g.gpu}", f"gpu_{field}", reason), 1) for field, reason in g.unavailable.items())
    for e in scene.snapshot.engines:
        yield from (((f"engine/{e.engine}", f"engine_{field}", why), 1) for field, why in e.unavailable.items())
    for t in scene.snapshot.probe_totals:
        if t.spend is not None and t.spend.usd_total is None:
            yield (f"probe/{t.target}", "probe_spend_usd_total", Reason.NOT_CONFIGURED), 1  # no price was given


OWN_METRICS = (
    info("build_info", ("version", "python_version"), _build, "Which pinchpoint this is."),
    _plain("simulated", "Whether everything here is simulated (1) or observed (0)."),
    _source("up", "Whether the source's last attempt gave a reading."),
    _source("duration_seconds", "How long the source's last attempt took."),
    _source("last_success_timestamp_seconds", "When the source last gave a reading, in Unix time."),
    gauge(
        "metric_unavailable",
        ("source", "metric", "reason"),
        _unavailable,
        "1 for each thing that can't be read, and why; metric is empty when it is the whole source.",
    ),
    _job("runs_total", "Runs of the scheduled job that ended."),
    _job("failures_total", "Runs of the scheduled job that failed."),
    _job("missed_total", "Runs that came too late and were left out."),
    _job("skipped_total", "Runs left out because the one before was still going."),
    _job("last_duration_seconds", "How long the job's last run took.", Kind.GAUGE),
    _plain("event_loop_lag_seconds", "The most that the event loop lagged since the tick before."),
    _plain("render_seconds", "How long it took to render the exposition before this one.", "exposition_render_seconds"),
    _plain("config_last_reload_successful", "Whether the configuration in the file is the one in use."),
    _plain("config_last_reload_success_timestamp_seconds", "When a configuration was last taken, in Unix time."),
)
