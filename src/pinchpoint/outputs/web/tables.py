"""GPUs, the host and what is missing, as tables."""

from collections.abc import Sequence

from pinchpoint.outputs.web import units
from pinchpoint.outputs.web.drawings import bar, icon
from pinchpoint.outputs.web.markup import Child, Html, el, join, name
from pinchpoint.outputs.web.words import Severity, in_words, opening, reason_in_words, throttle_in_words
from pinchpoint.snapshot import (
    Absence,
    GpuReading,
    HostReading,
    Reason,
    ThrottleReason,
)

# At full load a card runs into its power limit as a matter of course: worth a word, not an alarm.
_USUAL = frozenset({ThrottleReason.SW_POWER_CAP, ThrottleReason.SYNC_BOOST})


def table(css: str, label: str, heads: Sequence[str], rows: Sequence[Html]) -> Html:
    """A table with its column heads."""
    head = el("tr", [el("th", h, scope="col") for h in heads])
    return el("table", el("thead", head), el("tbody", rows), class_=css, aria_label=label)


def gpu_table(gpus: Sequence[GpuReading]) -> Html:
    """One row per GPU; the models are named once, above the columns."""
    models = dict.fromkeys(gpu.name for gpu in gpus if gpu.name)
    title = f"{len(gpus)} × {next(iter(models))}" if len(models) == 1 and len(gpus) > 1 else " + ".join(models)
    heads = ("GPU", f"{title} · busy" if title else "Busy", "Memory", "", "Power", "Temp.", "")
    return table("gpus", "GPUs", heads, [_gpu(gpu) for gpu in gpus])


def _gpu(gpu: GpuReading) -> Html:
    if not gpu.up:
        gone = join(
            icon(Severity.CRITICAL), " ", el("b", opening(in_words(gpu.state.value))), " ", el("span", gpu.detail)
        )
        return el("tr", el("th", name(gpu.gpu), scope="row"), el("td", gone, colspan=6, class_="gone"), class_="down")
    used, whole = gpu.memory_used_bytes, gpu.memory_total_bytes
    share = used / whole if used is not None and whole else None
    return el(
        "tr",
        el("th", name(gpu.gpu), scope="row", title=gpu.uuid),
        el(
            "td",
            bar(gpu.utilization_ratio, f"GPU {gpu.gpu} busy"),
            el("span", units.ratio(gpu.utilization_ratio)),
            class_="busy",
        ),
        el("td", bar(share, f"GPU {gpu.gpu} memory")),
        el("td", units.gibibytes(used, whole)),
        el("td", units.watts(gpu.power_watts, gpu.power_limit_watts)),
        el("td", units.celsius(gpu.temperature_celsius.get("gpu"))),
        el("td", _throttled(gpu), class_="flags"),
    )


def _throttled(gpu: GpuReading) -> Html | None:
    active = [reason for reason, value in gpu.throttle_active.items() if value]
    if not active:
        return None
    return join(
        el(
            "span",
            throttle_in_words(reason),
            class_="flag usual" if reason in _USUAL else "flag",
            title=f"throttled: {reason}",
        )
        for reason in active
    )


def other_gpus(gpus: Sequence[GpuReading], attached: bool) -> Html | None:
    """The GPUs of no engine."""
    if not gpus:
        return None
    title = "GPUs of no engine" if attached else "GPUs"
    return el("section", el("h2", title), gpu_table(gpus), class_="panel")


def host(reading: HostReading | None) -> Html | None:
    """The host's CPU on one line."""
    if reading is None:
        return None
    facts: list[tuple[str, str]] = [
        ("CPU busy", units.ratio(reading.cpu_utilization_ratio)),
        ("Cores", units.count(reading.cpu_count)),
        ("Cores used by engines", "–" if reading.engine_cpu_cores is None else f"{reading.engine_cpu_cores:.1f}"),
        ("Waiting for a CPU", units.ratio(reading.cpu_pressure_ratio)),
        ("Throttled by quota", units.ratio(reading.cpu_throttled_ratio)),
    ]
    items = [el("div", el("dt", label), el("dd", el("b", value))) for label, value in facts if value != units.UNKNOWN]
    return el("section", el("h2", "Host"), el("dl", items, class_="tiles"), class_="panel") if items else None


def missing(absences: Sequence[Absence], now: float) -> Html | None:
    """What is stale or could not be read, why, and what to do; but for engines, whose cards say it."""
    absences = [a for a in absences if not a.source.startswith("engine/") and a.reason is not Reason.STARTING]
    if not absences:
        return None
    rows: list[Child] = [
        el(
            "li",
            el(
                "p",
                name(a.source),
                el("b", reason_in_words(a.reason)),
                el("small", f"for {units.duration(now - a.at)}"),
            ),
            el("p", a.detail, class_="hint") if a.detail else None,
        )
        for a in absences
    ]
    return el("section", el("h2", "Stale or missing"), el("ul", rows), class_="panel missing")
