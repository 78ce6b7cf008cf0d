"""Which finders the settings ask for, and how each is opened. A new way to find engines is a line here."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pydantic import BaseModel

from pinchpoint.sources.discovery.file import FileFinder
from pinchpoint.sources.discovery.finder import Finder, Watcher
from pinchpoint.sources.discovery.ground import Ground
from pinchpoint.sources.discovery.http import HttpFinder
from pinchpoint.sources.discovery.kubernetes import KubernetesWatcher
from pinchpoint.sources.discovery.settings import DiscoverySettings


@dataclass(frozen=True, slots=True)
class Opening:
    """A finder that is wanted. One that is open already stays, unless its ``settings`` differ."""

    settings: BaseModel
    open: Callable[[], Finder | Watcher]


def openings(settings: DiscoverySettings, ground: Ground) -> dict[str, Opening]:
    """By the finders' names, the most believed first. The look at this host's own ports is not among them."""
    files = {f"file/{each.name}": Opening(each, partial(FileFinder, each, ground)) for each in settings.files}
    servers = {f"http/{each.name}": Opening(each, partial(HttpFinder, each, ground)) for each in settings.http}
    pods = {
        KubernetesWatcher.name: Opening(settings.kubernetes, partial(KubernetesWatcher, settings.kubernetes, ground))
    }
    return {**files, **servers, **(pods if settings.kubernetes.enabled else {})}
