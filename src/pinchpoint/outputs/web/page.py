"""The status page: one HTML document per tick, readable without JavaScript and without a network."""

from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote

from pinchpoint import __version__
from pinchpoint.outputs.scene import Scene
from pinchpoint.outputs.web import alerts, probes, tables, topology, units
from pinchpoint.outputs.web.cards import anchor, card
from pinchpoint.outputs.web.drawings import icon
from pinchpoint.outputs.web.markup import Child, Html, el, join, name
from pinchpoint.outputs.web.static import SCRIPT, STYLE
from pinchpoint.outputs.web.view import STARTING, EngineView, View, headline, view
from pinchpoint.outputs.web.words import Severity
from pinchpoint.snapshot import SelfReport

CARDS = 48  # the worst engines: more than anybody reads, and a page of 500 takes a browser seconds
OLD_SECONDS = 10.0  # twice the slowest tick: data of this age means that ticks have stopped

_LOGO = "M3 3.5 10 12 3 20.5M21 3.5 14 12 21 20.5M12 6v2.2M12 10.9v2.2M12 15.8V18"


def page(
    scene: Scene | None, age_seconds: float = 0.0, telemetry_path: str = "/metrics", engine: str | None = None
) -> str:
    """The whole document; with ``engine`` that of one alone. ``None``: before the first tick. Links are relative, so a
    proxy may add a prefix."""
    if scene is None:
        return _document(STARTING, Severity.QUIET, None, el("main"), telemetry_path)
    seen = view(scene)
    main = _main(seen, age_seconds) if engine is None else _alone(seen, age_seconds, engine)
    return _document(headline(seen), seen.severity, seen, main, telemetry_path)


def _document(title: str, severity: Severity, seen: View | None, main: Html, telemetry_path: str) -> str:
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{title} – pinchpoint"),
        el("link", rel="icon", href="favicon.svg", type="image/svg+xml"),
        el("link", rel="stylesheet", href=STYLE.url),
        el("script", src=SCRIPT.url, defer=True),
        el("noscript", el("meta", http_equiv="refresh", content="5")),
    )
    body = el("body", _header(title, severity, seen), main, _footer(telemetry_path))
    return "<!doctype html>" + el("html", head, body, lang="en")


def _header(title: str, severity: Severity, seen: View | None) -> Html:
    logo = el("svg", el("path", d=_LOGO), class_="logo", viewBox="0 0 24 24", aria_hidden="true")
    simulated = seen is not None and seen.scene.self_report.simulated
    at = f"{seen.at_unix_seconds:.3f}" if seen else None
    return el(
        "header",
        el("p", logo, "pinchpoint", class_="brand"),
        el(
            "p",
            el("span", "simulated", class_="flag usual", title="These GPUs and engines don't exist")
            if simulated
            else None,
            el("span", "live", id="age", data_at=at, data_old=OLD_SECONDS),
            class_="state",
        ),
        el("h1", icon(severity), el("span", title), class_=severity.value),
        id="top",
    )


def _main(seen: View, age_seconds: float) -> Html:
    snapshot = seen.scene.snapshot
    return el(
        "main",
        _notices(seen, age_seconds),
        _index(seen),
        _cards(seen.engines[:CARDS], seen.now) if seen.engines else _no_engine(seen.scene.self_report),
        _others(seen.engines[CARDS:]),
        alerts.panel(seen.scene.self_report.alerting, seen.at_unix_seconds),
        probes.panel(
            snapshot.probes,
            snapshot.comparisons,
            seen.now,
            {engine.engine: engine.slo for engine in snapshot.engines},
            seen.scene.thresholds,
        ),
        tables.other_gpus(seen.other_gpus, attached=bool(seen.engines and len(seen.other_gpus) < len(snapshot.gpus))),
        topology.panel(seen.scene.topology),
        tables.missing(snapshot.absences, seen.now),
        tables.host(snapshot.host),
    )


def _alone(seen: View, age_seconds: float, engine: str) -> Html:
    one = [each for each in seen.engines if each.engine == engine]
    back = el("p", el("a", "← all engines", href="./"))
    return el("main", _notices(seen, age_seconds), back, _cards(one, seen.now) if one else _unknown(engine))


def _cards(engines: Sequence[EngineView], now: float) -> Html:
    calm = [engine for engine in engines if engine.calm]
    alone = calm[-1] if len(calm) % 2 else None  # without a partner it takes the whole row
    cards = (card(engine, now, small=engine.calm and engine is not alone) for engine in engines)
    return el("div", cards, class_="cards")


def _others(engines: Sequence[EngineView]) -> Html | None:
    """Those of a fleet that are not the worst: a name, a word, and a way to their card."""
    if not engines:
        return None
    chips: list[Child] = [_chip(e, f"?engine={quote(e.engine, safe='', errors='replace')}") for e in engines]
    return el("section", el("h2", f"The other {len(engines)} engines"), el("nav", chips), class_="panel", id="others")


def _unknown(engine: str) -> Html:
    return el("section", el("h2", "No engine of this name"), el("p", name(engine)), class_="panel")


def _chip(engine: EngineView, href: str) -> Html:
    severity = engine.severity
    return el("a", icon(severity), name(engine.engine), el("span", engine.words), href=href, class_=severity.value)


def _notices(seen: View, age_seconds: float) -> Html | None:
    report, said = seen.scene.self_report, []
    if age_seconds >= OLD_SECONDS:
        said.append(f"This data is {units.duration(age_seconds)} old: pinchpoint's tick stands still; see its log.")
    if not report.config_last_reload_successful:
        said.append("The last reload failed: the previous configuration still runs. The log says why.")
    if report.gpus_expected is not None and report.gpus_visible is not None:
        gone = report.gpus_expected - report.gpus_visible
        if gone > 0:
            said.append(f"{report.gpus_visible} of {report.gpus_expected} expected GPUs are visible.")
    return join(el("p", icon(Severity.PINCHED), el("span", line), class_="notice") for line in said) if said else None


def _index(seen: View) -> Html | None:
    """All engines on one line, where there are enough of them to lose sight; of a fleet, how many are how."""
    if len(seen.engines) < 3:
        return None
    if len(seen.engines) > CARDS:
        return _tally(seen.engines)
    chips: list[Child] = [_chip(e, f"#{anchor(e.engine)}") for e in seen.engines]
    return el("nav", chips, aria_label="Engines")


def _tally(engines: Sequence[EngineView]) -> Html:
    """Each chip leads to the first of its engines."""
    first: dict[tuple[Severity, str], str] = {}
    for place, engine in enumerate(engines):
        first.setdefault((engine.severity, engine.words), anchor(engine.engine) if place < CARDS else "others")
    counts = Counter((engine.severity, engine.words) for engine in engines)
    chips: list[Child] = [
        el(
            "a",
            icon(severity),
            el("b", str(counts[severity, words])),
            el("span", words),
            href=f"#{target}",
            class_=severity.value,
        )
        for (severity, words), target in first.items()
    ]
    return el("nav", chips, aria_label="Engines by class")


def _no_engine(report: SelfReport) -> Html:
    if lists := [d for d in report.discoveries if d.discovery != "loopback"]:
        said = ", ".join(
            f"{d.discovery} ({'not read yet' if d.targets is None else f'{d.targets} engines'})" for d in lists
        )
        part = f" This is shard {report.shard} of {report.shards}, counted from 0." if report.shards else ""
        others = report.shards and any(d.targets for d in lists)
        title = "The lists' engines are other shards'" if others else "No engine in the lists"
        return el("section", el("h2", title), el("p", f"{said}.{part}"), class_="panel")
    return el(
        "section",
        el("h2", "Point it at an engine"),
        el(
            "p",
            "pinchpoint looks for engines on this machine's loopback ports. Name one that runs elsewhere in the "
            "configuration:",
        ),
        el("pre", "engines:\n  targets:\n    - name: chat\n      url: http://10.0.0.5:8000"),
        class_="panel",
    )


def _footer(telemetry_path: str) -> Html:
    links = (
        (telemetry_path.lstrip("/"), "metrics"),
        ("api/v1/status", "status as JSON"),
        ("api/v1/diagnosis", "diagnosis as JSON"),
    )
    return el("footer", [el("a", label, href=href) for href, label in links], el("span", f"pinchpoint {__version__}"))
