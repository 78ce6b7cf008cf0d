"""Why an engine is in its class, what speaks against it, what can't be seen, and what to do: the words of a card."""

from pinchpoint.diagnosis.verdict import Advice, Bottleneck, Evidence, Settled
from pinchpoint.outputs.class_words import CLASS_WORDS
from pinchpoint.outputs.web import units
from pinchpoint.outputs.web.drawings import bar
from pinchpoint.outputs.web.markup import Html, el, join
from pinchpoint.outputs.web.view import EngineView
from pinchpoint.outputs.web.words import Severity, in_words, opening, reason_in_words, within

_SHOWN_FACTS = 6
_SHOWN_LEVERS = 8
_SHOWN_SIGNALS = 4


def explained(engine: EngineView, more_id: str) -> Html:
    """``more_id`` names the part that folds out, so that it stays open when the page is fetched anew."""
    if engine.settled is None or engine.starting:
        return el("p", "The first verdict comes in a few seconds.", class_="why")
    diagnosis = engine.settled.diagnosis
    gone = _absent(engine)
    unseen = gone is not None and engine.bottleneck is Bottleneck.NO_DATA
    return join(
        None if unseen else el("p", opening(diagnosis.why), class_="why"),  # that sentence is the absence itself
        gone,
        _evidence(engine),
        _levers(diagnosis.advice[:_SHOWN_LEVERS], more_id),
        _more_gpus(engine),
        _doubts(engine.settled) if engine.now else None,
    )


def _evidence(engine: EngineView) -> Html | None:
    """The facts behind a pinch, and those against it; where all is well the sentence above has said them."""
    if engine.settled is None or engine.severity in (Severity.FINE, Severity.QUIET):
        return None
    diagnosis = engine.settled.diagnosis
    speaks = [_fact(fact) for fact in diagnosis.evidence[:_SHOWN_FACTS]]
    against = [_fact(fact, "against") for fact in diagnosis.contradicted_by[:_SHOWN_FACTS]]
    return el("ul", speaks, against, class_="evidence") if speaks or against else None


def _fact(fact: Evidence, css: str | None = None) -> Html:
    return el("li", el("b", "Against: ") if css else None, opening(fact.text), _measure(fact), class_=css)


def _measure(fact: Evidence) -> Html | None:
    """A bar for what is out of 1, with a mark at its threshold."""
    value, threshold = fact.value, fact.threshold
    if value is None or threshold is None or not fact.out_of_one:
        return None
    return bar(value, f"{in_words(fact.signal)}, threshold {units.ratio(threshold)}", mark=threshold)


def _absent(engine: EngineView) -> Html | None:
    if engine.absent is None:
        return None
    reason = opening(reason_in_words(engine.absent.reason))
    return el("p", el("b", reason), " ", el("span", engine.absent.detail), class_="gone")


def _levers(levers: tuple[Advice, ...], more_id: str) -> Html | None:
    if not levers:
        return None
    first, rest = levers[0], levers[1:]
    then = f"Then {len(rest)} more {'lever' if len(rest) == 1 else 'levers'}, in this order"
    return join(
        el("div", _lever(first, "Do first"), class_="do"),
        el(
            "details",
            el("summary", then),
            el("ol", [el("li", _lever(lever)) for lever in rest], class_="levers", start=2),
            id=more_id,
        )
        if rest
        else None,
    )


def _lever(lever: Advice, lead: str | None = None) -> Html:
    labelled = (("Why", lever.reason), ("Expect", lever.effect), ("Risk", lever.risk))
    told = [(label, words) for label, words in labelled if words]
    return join(
        el("p", el("b", lead) if lead else None, " " if lead else None, el("span", lever.text)),
        el("p", el("code", lever.flag), class_="flagged") if lever.flag else None,
        el("dl", [join(el("dt", label), el("dd", opening(words))) for label, words in told], class_="told")
        if told
        else None,
    )


def _more_gpus(engine: EngineView) -> Html | None:
    if engine.scaling is None or engine.now is None:
        return None
    helps = {True: "Yes", False: "No", None: "Unknown"}[engine.scaling.more_gpus_help]
    answer = el("b", helps, class_=f"answer {helps.lower()}")
    return el("p", el("b", "More GPUs help?"), " ", answer, " ", el("span", engine.scaling.reason), class_="more")


def _doubts(settled: Settled) -> Html:
    diagnosis = settled.diagnosis
    parts = [f"{units.ratio(diagnosis.confidence_ratio)} confident"]
    if diagnosis.runner_up:
        score = diagnosis.scores.get(diagnosis.runner_up)
        own = diagnosis.scores.get(diagnosis.bottleneck)
        beside = f" (score {score:.2f}, this one {own:.2f})" if score is not None and own is not None else ""
        parts.append(f"next: {within(CLASS_WORDS[diagnosis.runner_up])}{beside}")
    if settled.candidate:
        parts.append(f"turning to: {within(CLASS_WORDS[settled.candidate])}")
    if diagnosis.missing:
        more = len(diagnosis.missing) - _SHOWN_SIGNALS
        names = ", ".join(map(in_words, diagnosis.missing[:_SHOWN_SIGNALS]))
        parts.append(f"can't see: {names}" + (f" +{more}" if more > 0 else ""))
    return el("p", " · ".join(parts), class_="doubts")
