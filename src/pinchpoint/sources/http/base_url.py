"""A URL as an operator writes it: http or https, a host, and nothing that must not end up in a log."""

from ipaddress import ip_address
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator


def http_url(url: str, example: str = "http://127.0.0.1:8000") -> SplitResult:
    """The parts of a URL. Raises ``ValueError``, "what is wrong; what to do"."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises where the port is no number
    except ValueError:  # its text could hold a password
        raise ValueError(f"is no URL with a valid host and port; write it like {example}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"is no http:// or https:// URL with a host; write it like {example}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("holds credentials, which would end up in logs; give the token by its own setting")
    return parts


def is_loopback(url: str) -> bool:
    """Whether the host is this very one, by its name or address alone: nothing is resolved."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _checked(url: str) -> str:
    parts = http_url(url)
    if parts.query or parts.fragment:
        raise ValueError("has a query or a fragment; give the base URL alone")
    return url.rstrip("/")


BaseUrl = Annotated[str, AfterValidator(_checked)]
