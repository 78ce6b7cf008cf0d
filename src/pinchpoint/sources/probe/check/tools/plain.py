"""Any other file that names the three in plain words, as guides to many tools show them."""

from pinchpoint.sources.probe.check.tools.document import Document, name_of, words
from pinchpoint.sources.probe.check.triple import Part, Triple

_URLS = ("base_url", "baseUrl", "baseURL", "apiBase", "api_base", "apiBaseUrl", "endpoint", "url", "OPENAI_BASE_URL")
_KEYS = ("api_key", "apiKey", "key", "token", "OPENAI_API_KEY")
_MODELS = ("model", "modelId", "model_id", "modelName", "OPENAI_MODEL")


def is_plain(document: Document) -> bool:
    return bool(words(document, *_URLS))


def triple(document: Document) -> Triple:
    return Triple(
        name="tool",
        url=words(document, *_URLS),
        key=words(document, *_KEYS),
        model=words(document, *_MODELS),
        appended="",
        places={
            part: name_of(document, *names)
            for part, names in ((Part.URL, _URLS), (Part.KEY, _KEYS), (Part.MODEL, _MODELS))
        },
    )
