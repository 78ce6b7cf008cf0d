"""What an operator can set about finding engines in Kubernetes."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from pinchpoint.sources.http import AccessSettings
from pinchpoint.sources.http.base_url import BaseUrl

EVERY_NAMESPACE = "*"
OWN_SCRAPE = "pinchpoint.io/scrape"

OBJECT_NAME = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"


class KubernetesSettings(BaseModel):
    """Which pods are engines, and where the API server answers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = Field(
        default=False,
        description="Watch pods by the API server. Default false: it needs a role, deploy/kubernetes/rbac.yaml.",
    )
    node_name: str | None = Field(
        default=None,
        pattern=rf"^({OBJECT_NAME})?$",
        description="Only pods on this node. Default: the environment variable NODE_NAME, which a DaemonSet sets from "
        'spec.nodeName. "" is every node.',
    )
    namespaces: tuple[Annotated[str, Field(pattern=rf"^({OBJECT_NAME}|\*)$")], ...] = Field(
        default=(),
        max_length=10,
        description='Only pods in these namespaces, each watched by itself; ["*"] is all of them, which needs a '
        "ClusterRole. Default: all where node_name is known, else pinchpoint's own.",
    )
    label_selector: str = Field(
        default="",
        pattern=r"^[ -~]{0,1000}$",
        description="Only pods with these labels, as kubectl's -l: app=vllm,tier in (gold,silver). Default: any.",
    )
    annotation: Literal["pinchpoint.io/scrape", "prometheus.io/scrape", "none"] | None = Field(
        default=None,
        description='The annotation that must be "true"; pinchpoint.io/scrape always counts, and "false" in it '
        "excludes a pod. Default: none with a label_selector, else pinchpoint.io/scrape: most pods that carry "
        "Prometheus's are no engines, and each would page as one that is down.",
    )
    port_names: tuple[str, ...] = Field(
        default=("metrics", "http"),
        max_length=20,
        description="Names of the container port to ask, the first that exists, where no annotation says which. "
        "Default: what charts call it. Without any, a pod's only TCP port is asked.",
    )
    engine_access: AccessSettings = Field(
        default=AccessSettings(),
        description="Credentials and TLS for every engine that is found: whoever may annotate a pod may receive them. "
        "Default: none.",
    )
    api_server: BaseUrl | None = Field(
        default=None,
        description="The API server, like https://10.0.0.1:6443, or http://127.0.0.1:8001 of kubectl proxy. Default: "
        "as the pod's environment says.",
    )
    service_account: Path = Field(
        default=Path("/var/run/secrets/kubernetes.io/serviceaccount"),
        description="Folder with token, ca.crt and namespace, read again when they change. Default: where Kubernetes "
        "mounts them.",
    )
    timeout_seconds: float = Field(
        default=10.0,
        gt=0,
        le=120,
        description="Deadline of one answer of the API server, seconds; a watch lives on after it. Default 10: it "
        "answers in milliseconds, and in seconds after a restart.",
    )

    @field_validator("namespaces")
    @classmethod
    def _all_or_some(cls, namespaces: tuple[str, ...]) -> tuple[str, ...]:
        if EVERY_NAMESPACE in namespaces and len(namespaces) > 1:
            raise ValueError('"*" is every namespace already; remove the others, or it')
        return tuple(dict.fromkeys(namespaces))

    @property
    def required_annotation(self) -> str:
        """The annotation without which a pod is no engine; empty: it needs none."""
        if self.annotation is None:
            return "" if self.label_selector else OWN_SCRAPE
        return "" if self.annotation == "none" else self.annotation
