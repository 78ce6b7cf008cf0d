"""One check from end to end: looks, asks for what is free, sends one request of a few tokens, and judges."""

from collections.abc import Mapping
from dataclasses import replace

from pydantic import ValidationError

from pinchpoint.snapshot import ProbeOutcome
from pinchpoint.sources.probe.check import look
from pinchpoint.sources.probe.check.asking import (
    CHEAP,
    UNNAMED,
    Send,
    list_models,
    request,
    send_unasked,
    target_of,
)
from pinchpoint.sources.probe.check.steps import Evidence, steps
from pinchpoint.sources.probe.check.triple import Check, Finding, Part, Triple
from pinchpoint.sources.probe.check.verdict import findings
from pinchpoint.sources.probe.excerpt import excerpt
from pinchpoint.sources.probe.key import KeyUnusableError, key_of
from pinchpoint.sources.probe.settings import ProbeTargetSettings


async def check(triple: Triple, *, free: bool, environment: Mapping[str, str], send: Send = send_unasked) -> Check:
    """Checks one triple. ``free`` sends nothing that is billed; ``send`` decides whether the request is sent.

    Writes nothing; raises nothing but ``CancelledError``, and what ``send`` does.
    """
    if (flaw := look.unusable(triple)) is not None:
        return _result(triple, wrong=(*sorted(triple.flaws, key=lambda each: each.part is not Part.URL), flaw))
    try:
        target = target_of(triple)
    except ValidationError as error:
        mistake = error.errors(include_input=False, include_url=False)[0]
        part = Part.MODEL if "model" in mistake["loc"] else Part.URL
        what, _, remedy = mistake["msg"].removeprefix("Value error, ").partition("; ")
        return _result(triple, wrong=(Finding(part=part, what=what, remedy=remedy or "correct it"),))
    return await _checked(triple, target, free=free, environment=environment, send=send)


async def check_target(
    target: ProbeTargetSettings, *, free: bool, environment: Mapping[str, str], send: Send = send_unasked
) -> Check:
    """Checks a configured target, with its proxy, deadlines and parameters."""
    model = "" if target.model == UNNAMED else target.model or ""
    triple = Triple(name=target.name, url=target.url, model=model, dialect=target.dialect)
    try:
        triple = replace(triple, key=await key_of(target))
    except KeyUnusableError as error:
        remedy = "make it readable to pinchpoint, with the bare key in it"
        return _result(triple, wrong=(Finding(part=Part.KEY, what=str(error), remedy=remedy),))
    cheap = target.model_copy(update=dict(CHEAP))
    return await _checked(triple, cheap, free=free, environment=environment, send=send)


async def _checked(
    triple: Triple, target: ProbeTargetSettings, *, free: bool, environment: Mapping[str, str], send: Send
) -> Check:
    evidence = Evidence(triple=triple, listing=await list_models(triple, target))
    if evidence.stopped_at is None:
        if triple.key and evidence.listed.outcome is ProbeOutcome.OK:
            evidence = replace(evidence, keyless=await list_models(triple, target, keyless=True))
        model = triple.model.strip() or next(iter(evidence.listed.models), UNNAMED)
        evidence = replace(evidence, model=model)
        if not free and model != UNNAMED:
            asked = await request(triple, target.model_copy(update={"model": model}), send)
            evidence = replace(evidence, asked=asked)
    wrong = (*triple.flaws, *findings(evidence))
    seen = (*triple.notes, *look.notes(triple, environment))
    new = tuple(note for note in seen if all(note.remedy not in other.remedy for other in wrong))
    return _result(triple, steps=tuple(steps(evidence)), wrong=wrong, notes=new)


def _result(triple: Triple, **found: object) -> Check:
    return Check(
        name=triple.name,
        url=excerpt(triple.url.partition("?")[0], (triple.key,)),
        key_hint=triple.key_hint,
        model=excerpt(triple.model, (triple.key,)),
        dialect=triple.dialect,
        places=triple.places,
        **found,  # type: ignore[arg-type]
    )
