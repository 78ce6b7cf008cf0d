"""How a Prometheus is reached."""

from pydantic import Field, SecretStr

from pinchpoint.snapshot import HttpAccess
from pinchpoint.sources.http import AccessSettings
from pinchpoint.sources.http.base_url import BaseUrl


class PrometheusSettings(AccessSettings):
    """Where it is, and how to be let in."""

    url: BaseUrl = Field(description="Base URL; /api/v1/query_range is put after it.")
    tenant: SecretStr | None = Field(
        default=None, max_length=150, description="Sent as X-Scope-OrgID, which Mimir and Loki ask for. Default: none."
    )
    timeout_seconds: float = Field(
        default=150.0,
        gt=0,
        le=3600,
        description="How long to wait for one answer, seconds. Default 150: longer than Prometheus' own two minutes.",
    )
    max_answer_bytes: int = Field(
        default=64 * 2**20, gt=0, description="Largest answer, bytes. Default 64 MiB: 10,000 points of some 150 series."
    )

    def access(self) -> HttpAccess:
        """The same as a value, the tenant among its headers."""
        settings = self
        if self.tenant is not None:
            settings = self.model_copy(update={"headers": {**self.headers, "X-Scope-OrgID": self.tenant}})
        return super(PrometheusSettings, settings).access()
