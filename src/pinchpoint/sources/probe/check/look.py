"""What base URL, key and model tell by their looks, before anything is asked. Pure."""

import difflib
import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from pinchpoint.snapshot import Placement
from pinchpoint.sources.http.base_url import BaseUrl, is_loopback
from pinchpoint.sources.probe.case import proxy_variables
from pinchpoint.sources.probe.check.triple import Finding, Part, Triple
from pinchpoint.sources.probe.credential import key_flaw
from pinchpoint.sources.probe.dialects import DialectName
from pinchpoint.sources.probe.presets import PRESETS, preset_at

_BASE_URL: TypeAdapter[str] = TypeAdapter(BaseUrl)
_ENDPOINT = re.compile(r"/((v\d+/)?(chat/completions|completions|responses|messages|models))$")


def unusable(triple: Triple) -> Finding | None:
    """Why nothing can be asked at this URL."""
    if not triple.url:
        return Finding(part=Part.URL, what="no base URL is given", remedy=f"write one into {triple.place(Part.URL)}")
    try:
        _BASE_URL.validate_python(triple.url)
    except ValidationError as error:
        what, _, remedy = error.errors(include_input=False)[0]["msg"].removeprefix("Value error, ").partition("; ")
        if "://" not in triple.url:
            remedy = "begin it with https:// (http:// for a server of your own)"
        return Finding(part=Part.URL, what=f"the base URL {what}", remedy=remedy)
    return None


def notes(triple: Triple, environment: Mapping[str, str]) -> Iterator[Finding]:
    """What looks odd. A look is no proof: it becomes the cause when the API refuses."""
    host = urlsplit(triple.url).hostname or ""
    if found := _ENDPOINT.search(triple.url.rstrip("/")):
        shorter = triple.url.rstrip("/").removesuffix(found[0])
        remedy = f"write {shorter}{'/v1' if triple.appended == '' else ''} into {triple.place(Part.URL)}"
        what = f"the base URL ends with {found[0]}, which is added to it by itself"
        yield Finding(part=Part.URL, what=what, remedy=remedy)
    if triple.key and (flaw := key_flaw(triple.key, host)):
        what, _, remedy = flaw.partition(": ")
        yield Finding(part=Part.KEY, what=what[:1].lower() + what[1:], remedy=remedy.rstrip("."))
    if triple.model != triple.model.strip() or len(triple.model.split()) > 1:
        what = "the model's name holds blanks"
        yield Finding(part=Part.MODEL, what=what, remedy=f"copy it anew into {triple.place(Part.MODEL)}")
    if variables := proxy_variables(triple.url, environment):
        yield _proxied(triple.url, host, " and ".join(variables))


def _proxied(url: str, host: str, names: str) -> Finding:
    if is_loopback(url):
        what = f"{names} is set, and no_proxy does not except {host}: tools send requests to this host to the proxy"
        return Finding(part=Part.NETWORK, what=what, remedy=f"unset it, or set NO_PROXY=localhost,127.0.0.1,{host}")
    what = f"{names} is set: tools that obey it go through that proxy, and this check went directly"
    return Finding(part=Part.NETWORK, what=what, remedy="unset it, or check from a target with that proxy")


def known_url(url: str, dialect: DialectName) -> str | None:
    """The base URL that the provider at this host is known to have; of a host that is nearly one, the provider's."""
    if name := preset_at(url):
        return PRESETS[name].urls.get(dialect)
    return None


def near_url(url: str, dialect: DialectName) -> str | None:
    """For a host that does not resolve: the base URL of the provider whose host is nearly written so."""
    name = (urlsplit(url).hostname or "").rpartition(".")[0]  # the end is what people mix up: .com and .net
    spoken = [preset for preset in PRESETS.values() if dialect in preset.urls and preset.placement is Placement.HOSTED]
    names = {each.rpartition(".")[0]: preset.urls[dialect] for preset in spoken for each in preset.hosts}
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.85)
    return names[close[0]] if close else None


def closest(model: str, listed: tuple[str, ...]) -> str | None:
    """The listed name that is nearest to ``model``: but for case, vendor or a few letters."""
    names = {name.lower().rpartition("/")[2]: name for name in reversed(listed)}
    wanted = model.lower().rpartition("/")[2]
    near = difflib.get_close_matches(wanted, names, n=1, cutoff=0.6)
    return names[near[0]] if near else None
