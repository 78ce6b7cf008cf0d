"""Puts the shared settings beneath the YAML file's: what the file says stands, what it leaves out is filled in."""

from collections.abc import Iterator, Mapping
from typing import Any

from pinchpoint.config.file import Location
from pinchpoint.config.origins import Origins
from pinchpoint.config.problem import Problem
from pinchpoint.config.shared import ENGINE_NAMES, HOSTED_NAMES, Said, Shared, overruled
from pinchpoint.sources.probe.presets import PRESETS

HOSTED_NAME = "taotoken"  # the name of the target, and its preset
_KEY_SETTINGS = ("api_key", "api_key_file", "api_key_variable")

Content = Mapping[str, Any]
Places = dict[Location, str]


def beneath(content: Content, shared: Shared, file: str) -> tuple[Content, Places, list[Problem]]:
    """The content with the shared settings in it, where each of those stands, and what does not count."""
    places: Places = {}
    engine, notices = _filled(content.get("local_engine"), ("local_engine",), shared.of(ENGINE_NAMES), places, file)
    sections: dict[str, Any] = {"local_engine": engine} if engine else {}
    probes = content.get("probes")
    targets = probes.get("targets") if isinstance(probes, Mapping) else None
    if not isinstance(probes, Mapping | None) or not isinstance(targets, list | None):
        return {**content, **sections}, places, notices  # a mistake, which is told elsewhere
    hosted = shared.of(HOSTED_NAMES)
    merged, more = _with_hosted(list(targets or ()), hosted, places, file)
    if merged:
        sections["probes"] = {**(probes or {}), "targets": merged}
    return {**content, **sections}, places, notices + more


def _with_hosted(
    targets: list[Any], hosted: Mapping[str, Said], places: Places, file: str
) -> tuple[list[Any], list[Problem]]:
    """The file's targets that are this API's lack nothing that is told here; without one, there is a new one."""
    notices: list[Problem] = []
    url = hosted["url"].value if "url" in hosted else PRESETS[HOSTED_NAME].url
    its = [number for number, target in enumerate(targets) if isinstance(target, Mapping) and _is_its(target, url)]
    for number in its:
        keyless = all(targets[number].get(name) is None for name in _KEY_SETTINGS)
        gets_key = keyless and _place(targets[number].get("url", url)) == _place(url)  # and no stranger does
        told = {name: said for name, said in hosted.items() if name != "api_key" or gets_key}
        targets[number], more = _filled(targets[number], ("probes", "targets", number), told, places, file)
        notices += more
    if not its and {"model", "api_key"} <= hosted.keys():
        at: Location = ("probes", "targets", len(targets))
        new = {"name": HOSTED_NAME, "preset": HOSTED_NAME}
        targets.append(new | {name: said.value for name, said in hosted.items()})
        places.update({at: hosted["model"].where} | {(*at, name): said.where for name, said in hosted.items()})
    return targets, notices


def _is_its(target: Content, url: object) -> bool:
    named = HOSTED_NAME in (target.get("name"), target.get("preset"))
    return named or _place(target.get("url")) == _place(url)


def _place(url: object) -> str:
    """The URL however it is written: with or without ``/v1``."""
    return str(url).strip().rstrip("/").removesuffix("/v1").lower()


def _filled(given: Any, at: Location, told: Mapping[str, Said], places: Places, file: str) -> tuple[Any, list[Problem]]:
    """``given`` with what it leaves out. What it says otherwise stays, and is noticed."""
    if not isinstance(given, Mapping | None):
        return given, []
    own = dict(given or {})
    for name, said in told.items():
        if own.get(name) is None:
            own[name] = said.value
            places[(*at, name)] = said.where
    return own, [*_overruled(own, at, told, file)]


def _overruled(own: Content, at: Location, told: Mapping[str, Said], file: str) -> Iterator[Problem]:
    for name, said in told.items():
        if said.differs_from(own[name]):
            yield overruled(said, own[name], f"{file} ({'.'.join(map(str, (*at, name)))})")


def replaced(origins: Origins, shared: Shared, engine: object) -> Iterator[Problem]:
    """What does not count because a layer above the file says otherwise. ``engine``: the facts that hold."""
    for name, said in shared.of(ENGINE_NAMES).items():
        above, holds = origins.above(("local_engine", name)), getattr(engine, name)
        if above and said.differs_from(holds):
            yield overruled(said, holds, above)
    for location, where in origins.places.items():
        if location[:2] == ("probes", "targets") and len(location) == 3 and (above := origins.above(location)):
            what = f"is not probed: {above} gives the whole list of targets"
            yield Problem(where, HOSTED_NAME, what, f"add {HOSTED_NAME} to that list")
