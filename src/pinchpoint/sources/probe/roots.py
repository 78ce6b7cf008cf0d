"""Which URLs an operator's base URL can mean: some write it with the version, some without. Pure."""

import re

_VERSIONED = re.compile(r"/v\d+[a-z]*\d*$")
_ENDPOINT = re.compile(r"/((chat/)?completions|responses|messages|models)$")


def candidates(url: str) -> tuple[str, ...]:
    """The API roots to try, likeliest first: with ``/v1``, then without. A version other than 1 is kept as it is."""
    root = _ENDPOINT.sub("", url.rstrip("/"))
    if _VERSIONED.search(root):
        return (root, _VERSIONED.sub("", root))
    return (f"{root}/v1", root)
