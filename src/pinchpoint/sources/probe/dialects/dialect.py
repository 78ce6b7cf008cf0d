"""What a dialect is: where one API is asked, with which words, and what each event of its answer means."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar
from urllib.parse import quote

from pinchpoint.sources.probe import roots
from pinchpoint.sources.probe.dialects.decoding import names_in
from pinchpoint.sources.probe.dialects.parameters import Parameters, repaired
from pinchpoint.sources.probe.event import StreamEvent
from pinchpoint.sources.probe.sse import SseEvent


class DialectName(StrEnum):
    """The APIs that a probe can speak. A word of the configuration."""

    OPENAI_CHAT = "openai_chat"
    OPENAI_COMPLETIONS = "openai_completions"
    OPENAI_RESPONSES = "openai_responses"
    AZURE_OPENAI = "azure_openai"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"


class Dialect(ABC):
    """One API, in one version. Pure: it builds requests and reads events, and knows no socket and no clock.

    A *root* is what all URLs of the API begin with, ``https://api.openai.com/v1`` say. What is not abstract here is
    as in OpenAI's API, which most others follow.
    """

    name: ClassVar[DialectName]
    path: ClassVar[str]  # of the request, below the root; {model} stands for the model
    optional: ClassVar[Mapping[str, tuple[str, ...]]]  # what can be left out, by the words of a refusal that names it
    token_fields: ClassVar[tuple[str, ...]]  # the names of the limit of tokens, the usual one first

    versioned: ClassVar[bool] = False  # whether api_version means anything

    def __init__(self, api_version: str | None = None) -> None:
        self._api_version = api_version

    def roots(self, url: str) -> tuple[str, ...]:
        """The roots that the operator's base URL can mean, likeliest first; at least one."""
        return roots.candidates(url)

    def request_url(self, root: str, model: str) -> str:
        """Where to POST the request."""
        return root + self.path.format(model=self.quoted(model))

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

    def repaired(self, parameters: Parameters, refusal: str) -> Parameters | None:
        """The parameters without what a refusal (400, 422) names as not accepted; ``None`` when it names none."""
        return repaired(parameters, refusal, self.optional, self.token_fields)

    @staticmethod
    def quoted(part: str) -> str:
        """A part of a path or a query, so that it stays one part: models are called things like org/name."""
        return quote(part, safe="")

    def listed_models(self, document: object) -> tuple[str, ...] | None:
        """The names in a parsed model list, in its order; ``None`` when it is no such list."""
        return names_in(document, "data", "id")
