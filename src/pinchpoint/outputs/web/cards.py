"""The card of one engine: what pinches it, why, what to do, and the measurements behind that."""

import zlib

from pinchpoint.alerting import KV_CACHE_HIGH_RATIO
from pinchpoint.diagnosis.verdict import Objective
from pinchpoint.outputs.web import units
from pinchpoint.outputs.web.course import strip
from pinchpoint.outputs.web.drawings import bar, icon, spark
from pinchpoint.outputs.web.explained import explained
from pinchpoint.outputs.web.markup import Html, el, join, name
from pinchpoint.outputs.web.recent import History, fullest, total
from pinchpoint.outputs.web.tables import gpu_table, table
from pinchpoint.outputs.web.view import EngineView
from pinchpoint.outputs.web.words import opening
from pinchpoint.snapshot import EngineReading

_SHOWN_WARNINGS = 3


def anchor(engine: str) -> str:
    """An element id that stays the same while the order of the cards changes."""
    return f"e{zlib.crc32(engine.encode('utf-8', 'replace')):08x}"


def card(engine: EngineView, now: float, small: bool) -> Html:
    """One engine as an article; two small ones stand side by side where there is room."""
    return el(
        "article",
        _heading(engine, now),
        None if engine.starting else strip(engine.course, now, engine.unix_offset),
        el(
            "div",
            el("div", explained(engine, f"{anchor(engine.engine)}-more"), class_="verdict"),
            el("div", _measurements(engine, engine.now), class_="measured") if engine.now else None,
            class_="body",
        ),
        gpu_table(engine.gpus) if engine.gpus else None,
        class_=f"card {engine.severity}" + (" small" if small else ""),
        id=anchor(engine.engine),
        aria_label=f"Engine {engine.engine}: {engine.words}",
    )


def _heading(engine: EngineView, now: float) -> Html:
    since = units.duration(now - engine.settled.since) if engine.settled else None
    return el(
        "header",
        el("p", name(engine.engine, "engine"), name(engine.model, "model") if engine.model else None, class_="who"),
        el("h2", icon(engine.severity), el("span", engine.words)),
        el(
            "p",
            el("code", engine.bottleneck.value) if engine.bottleneck and not engine.starting else None,
            el("span", f"for {since}") if since and not engine.starting else None,
            class_="meta",
        ),
    )


def _measurements(engine: EngineView, now: EngineReading) -> Html:
    past = engine.history
    return join(
        _kv_cache(engine, now, past),
        _requests(now, past),
        _latencies(engine),
        _replicas(now),
        el("p", " · ".join(now.warnings[:_SHOWN_WARNINGS]), class_="doubts") if now.warnings else None,
    )


def _axis(past: History) -> Html:
    return el("p", el("span", f"{units.duration(past.span_seconds)} ago"), el("span", "now"), class_="axis")


def _kv_cache(engine: EngineView, now: EngineReading, past: History) -> Html:
    kv, tokens = fullest(now), total(now, lambda r: r.kv_cache_capacity_tokens)
    line = f"over the {KV_CACHE_HIGH_RATIO:.0%} alert line".replace("%", f"{units.NBSP}%")
    capacity = el("span", f"of {units.count(tokens)} tokens") if tokens is not None else None
    return el(
        "section",
        el("h3", "KV cache", el("b", units.ratio(kv)), capacity),
        bar(kv, "KV cache in use", mark=KV_CACHE_HIGH_RATIO, warn=bool(engine.over_alert_line)),
        el("p", el("b", opening(line)), f": {_on_the_line(engine)}", class_="line") if engine.over_alert_line else None,
        spark(
            f"KV cache in use, last {units.duration(past.span_seconds)}",
            ("kv", past.kv_cache_usage_ratio),
            top=1.0,
            mark=KV_CACHE_HIGH_RATIO,
        ),
        _axis(past),
        class_="gauge",
    )


def _on_the_line(engine: EngineView) -> str:
    if engine.calm:
        return "nobody waits for room yet, but the next burst will, so it pages if it lasts."
    return "it pages if it lasts."


def _requests(now: EngineReading, past: History) -> Html:
    running, waiting = total(now, lambda r: r.requests_running), total(now, lambda r: r.requests_waiting)
    highest = max((v for v in (*past.requests_running, *past.requests_waiting) if v is not None), default=0.0)
    lines = [("running", past.requests_running)]
    if any(past.requests_waiting):  # an empty queue needs no line
        lines.append(("waiting", past.requests_waiting))
    return el(
        "section",
        el(
            "h3",
            "Requests",
            el("b", units.count(running)),
            el("span", "running", class_="key running"),
            el("b", units.count(waiting)),
            el("span", "waiting", class_="key waiting"),
        ),
        spark(f"Requests running and waiting, last {units.duration(past.span_seconds)}", *lines, top=max(highest, 4.0)),
        _axis(past),
        class_="gauge requests",
    )


def _latencies(engine: EngineView) -> Html:
    span = engine.settled.diagnosis.signals.get("span_seconds") if engine.settled else None
    over = f", last {units.duration(span)}: what the verdict looks at" if span else ""
    return el(
        "dl",
        _latency("TTFT", f"Time to first token, as the engine sees it{over}", engine.ttft, engine.late(engine.ttft)),
        _latency("TPOT", f"Time per output token (between tokens){over}", engine.tpot, engine.late(engine.tpot)),
        el(
            "div",
            el("dt", "Output"),
            el("dd", el("b", units.count(engine.generation_tokens_per_second)), " ", el("small", "tok/s")),
            el("dd", f"input {units.count(engine.prompt_tokens_per_second)}", class_="small"),
        ),
        class_="tiles",
    )


def _latency(label: str, title: str, seen: Objective | None, late: bool) -> Html:
    """What is judged in large, so that the figure that is red is the one that is over."""
    if seen is None:
        return el("div", el("dt", label, title=title), el("dd", el("b", units.UNKNOWN)))
    told = [el("span", f"p50 {units.quantile(seen.p50)}")]
    if seen.judged_by == "mean":
        told += [Html(" "), el("span", f"p95 {units.quantile(seen.p95)}")]
    slo = f"SLO {units.latency(seen.slo_seconds)}"
    by = el("small", seen.judged_by) if seen.judged_seconds is not None else None
    return el(
        "div",
        el("dt", label, title=title),
        el("dd", el("b", units.latency(seen.judged_seconds)), " ", by, class_="over" if late else None),
        el("dd", told, class_="small quantiles"),
        el("dd", f"over {slo}" if late else slo, class_="small over" if late else "small"),
    )


def _replicas(now: EngineReading) -> Html | None:
    if len(now.replicas) < 2:
        return None
    heads = ("Replica", "KV cache", "", "running", "waiting")
    rows = [
        el(
            "tr",
            el("th", name(r.replica), scope="row"),
            el("td", bar(r.kv_cache_usage_ratio, f"KV cache of replica {r.replica}", mark=KV_CACHE_HIGH_RATIO)),
            el("td", units.ratio(r.kv_cache_usage_ratio)),
            el("td", units.count(r.requests_running)),
            el("td", units.count(r.requests_waiting)),
        )
        for r in now.replicas[:32]
    ]
    return table("replicas", "Replicas", heads, rows)
