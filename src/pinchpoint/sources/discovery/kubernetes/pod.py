"""A pod as far as discovery needs it: a few fields, cut at once out of an object that may be a megabyte."""

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

PREFIXES = ("pinchpoint.io/", "prometheus.io/")
MAX_ANNOTATIONS = 64
MAX_VALUE_CHARACTERS = 4096
MAX_PORTS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod. ``annotations`` are those with a prefix of ours or Prometheus's; ``ports`` are TCP, name and number.

    ``ip`` is the pod's primary address, empty while it has none that is valid.
    """

    namespace: str
    name: str
    node: str = ""
    ip: str = ""
    created: str = ""  # RFC 3339 in UTC, so it sorts by time
    running: bool = False
    ready: bool = False
    annotations: Mapping[str, str]
    ports: tuple[tuple[str, int], ...] = ()

    @property
    def key(self) -> str:
        """Names the pod, unique in the cluster."""
        return f"{self.namespace}/{self.name}"


def pod_in(item: object) -> Pod | None:
    """The pod of an API object, ``None`` when it has no name; whatever else is odd is left out."""
    metadata, spec, status = (_mapping(item, part) for part in ("metadata", "spec", "status"))
    namespace, name = _text(metadata, "namespace"), _text(metadata, "name")
    if not namespace or not name:
        return None
    return Pod(
        namespace=namespace,
        name=name,
        node=_text(spec, "nodeName"),
        ip=_address(_text(status, "podIP")),
        created=_text(metadata, "creationTimestamp"),
        running=_text(status, "phase") == "Running",
        ready=any(_text(c, "type") == "Ready" and _text(c, "status") == "True" for c in _list(status, "conditions")),
        annotations=dict(_annotations(_mapping(metadata, "annotations"))),
        ports=tuple(_ports(spec))[:MAX_PORTS],
    )


def version_in(item: object) -> str:
    """The resource version of an object or a list; empty when it has none."""
    return _text(_mapping(item, "metadata"), "resourceVersion")


def _annotations(all_of_them: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    ours = sorted(key for key in all_of_them if key.startswith(PREFIXES))
    for key in ours[:MAX_ANNOTATIONS]:
        value = all_of_them[key]
        if isinstance(value, str) and len(value) <= MAX_VALUE_CHARACTERS:
            yield key, value.strip()


def _ports(spec: Mapping[str, object]) -> Iterator[tuple[str, int]]:
    # A sidecar is an init container, and one that serves /metrics is nothing odd.
    for container in (*_list(spec, "containers"), *_list(spec, "initContainers")):
        for port in _list(container, "ports"):
            number = port.get("containerPort") if isinstance(port, dict) else None
            if type(number) is int and 0 < number < 65536 and _text(port, "protocol") in ("", "TCP"):
                yield _text(port, "name"), number


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return ""


def _mapping(item: object, key: str) -> Mapping[str, object]:
    value = item.get(key) if isinstance(item, dict) else None
    return value if isinstance(value, dict) else {}


def _list(item: object, key: str) -> list[object]:
    value = item.get(key) if isinstance(item, dict) else None
    return value if isinstance(value, list) else []


def _text(item: object, key: str) -> str:
    value = item.get(key) if isinstance(item, dict) else None
    return value if isinstance(value, str) and len(value) <= MAX_VALUE_CHARACTERS else ""
