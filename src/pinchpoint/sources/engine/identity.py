"""What a server says of itself beside its metrics: its version (/version) and its model's length (/v1/models)."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from pinchpoint.snapshot import EngineFacts
from pinchpoint.sources.http import Answer, json_object

REFRESH_SECONDS = 600.0  # a restart is asked about at once; this is for one that went unseen
MAX_VERSION_BYTES = 4096
MAX_MODELS_BYTES = 262_144  # every LoRA adapter is a model
MAX_TOKENS = 10**12
MAX_TEXT = 256
_NOTHING = EngineFacts()

Ask = Callable[[str, int], Awaitable[Answer | None]]  # a path, and how many bytes it may say


class Identity:
    """Remembers what one server said. A refusal (/v1/models may need the API key) and silence say nothing."""

    def __init__(self) -> None:
        self._asked_at: float | None = None
        self._version: str | None = None
        self._models = _NOTHING

    def forget(self) -> None:
        """It has restarted, and may be another."""
        self._asked_at, self._version, self._models = None, None, _NOTHING

    async def refresh(self, ask: Ask, now: float) -> None:
        """Asks at the start, after a restart and every ten minutes."""
        if self._asked_at is not None and now - self._asked_at <= REFRESH_SECONDS:
            return
        self._asked_at = now
        if (version := await ask("/version", MAX_VERSION_BYTES)) and version.status == 200:
            self._version = version_in(version.body)
        if (models := await ask("/v1/models", MAX_MODELS_BYTES)) and models.status == 200:
            self._models = facts_in(models.body)

    def onto(self, facts: EngineFacts) -> EngineFacts:
        """``facts`` with the server's own version, and with what its models say where they say nothing."""
        return replace(facts, version=self._version or facts.version).completed(self._models, "models")


def version_in(body: bytes) -> str | None:
    return _text(json_object(body).get("version"), 64)


def facts_in(body: bytes) -> EngineFacts:
    """Of the model that is served, not of an adapter on it (which has a parent, and no length of its own).

    Of several models nothing, unless they are one by several names (with one root) or have one length.
    """
    models = json_object(body).get("data")
    own = [m for m in models if isinstance(m, dict) and not m.get("parent")] if isinstance(models, list) else []
    if not own:
        return _NOTHING
    roots, lengths = ({repr(model.get(key)) for model in own} for key in ("root", "max_model_len"))
    length = own[0].get("max_model_len")
    known = isinstance(length, int) and not isinstance(length, bool) and 1 <= length <= MAX_TOKENS
    return EngineFacts(
        model=_text(own[0].get("id"), MAX_TEXT) if len(own) == 1 or (len(roots) == 1 and own[0].get("root")) else None,
        max_model_len=length if known and len(lengths) == 1 else None,
    )


def _text(value: object, longest: int) -> str | None:
    return value if isinstance(value, str) and value.isprintable() and 0 < len(value) <= longest else None
