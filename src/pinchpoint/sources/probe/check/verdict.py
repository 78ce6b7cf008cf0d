"""Which of the three is wrong, and what to write instead. Pure."""

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from pinchpoint.snapshot import ProbeLiveness, ProbeOutcome, ProbeReading
from pinchpoint.sources.probe.check.look import closest, known_url, near_url
from pinchpoint.sources.probe.check.steps import ANSWERED, Evidence
from pinchpoint.sources.probe.check.triple import Finding, Part
from pinchpoint.sources.probe.credential import key_flaw, model_flaw
from pinchpoint.sources.probe.dialects import DialectName

_PART: Mapping[ProbeOutcome, Part] = {
    ProbeOutcome.DNS: Part.URL,
    ProbeOutcome.CONNECT_REFUSED: Part.URL,
    ProbeOutcome.NOT_FOUND: Part.URL,
    ProbeOutcome.INVALID_RESPONSE: Part.URL,
    ProbeOutcome.AUTH: Part.KEY,
    ProbeOutcome.FORBIDDEN: Part.KEY,
    ProbeOutcome.MODEL_NOT_FOUND: Part.MODEL,
    ProbeOutcome.QUOTA: Part.ACCOUNT,
    ProbeOutcome.RATE_LIMITED: Part.ACCOUNT,
    ProbeOutcome.TLS: Part.NETWORK,
    ProbeOutcome.CONNECT_TIMEOUT: Part.NETWORK,
    ProbeOutcome.PROXY: Part.NETWORK,
    ProbeOutcome.RESET: Part.NETWORK,
    ProbeOutcome.BAD_REQUEST: Part.REQUEST,
    ProbeOutcome.CONTEXT_LENGTH: Part.REQUEST,
}


def findings(evidence: Evidence) -> Iterator[Finding]:
    """What is wrong, the cause first; nothing when all is well as far as it was asked."""
    decisive: ProbeReading | ProbeLiveness = evidence.reading or evidence.listed
    outcome = decisive.outcome
    if evidence.reading is None and outcome is ProbeOutcome.NOT_FOUND and _has_no_list(evidence):
        return  # an API may have no list of models; only a request can tell
    if outcome not in ANSWERED:
        part = _PART.get(outcome, Part.SERVER)
        remedy = _remedy(part, evidence) or decisive.remedy or "see the provider's status page"
        yield Finding(part=part, what=f"{outcome}: {decisive.detail}".rstrip(": "), remedy=remedy.rstrip("."))
    if (misplaced := _misplaced(evidence)) is not None:
        yield misplaced
    if outcome in ANSWERED and evidence.reading is None and evidence.is_listed is False:
        what = f"the API lists no model {evidence.triple.model}"
        yield Finding(part=Part.MODEL, what=what, remedy=_other_model(evidence) or "write one that it lists")


def _has_no_list(evidence: Evidence) -> bool:
    """Whether the API answered in its own words, which a web page does not, that there is no such path."""
    return all("html" not in each.exchange.content_type for each in evidence.listing.heard)


def _remedy(part: Part, evidence: Evidence) -> str | None:
    match part:
        case Part.URL:
            return _other_url(evidence)
        case Part.KEY:
            return _other_key(evidence)
        case Part.MODEL:
            return _other_model(evidence)
    return None


def _other_url(evidence: Evidence) -> str | None:
    triple = evidence.triple
    listed_at = evidence.listing.answered_at if evidence.listed.outcome is ProbeOutcome.OK else None
    if listed_at is not None and triple.dialect is DialectName.OPENAI_RESPONSES:
        return "it has models, but no /responses: use chat completions (Codex: wire_api) or a provider that has it"
    found = near_url if evidence.listed.outcome is ProbeOutcome.DNS else known_url
    known = found(triple.url, triple.dialect)
    if known is None or known == triple.url.rstrip("/"):
        return None
    return f"write {known} into {triple.place(Part.URL)}"


def _other_key(evidence: Evidence) -> str | None:
    triple = evidence.triple
    place = triple.place(Part.KEY)
    if not triple.key:
        return f"the API wants a key: write one into {place}"
    flaw = key_flaw(triple.key, urlsplit(triple.url).hostname or "")
    if flaw is not None or evidence.triple.appended is None:
        return flaw
    return f"make a new key where this base URL is from, and write it into {place}"


def _other_model(evidence: Evidence) -> str | None:
    triple, listed = evidence.triple, evidence.listed.models
    place = triple.place(Part.MODEL)
    if near := closest(evidence.model, listed):
        return f"write {near} into {place}, the nearest of the {len(listed)} that are listed"
    if flaw := model_flaw(evidence.model, urlsplit(triple.url).hostname or ""):
        return flaw
    return f"write one of these into {place}: {', '.join(listed[:5])}" if listed else None


def _misplaced(evidence: Evidence) -> Finding | None:
    """That the tool would ask at a root where the API is not, though it was found nearby."""
    triple = evidence.triple
    if triple.appended is None:
        return None
    told = evidence.asked or evidence.listing
    wanted, real = triple.url.rstrip("/") + triple.appended, told.answered_at
    if real is None or real == wanted:
        return None
    what = f"the API is not at {wanted}, where this tool asks, but at {real}"
    if not real.endswith(triple.appended):
        return Finding(part=Part.URL, what=what, remedy="this tool can't ask there: use the provider's URL for it")
    right = real.removesuffix(triple.appended) if triple.appended else real
    return Finding(part=Part.URL, what=what, remedy=f"write {right} into {triple.place(Part.URL)}")
