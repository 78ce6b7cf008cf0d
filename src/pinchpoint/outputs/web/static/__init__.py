"""The style sheet, the script and the icon: read once, addressed by content so that browsers may keep them."""

import hashlib
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Asset:
    """One file of the page. ``url`` is relative to the page and changes with the content."""

    path: str
    url: str
    content_type: str
    body: bytes


def _asset(path: str, content_type: str) -> Asset:
    body = files(__name__).joinpath(path.rpartition("/")[2]).read_bytes()
    return Asset(path, f"{path}?v={hashlib.sha256(body).hexdigest()[:12]}", content_type, body)


STYLE = _asset("static/page.css", "text/css; charset=utf-8")
SCRIPT = _asset("static/page.js", "text/javascript; charset=utf-8")
ICON = _asset("favicon.svg", "image/svg+xml")
