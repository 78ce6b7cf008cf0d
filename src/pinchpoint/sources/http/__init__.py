"""How whoever speaks HTTP asks: bounded GETs with their credentials and TLS, and failures of the closed set; and POSTs.

Is below the sources, which all may use it and which it does not know. Reads no answer: that is whoever asked's.
"""

from pinchpoint.sources.http.access import AccessSettings, BasicAuthSettings, TlsSettings
from pinchpoint.sources.http.answer import Answer, json_object
from pinchpoint.sources.http.client import EXPOSITION, JSON, HttpClient
from pinchpoint.sources.http.failure import SourceError

__all__ = [
    "EXPOSITION",
    "JSON",
    "AccessSettings",
    "Answer",
    "BasicAuthSettings",
    "HttpClient",
    "SourceError",
    "TlsSettings",
    "json_object",
]
