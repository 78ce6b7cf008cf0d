"""A settings.json with ``TAOTOKEN_…`` names, at its top or under ``env``; the key is in the environment as a rule."""

from collections.abc import Mapping

from pinchpoint.sources.probe.check.tools.document import Document, mapping, words
from pinchpoint.sources.probe.check.triple import Part, Triple
from pinchpoint.sources.probe.presets import PRESETS

_PRESET = PRESETS["taotoken"]
_NAMES = {Part.URL: "TAOTOKEN_BASE_URL", Part.KEY: "TAOTOKEN_API_KEY", Part.MODEL: "TAOTOKEN_MODEL"}


def is_settings(document: Document) -> bool:
    return any(name in document or name in mapping(document, "env") for name in _NAMES.values())


def triple(document: Document, environment: Mapping[str, str]) -> Triple:
    """What the environment says wins, as it does for pinchpoint's own configuration."""
    told = {**mapping(document, "env"), **document, **{k: v for k, v in environment.items() if v.strip()}}
    return Triple(
        name="TaoToken settings",
        url=words(told, _NAMES[Part.URL]) or _PRESET.url,
        key=words(told, _NAMES[Part.KEY]),
        model=words(told, _NAMES[Part.MODEL]),
        dialect=_PRESET.dialect,
        places=_NAMES,
    )
