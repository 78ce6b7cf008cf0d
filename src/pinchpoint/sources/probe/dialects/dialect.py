"""What a dialect is: where one API is asked, with which words, and what each event of its answer means."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar
from urllib.parse import quote

from pinchpoint.sources.probe import roots
from pinchpoint.sources.probe.dialects.parameters import Parameters
from pinchpoint.sources.probe.event import StreamEvent
from pinchpoint.sources.probe.sse import SseEvent


class DialectName(StrEnum):
    """The APIs that a probe can speak. A word of the configuration."""

    OPENAI_CHAT = "openai_chat"


class Dialect(ABC):
    """One API, in one version. Pure: it builds requests and reads events, and knows no socket and no clock.

    A *root* is what all URLs of the API begin with, ``https://api.openai.com/v1`` say. What is not abstract here is
    as in OpenAI's API, which most others follow.
    """

    name: ClassVar[DialectName]
    path: ClassVar[str]  # of the request, below the root; {model} stands for the model

    def __init__(self, api_version: str | None = None) -> None:
        self._api_version = api_version

    def roots(self, url: str) -> tuple[str, ...]:
        """The roots that the operator's base URL can mean, likeliest first; at least one."""
        return roots.candidates(url)

    def request_url(self, root: str, model: str) -> str:
        """Where to POST the request."""
        return root + self.path.format(model=quote(model, safe=""))

    def models_url(self, root: str) -> str:
        """Where to GET the list of models: free, so it serves as the sign of life too."""
        return f"{root}/models"

    def headers(self, key: str) -> Mapping[str, str]:
        """The headers that carry the key (``""`` for none), and the version where it is a header."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    @abstractmethod
    def body(self, model: str, prompt: str, parameters: Parameters) -> dict[str, object]:
        """One streaming request. The prompt is the only message: a system text would come before its nonce."""

    @abstractmethod
    def interpret(self, event: SseEvent) -> StreamEvent:
        """What one event says. Total: whatever a server sends is an event, at worst a malformed one."""

    @abstractmethod
    def repaired(self, parameters: Parameters, refusal: str) -> Parameters | None:
        """The parameters without what a 400 or 422 names as not accepted; ``None`` when none of ours is to blame.

        ``refusal`` is the error's text, ``param`` and codes included. Every repair can happen once, so retries end.
        """

    def listed_models(self, document: object) -> tuple[str, ...]:
        """The names in a parsed model list, in its order; ``()`` when it is none."""
        models = document.get("data") if isinstance(document, dict) else None
        ids = [model.get("id") for model in models if isinstance(model, dict)] if isinstance(models, list) else []
        return tuple(name for name in ids if isinstance(name, str) and name)
