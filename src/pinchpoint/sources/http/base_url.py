"""A base URL as an operator writes it: http or https, a host, and nothing that must not end up in a log."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises where the port is no number
    except ValueError:  # its text could hold a password
        raise ValueError("is no URL with a valid host and port; write it like http://127.0.0.1:8000") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("is no http:// or https:// URL with a host; write it like http://127.0.0.1:8000")
    if parts.username is not None or parts.password is not None:
        raise ValueError("holds credentials, which would end up in logs; give the token by its own setting")
    if parts.query or parts.fragment:
        raise ValueError("has a query or a fragment; give the base URL alone")
    return url.rstrip("/")


BaseUrl = Annotated[str, AfterValidator(_checked)]
