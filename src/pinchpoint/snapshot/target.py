"""Where an engine answers, and what its operator said of it: what discovery hands to the engine source."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pinchpoint.snapshot.engine import EngineFacts, Slo


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAccess:
    """How to be let in: at most one of bearer and basic. Secrets never print. Paths are read when used, not before."""

    bearer_token: str = field(default="", repr=False)
    bearer_token_file: str = ""
    basic_username: str = ""
    basic_password: str = field(default="", repr=False)
    basic_password_file: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca_file: str = ""  # instead of the system's authorities
    certificate_file: str = ""  # ours, for mutual TLS, with key_file
    key_file: str = ""
    server_name: str = ""  # to expect in the certificate, where it is not the URL's host
    verify: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTarget:
    """One engine endpoint to watch.

    ``url`` is the base URL without a trailing slash (``http://127.0.0.1:8000``). ``facts.kind`` is empty where the
    exposition shall tell. ``found_by`` names what found it (``file/fleet``), and is empty for the configuration.
    ``labels`` are the finder's, for people; by ``pod`` and ``namespace`` the kubelet says which GPUs are the engine's.
    ``log_file`` and ``log_unit`` (of systemd) are where its start-up log is, if the operator says so.
    ``side_effects``: it is scraped even where that does more than to read (llama.cpp's router, a server that sleeps).
    """

    engine: str
    url: str
    metrics_path: str = "/metrics"
    facts: EngineFacts = field(default_factory=EngineFacts)
    slo: Slo = field(default_factory=Slo)
    gpus: tuple[str, ...] = ()
    access: HttpAccess = field(default_factory=HttpAccess)
    timeout_seconds: float | None = None  # of one scrape; None: as all engines
    side_effects: bool = False
    found_by: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    log_file: str = ""
    log_unit: str = ""
