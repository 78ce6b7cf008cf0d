"""The panel of probes: each target's last result, where its time went, what to do, and how ours compare to theirs."""

from collections.abc import Mapping, Sequence

from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.us_or_them import in_a_sentence
from pinchpoint.outputs.web import units
from pinchpoint.outputs.web.drawings import icon
from pinchpoint.outputs.web.markup import Child, Html, el, name
from pinchpoint.outputs.web.tables import table
from pinchpoint.outputs.web.words import Severity, in_words
from pinchpoint.snapshot import PROBE_PHASES, Placement, ProbeComparison, ProbeOutcome, ProbeReading, Slo

_HEADS = ("Target", "TTFT", "TPOT", "Text", "In all", "Result")
_SIGNALS = {"ttft": "TTFT", "ttfc": "first content", "tpot": "TPOT", "characters_per_second": "characters/s"}


def panel(
    readings: Sequence[ProbeReading],
    comparisons: Sequence[ProbeComparison],
    now: float,
    promised: Mapping[str, Slo],
    thresholds: Thresholds,
) -> Html | None:
    """Local before hosted, so that the same prompt's figures stand one above the other.

    ``promised``: by engine. A probe of an engine is held against what that engine promised.
    """
    if not readings:
        return None
    longest = max(_phases_seconds(probe) for probe in readings)
    rows: list[Html] = []
    for probe in sorted(readings, key=lambda p: (p.placement is not Placement.LOCAL, p.target)):
        slo = promised.get(probe.engine) if probe.engine else None
        rows += [_figures(probe, now, slo), *_notes(probe, slo, longest)]
    told = [found for found in comparisons if found.local.probes]
    return el(
        "section",
        el("h2", "Is it us or them?"),
        el("p", "The last synthetic request to each target, ours beside theirs, bars on one scale.", class_="hint"),
        el("ul", [_comparison(found, thresholds) for found in told], class_="comparisons") if told else None,
        table("probes", "Probes", _HEADS, rows),
        class_="panel",
    )


def _comparison(found: ProbeComparison, thresholds: Thresholds) -> Html:
    times = found.ratios.get("ttft", 0.0)
    slow = found.local.mostly_too_slow or times >= thresholds.hosted_ttft_times
    severity = Severity.PINCHED if slow else Severity.FINE if found.ratios else Severity.UNSURE
    ratios = [f"{words} {found.ratios[key]:.2f}" for key, words in _SIGNALS.items() if key in found.ratios]
    probes = f"medians of {found.local.probes} and {found.theirs.probes} probes"
    return el(
        "li",
        el("p", icon(severity), el("span", in_a_sentence(found, thresholds)), class_=severity.value),
        el("p", f"Ours over theirs: {', '.join(ratios)} ({probes})", class_="hint") if ratios else None,
    )


def _figures(probe: ProbeReading, now: float, slo: Slo | None) -> Html:
    limits = (slo.ttft_seconds, slo.tpot_seconds) if slo else (None, None)
    latencies = zip((probe.ttft_seconds, probe.tpot_seconds), limits, strict=True)
    fine = probe.outcome is ProbeOutcome.OK
    pace = probe.characters_per_second
    return el(
        "tr",
        el("th", name(probe.target), " ", el("small", probe.placement.value), scope="row"),
        [el("td", units.latency(seen), class_="over" if _over(seen, limit) else None) for seen, limit in latencies],
        el("td", units.UNKNOWN if pace is None else f"{units.count(pace)}{units.NBSP}chars/s"),
        el("td", units.latency(probe.duration_seconds)),
        el(
            "td",
            icon(Severity.FINE if fine else Severity.CRITICAL),
            el("span", in_words(probe.outcome.value)),
            el("small", f"{units.duration(now - probe.at)} ago"),
            class_="result fine" if fine else "result critical",
        ),
    )


def _notes(probe: ProbeReading, slo: Slo | None, longest: float) -> list[Html]:
    """Rows below the figures: the phases, then what there is to say."""
    rows: list[Html] = []
    if _phases_seconds(probe) > 0:
        rows.append(_note(_bar(probe, longest), _legend(probe), css="phases"))
    said = (
        el("b", probe.remedy) if probe.remedy else None,
        el("span", probe.detail) if probe.detail else None,
        _missed(probe, slo),
    )
    if any(said):
        rows.append(_note(*said, css="remedy"))
    return rows


def _note(*said: Child, css: str) -> Html:
    return el("tr", el("td", said, colspan=len(_HEADS), class_=css), class_="note")


def _phases_seconds(probe: ProbeReading) -> float:
    return sum(probe.phases.get(phase, 0.0) for phase in PROBE_PHASES)


def _bar(probe: ProbeReading, longest: float) -> Html:
    parts, passed = [], 0.0
    for phase in PROBE_PHASES:
        share = probe.phases.get(phase, 0.0) / longest
        if share > 0:
            edges = {"x": f"{100 * passed:.2f}%", "width": f"{100 * share:.2f}%"}
            parts.append(el("rect", class_=f"p-{phase}", y=0, height="100%", **edges))
        passed += share
    said = f"Phases of {probe.target}: {', '.join(_in_words(probe))}"
    return el("svg", parts, class_="bar", role="img", aria_label=said)


def _legend(probe: ProbeReading) -> Html:
    told = zip(_reached(probe), _in_words(probe), strict=True)
    how = [f"{probe.connection} connection"] if probe.connection else []
    how += [f"reasoning {in_words(probe.reasoning)}"] if probe.reasoning else []
    return el(
        "p", [el("span", words, class_=f"key p-{phase}") for phase, words in told], [el("span", word) for word in how]
    )


def _reached(probe: ProbeReading) -> list[str]:
    return [phase for phase in PROBE_PHASES if phase in probe.phases]


def _in_words(probe: ProbeReading) -> list[str]:
    cut = {probe.unfinished_phase: " and no end"}
    return [f"{in_words(phase)} {units.latency(probe.phases[phase])}{cut.get(phase, '')}" for phase in _reached(probe)]


def _over(seconds: float | None, promised_seconds: float | None) -> bool:
    return seconds is not None and promised_seconds is not None and seconds > promised_seconds


def _missed(probe: ProbeReading, slo: Slo | None) -> Html | None:
    """In words too: red alone says nothing to some."""
    if slo is None:
        return None
    latencies = (("TTFT", probe.ttft_seconds, slo.ttft_seconds), ("TPOT", probe.tpot_seconds, slo.tpot_seconds))
    missed = [f"{what} over the SLO of {units.latency(limit)}" for what, seen, limit in latencies if _over(seen, limit)]
    return el("span", "; ".join(missed)) if missed else None
