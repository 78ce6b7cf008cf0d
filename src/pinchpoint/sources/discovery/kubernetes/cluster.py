"""Where the API server answers and as whom we ask: what Kubernetes puts into every pod.

https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pinchpoint.snapshot import HttpAccess, Reason
from pinchpoint.sources.http import SourceError
from pinchpoint.sources.http.secret_file import read_secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """An API server, and the folder of the service account that we are (``token``, ``ca.crt``, ``namespace``)."""

    url: str
    account: Path

    def access(self) -> HttpAccess:
        """How a request is let in. Over http without a token: that is ``kubectl proxy``, which has its own."""
        if not self.url.startswith("https:"):
            return HttpAccess()
        return HttpAccess(bearer_token_file=str(self.account / "token"), ca_file=str(self.account / "ca.crt"))

    def namespace(self) -> str:
        """The namespace that we run in; empty when nothing says it. Reads a file: call it in a thread."""
        try:
            name = read_secret(self.account / "namespace")
        except ValueError:
            return ""
        return name if re.fullmatch(r"[a-z0-9-]{1,63}", name) else ""


def cluster_around(api_server: str | None, account: Path, environment: Mapping[str, str]) -> Cluster:
    """``api_server`` where it is given, else the one that the pod's environment names.

    Raises ``SourceError`` outside of a pod.
    """
    if api_server is not None:
        return Cluster(url=api_server, account=account)
    host = environment.get("KUBERNETES_SERVICE_HOST", "").strip("[]")
    port = environment.get("KUBERNETES_SERVICE_PORT_HTTPS") or environment.get("KUBERNETES_SERVICE_PORT") or "443"
    if not host:
        raise SourceError(
            Reason.NOT_CONFIGURED,
            "KUBERNETES_SERVICE_HOST is not set, so this is no pod; set api_server, or enabled: false",
        )
    if not re.fullmatch(r"[0-9A-Za-z.:-]{1,255}", host) or not re.fullmatch(r"[0-9]{1,5}", port):
        raise SourceError(Reason.INVALID, "KUBERNETES_SERVICE_HOST and _PORT are no address; set api_server")
    return Cluster(url=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}", account=account)
