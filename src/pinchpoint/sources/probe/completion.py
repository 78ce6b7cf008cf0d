"""What a target leaves open, filled in from its preset; what contradicts the preset, named. Pure."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pinchpoint.snapshot import Placement
from pinchpoint.sources.http.base_url import is_loopback
from pinchpoint.sources.probe.dialects import DialectName
from pinchpoint.sources.probe.presets import PRESETS, Preset, preset_at


def complete(target: Mapping[str, Any]) -> dict[str, Any]:
    """The target as written, with what its preset knows. What is written wins, save a contradiction: ``ValueError``.

    Without ``preset``, the host of the URL tells it where that is a provider's own: so nobody spends by forgetting that
    an API is hosted. A key's variable is offered to the provider's own address alone, never to another that was put
    in its place.
    """
    values = dict(target)
    url, name = values.get("url"), values.get("preset")
    at_home = preset_at(url) if isinstance(url, str) else None
    if name is None:
        name = at_home
    if name is None:
        return values
    preset = _known(name)
    if at_home not in (None, name):
        raise ValueError(f"preset {name} and url disagree: the url is {at_home}'s; keep one of them")
    values |= {"preset": name, "dialect": _dialect(values, name, preset)}
    values.setdefault("name", name)
    if url is None:
        values["url"] = _url(values, name, preset)
    hosted = preset.placement is Placement.HOSTED
    own = url is None or at_home == name or (not hosted and is_loopback(str(url)))
    if own and hosted and values.get("placement") == Placement.LOCAL:
        raise ValueError(
            f"placement local and {name} disagree: {name} is a hosted API, which bills; leave placement out"
        )
    for field, known in (("placement", preset.placement), ("model", preset.model)):
        if values.get(field) is None and known is not None:
            values[field] = known
    if (
        own
        and not _in_the_open(url, hosted)
        and all(values.get(field) is None for field in ("api_key", "api_key_file", "api_key_variable"))
    ):
        values["api_key_variable"] = preset.key_variable
    written = values.get("parameters")
    if written is None or isinstance(written, Mapping):
        values["parameters"] = {**preset.parameters, **(written or {})}
    return values


def _known(name: object) -> Preset:
    preset = PRESETS.get(name) if isinstance(name, str) else None
    if preset is None:
        near = get_close_matches(str(name).lower(), PRESETS, n=1)
        hint = f"did you mean {near[0]}? known are" if near else "known are"
        raise ValueError(f"preset {str(name)[:40]!r} is unknown; {hint}: {', '.join(PRESETS)}")
    return preset


def _dialect(values: Mapping[str, Any], name: str, preset: Preset) -> Any:
    """As written; else that of the preset's URL which the target's own begins with; else the preset's usual one."""
    written, url = values.get("dialect"), values.get("url")
    if written is None:
        matching = [dialect for dialect, home in preset.urls.items() if url and str(url).startswith(home)]
        return max(matching, key=lambda dialect: len(preset.urls[dialect]), default=preset.dialect)
    if url is None and written in list(DialectName) and written not in preset.urls:
        spoken = ", ".join(preset.urls)
        raise ValueError(
            f"preset {name} and dialect {written} disagree: known there is {spoken}; give url too if it moved"
        )
    return written


def _url(values: Mapping[str, Any], name: str, preset: Preset) -> str:
    dialect = values["dialect"]
    url = preset.urls[dialect if dialect in list(preset.urls) else preset.dialect]
    if not url:
        raise ValueError(f"preset {name} needs url, for each account has its own: https://RESOURCE.openai.azure.com")
    return url


def _in_the_open(url: object, hosted: bool) -> bool:
    """Whether a key would travel unencrypted to a provider: only one that was written for it may."""
    return hosted and isinstance(url, str) and not url.lower().startswith("https://")
