"""Claude Code: the ``env`` of a ``settings.json``.

Source: Claude Code's documentation of its settings and of LLM gateways. It adds ``/v1/messages`` to the base URL;
ANTHROPIC_AUTH_TOKEN goes into ``Authorization: Bearer``, ANTHROPIC_API_KEY into ``x-api-key``.
"""

from pinchpoint.sources.probe.check.tools.document import Document, mapping, words
from pinchpoint.sources.probe.check.triple import Finding, Part, Triple
from pinchpoint.sources.probe.dialects import DialectName

OWN_URL = "https://api.anthropic.com"
_ALIASES = ("sonnet", "opus", "haiku")
_CHEAPEST = ("ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_SMALL_FAST_MODEL")


def is_settings(document: Document) -> bool:
    env = mapping(document, "env")
    return any(str(name).startswith(("ANTHROPIC_", "CLAUDE_CODE_")) for name in env) or "apiKeyHelper" in document


def triple(document: Document) -> Triple:
    env = mapping(document, "env")
    token, key = words(env, "ANTHROPIC_AUTH_TOKEN"), words(env, "ANTHROPIC_API_KEY")
    model, model_name = _model(document, env)
    flaws, notes = [], []
    if token and key and token != key:
        what = "ANTHROPIC_AUTH_TOKEN and ANTHROPIC_API_KEY are both set, so two keys are sent; the first is checked"
        notes.append(Finding(part=Part.KEY, what=what, remedy="keep the one that the gateway's guide names"))
    if not (token or key) and words(document, "apiKeyHelper"):
        what = "the key comes from apiKeyHelper, a program, which a check does not run"
        flaws.append(Finding(part=Part.KEY, what=what, remedy="check with the key in ANTHROPIC_AUTH_TOKEN"))
    return Triple(
        name="Claude Code",
        url=words(env, "ANTHROPIC_BASE_URL") or OWN_URL,
        key=token or key,
        model=model,
        dialect=DialectName.ANTHROPIC,
        appended="/v1",
        bearer=bool(token),
        places={
            Part.URL: "env.ANTHROPIC_BASE_URL",
            Part.KEY: "env.ANTHROPIC_AUTH_TOKEN" if token or not key else "env.ANTHROPIC_API_KEY",
            Part.MODEL: model_name,
        },
        flaws=tuple(flaws),
        notes=tuple(notes),
    )


def _model(document: Document, env: Document) -> tuple[str, str]:
    """The model that is named, an alias resolved; else the cheapest that is. And where that is written."""
    for holder, name, place in ((env, "ANTHROPIC_MODEL", "env.ANTHROPIC_MODEL"), (document, "model", "model")):
        if not (named := words(holder, name).removesuffix("[1m]")):
            continue
        if named not in _ALIASES:
            return named, place
        variable = f"ANTHROPIC_DEFAULT_{named.upper()}_MODEL"
        return words(env, variable), f"env.{variable}"
    cheapest = next((name for name in _CHEAPEST if words(env, name)), "")
    return (words(env, cheapest), f"env.{cheapest}") if cheapest else ("", "env.ANTHROPIC_MODEL")
