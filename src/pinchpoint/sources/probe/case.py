"""Everything that decides which remedy fits: the target, what it was sent, what came back. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from pinchpoint.snapshot import Placement
from pinchpoint.sources.http.base_url import is_loopback
from pinchpoint.sources.probe.excerpt import excerpt
from pinchpoint.sources.probe.judgement import Judgement
from pinchpoint.sources.probe.settings import ProbeTargetSettings

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One judged probe in its surroundings. The key is looked at and goes into no text.

    ``proxy_variables`` are the names of the environment's variables that other programs here would obey.
    """

    target: ProbeTargetSettings
    judgement: Judgement
    key: str = field(default="", repr=False)
    model: str | None = None  # as it was asked
    proxy_variables: tuple[str, ...] = ()

    @property
    def hosted(self) -> bool:
        return self.target.placement is Placement.HOSTED

    @property
    def host(self) -> str:
        return urlsplit(self.target.url).hostname or ""

    @property
    def port(self) -> int:
        parts = urlsplit(self.target.url)
        return parts.port or _PORTS[parts.scheme]

    @property
    def loopback(self) -> bool:
        return is_loopback(self.target.url)

    def judged(self, **changes: Any) -> "Case":
        """This case under another judgement."""
        return replace(self, judgement=replace(self.judgement, **changes))

    @property
    def asked_model(self) -> str:
        """The model's name, for a text."""
        return self.model or self.target.model or ""

    def quoted(self, words: str, limit: int = 80) -> str:
        """Some of the server's words, safe to show."""
        line = excerpt(words, (self.key,))
        return line if len(line) <= limit else line[: limit - 1] + "…"


def proxy_variables(url: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the proxy variables that hold for ``url``, as they are written; ``()`` where no_proxy excepts it.

    A variable in lower case beats its twin in capitals, as curl and Python have it.
    """
    parts = urlsplit(url)
    known = {name.lower(): value for name, value in environment.items()}
    known |= {name: value for name, value in environment.items() if name.islower()}
    if _excepted(parts.hostname or "", known.get("no_proxy", "")):
        return ()
    wanted = (f"{parts.scheme}_proxy", "all_proxy")
    return tuple(sorted(name for name, value in environment.items() if value and name.lower() in wanted))


def _excepted(host: str, no_proxy: str) -> bool:
    """Whether ``no_proxy`` names the host, its domain, or everything. A port in it is not looked at."""
    domains = [domain.strip().partition(":")[0].lstrip(".").lower() for domain in no_proxy.split(",")]
    return any(domain and (domain == "*" or host == domain or host.endswith(f".{domain}")) for domain in domains)
