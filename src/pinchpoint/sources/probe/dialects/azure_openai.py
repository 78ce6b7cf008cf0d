"""Azure OpenAI: the chat dialect at other URLs and with another header.

Two forms are in use. The v1 form takes the deployment as the model; the older one has it in the path, and a dated
version in the query. Sources: Microsoft's Azure OpenAI REST reference and its page on the lifecycle of API versions.
"""

import re
from collections.abc import Mapping

from pinchpoint.sources.probe.dialects.dialect import DialectName
from pinchpoint.sources.probe.dialects.openai_chat import OpenAIChat

DATED_VERSION = "2024-10-21"  # the last dated one that is generally available

_DATED = re.compile(r"^\d{4}-\d{2}-\d{2}")
_ENDPOINT = re.compile(r"/chat/completions$")
_BASE = re.compile(r"/openai(/v1)?$")


class AzureOpenAI(OpenAIChat):
    """``api_version``: a dated one asks for the older form first; unset, the v1 form is tried first."""

    name = DialectName.AZURE_OPENAI
    versioned = True

    def roots(self, url: str) -> tuple[str, ...]:
        root = _ENDPOINT.sub("", url.rstrip("/"))
        if "/deployments/" in root:
            return (root,)
        base = _BASE.sub("", root)
        forms = (f"{base}/openai/v1", f"{base}/openai")
        return forms[::-1] if self._dated else forms

    def request_url(self, root: str, model: str) -> str:
        if not _is_v1(root) and "/deployments/" not in root:
            root = f"{root}/deployments/{self.quoted(model)}"
        return f"{root}{self.path}{self._query(root)}"

    def models_url(self, root: str) -> str:
        return f"{root.partition('/deployments/')[0]}/models{self._query(root)}"

    def headers(self, key: str) -> Mapping[str, str]:
        if key.startswith("eyJ"):  # a token of Entra ID is a JWT, and goes where such tokens go
            return super().headers(key)
        return {"api-key": key} if key else {}

    def listed_models(self, document: object) -> tuple[str, ...] | None:
        """No names: the list is of models, while a request names a deployment."""
        return None if super().listed_models(document) is None else ()

    @property
    def _dated(self) -> bool:
        return self._api_version is not None and _DATED.match(self._api_version) is not None

    def _query(self, root: str) -> str:
        if not _is_v1(root):
            return f"?api-version={self.quoted(self._api_version or DATED_VERSION)}"
        return f"?api-version={self.quoted(self._api_version)}" if self._api_version and not self._dated else ""


def _is_v1(root: str) -> bool:
    return root.endswith("/v1")
