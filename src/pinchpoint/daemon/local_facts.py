"""Whether the settings' ``local_engine`` is about an engine, and what it adds to what is known of that. Pure."""

from collections.abc import Collection, Iterator
from math import isclose

from pinchpoint.snapshot import EngineFacts

ORIGIN = "settings"


def with_local(
    facts: EngineFacts, models: Collection[str], local: EngineFacts, *, alone: bool
) -> tuple[EngineFacts, tuple[str, ...]]:
    """``facts`` where they are unknown completed by ``local``, and what contradicts.

    ``models`` are the names that the engine serves; ``alone``: there is no other engine.
    """
    if not local.known():
        return facts, ()
    if local.model and models:
        if not any(_same(local.model, model) for model in models):
            told = (
                f"local_engine is about {local.model}, this engine serves {', '.join(sorted(models))}: it is not used"
            )
            return facts, (told,) if alone else ()
    elif not alone:
        return facts, ()
    return facts.completed(local, ORIGIN), tuple(_contradictions(facts, local))


def _same(one: str, other: str) -> bool:
    """A model is served under its path, its repository's name, or the last part of either."""
    return one == other or one.rstrip("/").rpartition("/")[2] == other.rstrip("/").rpartition("/")[2]


def _contradictions(facts: EngineFacts, local: EngineFacts) -> Iterator[str]:
    for name, said in local.known().items():
        holds = facts.known().get(name)
        if isinstance(said, int | float) and isinstance(holds, int | float) and not isclose(said, holds):
            by = facts.origins.get(name, "the engine").replace("_", " ")
            yield f"{name} is {said:g} in local_engine and {holds:g} by {by}, which counts; correct the setting"
