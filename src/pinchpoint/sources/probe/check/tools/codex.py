"""Codex: ``config.toml`` says URL and model, ``auth.json`` beside it, a variable or the file itself the key.

Source: the configuration reference of OpenAI's Codex CLI (``model_provider``, ``model_providers.ID``, ``profile``) and
its ``auth.json``: an ``OPENAI_API_KEY``, or the ``tokens`` of a ChatGPT login. Codex adds ``/responses`` or
``/chat/completions`` to the base URL.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from pinchpoint.sources.probe.check.tools.document import Document, mapping, name_of, sibling, words
from pinchpoint.sources.probe.check.triple import Finding, Part, Triple
from pinchpoint.sources.probe.dialects import DialectName
from pinchpoint.sources.probe.presets import preset_at

OWN_URL = "https://api.openai.com/v1"
_BUILT_IN = {"openai": OWN_URL, "ollama": "http://localhost:11434/v1", "lmstudio": "http://localhost:1234/v1"}
_KEYS = ("OPENAI_API_KEY", "api_key")
_URLS = ("base_url", "openai_base_url")


def is_auth(document: Document) -> bool:
    return bool(words(document, *_KEYS) or mapping(document, "tokens")) or "OPENAI_API_KEY" in document


def is_config(document: Document) -> bool:
    return any(name in document for name in ("model_provider", "model_providers", "base_url", "model"))


def from_auth(path: Path, auth: Document, environment: Mapping[str, str]) -> Triple:
    return triple(sibling(path, "config.toml"), auth, environment)


def from_config(path: Path, config: Document, environment: Mapping[str, str]) -> Triple:
    return triple(config, sibling(path, "auth.json"), environment)


def triple(config: Document, auth: Document, environment: Mapping[str, str]) -> Triple:
    """What Codex would use of both files and the environment."""
    flaws: list[Finding] = []
    profile = mapping(config, "profiles", words(config, "profile"))
    chosen = {**config, **profile}
    provider_id = words(chosen, "model_provider") or "openai"
    provider = mapping(config, "model_providers", provider_id)
    url, url_place = _url(chosen, provider, provider_id, auth, flaws)
    key, key_place = _key(url, provider, auth, environment, flaws)
    wire = words(provider, "wire_api") or ("chat" if provider_id in ("ollama", "lmstudio") else "responses")
    model, model_place = words(chosen, "model"), "model of config.toml"
    if not model and (model := words(auth, "model")):
        flaws.append(_unread("model", Part.MODEL))
    return Triple(
        name="Codex",
        url=url,
        key=key,
        model=model,
        dialect=DialectName.OPENAI_CHAT if wire == "chat" else DialectName.OPENAI_RESPONSES,
        appended="",
        places={Part.URL: url_place, Part.KEY: key_place, Part.MODEL: model_place},
        flaws=tuple(flaws),
    )


def _url(
    config: Document, provider: Document, provider_id: str, auth: Document, flaws: list[Finding]
) -> tuple[str, str]:
    if provider:
        return words(provider, "base_url"), f"model_providers.{provider_id}.base_url of config.toml"
    if found := words(config, *_URLS):
        return found, f"{name_of(config, *_URLS)} of config.toml"
    place = "base_url of a [model_providers.…] in config.toml"
    if provider_id not in _BUILT_IN:
        what = f"model_provider is {provider_id}, and there is no [model_providers.{provider_id}]"
        flaws.append(
            Finding(part=Part.URL, what=what, remedy="add it to config.toml, with name, base_url and wire_api")
        )
        return words(auth, "base_url"), place
    if found := words(auth, "base_url"):
        flaws.append(_unread("base_url", Part.URL))
        return found, place
    return _BUILT_IN[provider_id], place


def _key(
    url: str, provider: Document, auth: Document, environment: Mapping[str, str], flaws: list[Finding]
) -> tuple[str, str]:
    if token := words(provider, "experimental_bearer_token"):
        return token, "experimental_bearer_token of config.toml"
    if variable := words(provider, "env_key"):
        key = environment.get(variable, "").strip()
        if not key:
            what = f"the key is to be in the variable {variable}, which is not set here"
            flaws.append(Finding(part=Part.KEY, what=what, remedy=f"export {variable} where Codex runs"))
        return key, f"the variable {variable}"
    place = f"{name_of(auth, *_KEYS)} of auth.json"
    own = preset_at(url) == "openai"  # elsewhere a key goes only if the files name it
    key = words(auth, *_KEYS) or (environment.get("OPENAI_API_KEY", "").strip() if own else "")
    if not key and mapping(auth, "tokens"):
        what = "auth.json holds a ChatGPT login (OAuth) and no API key: those are two systems"
        flaws.append(Finding(part=Part.KEY, what=what, remedy="put an API key into OPENAI_API_KEY of auth.json"))
    return key, place


def _unread(name: str, part: Part) -> Finding:
    what = f"Codex does not read {name} from auth.json"
    where = (
        "a [model_providers.…] of config.toml, and name that in model_provider" if part is Part.URL else "config.toml"
    )
    return Finding(part=part, what=what, remedy=f"write it into {where}")


def from_cc_switch(settings: Document, environment: Mapping[str, str]) -> Triple:
    """CC Switch keeps ``auth`` as an object and ``config`` as the text of the TOML file."""
    try:
        config = tomllib.loads(words(settings, "config"))
    except (tomllib.TOMLDecodeError, RecursionError):
        config = {}
    return triple(config, mapping(settings, "auth"), environment)
