"""Cline: ``globalState.json`` says provider, URL and model, ``secrets.json`` beside it the key; an export has both.

Source: the state keys of Cline's own repository. Names with the mode (``actModeOpenAiModelId``) are the newer ones.
"""

from dataclasses import dataclass
from pathlib import Path

from pinchpoint.sources.probe.check.tools.document import Document, name_of, sibling, words
from pinchpoint.sources.probe.check.triple import Finding, Part, Triple
from pinchpoint.sources.probe.dialects import DialectName

_PROVIDERS = ("actModeApiProvider", "apiProvider", "planModeApiProvider")
_MODELS = ("actModeApiModelId", "apiModelId", "planModeApiModelId")


@dataclass(frozen=True, slots=True)
class _Kind:
    """How one of Cline's providers is written down. ``url``: where none is given."""

    key: str
    url: str = ""
    url_name: str = ""
    models: tuple[str, ...] = _MODELS
    dialect: DialectName = DialectName.OPENAI_CHAT
    appended: str = ""


_KINDS = {
    "openai": _Kind(
        "openAiApiKey",
        url_name="openAiBaseUrl",
        models=("actModeOpenAiModelId", "openAiModelId", "planModeOpenAiModelId"),
    ),
    "anthropic": _Kind(
        "apiKey", "https://api.anthropic.com", "anthropicBaseUrl", dialect=DialectName.ANTHROPIC, appended="/v1"
    ),
    "openai-native": _Kind("openAiNativeApiKey", "https://api.openai.com/v1"),
    "openrouter": _Kind(
        "openRouterApiKey",
        "https://openrouter.ai/api/v1",
        models=("actModeOpenRouterModelId", "openRouterModelId", "planModeOpenRouterModelId"),
    ),
    "deepseek": _Kind("deepSeekApiKey", "https://api.deepseek.com"),
    "gemini": _Kind(
        "geminiApiKey",
        "https://generativelanguage.googleapis.com",
        "geminiBaseUrl",
        dialect=DialectName.GEMINI,
        appended="/v1beta",
    ),
    "mistral": _Kind("mistralApiKey", "https://api.mistral.ai/v1"),
    "xai": _Kind("xaiApiKey", "https://api.x.ai/v1"),
}
_SECRETS = frozenset(kind.key for kind in _KINDS.values()) - {"apiKey"}  # that one is everybody's name


def is_state(document: Document) -> bool:
    return any(name in document for name in (*_PROVIDERS, "openAiBaseUrl"))


def is_secrets(document: Document) -> bool:
    return any(name in document for name in _SECRETS)


def from_state(path: Path, state: Document) -> Triple:
    return _triple(state, {**sibling(path, "secrets.json"), **state})


def from_secrets(path: Path, secrets: Document) -> Triple:
    return _triple(sibling(path, "globalState.json"), secrets)


def _triple(state: Document, secrets: Document) -> Triple:
    provider = words(state, *_PROVIDERS) or "openai"
    kind = _KINDS.get(provider)
    if kind is None:
        what = f"Cline's provider is {provider}, whose API is not one that a check speaks"
        flaw = Finding(part=Part.URL, what=what, remedy="check its base URL by hand, with --dialect")
        return Triple(name="Cline", url="", flaws=(flaw,))
    notes = []
    if state.get("openAiHeaders"):
        notes.append(Finding(part=Part.KEY, what="openAiHeaders are not sent by a check", remedy="mind them yourself"))
    return Triple(
        name="Cline",
        url=words(state, kind.url_name) or kind.url,
        key=words(secrets, kind.key),
        model=words(state, *kind.models),
        dialect=kind.dialect,
        appended=kind.appended,
        places={
            Part.URL: kind.url_name or _PROVIDERS[0],
            Part.KEY: f"{kind.key} of secrets.json",
            Part.MODEL: name_of(state, *kind.models),
        },
        notes=tuple(notes),
    )
