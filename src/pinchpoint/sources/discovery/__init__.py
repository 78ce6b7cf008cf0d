"""OBSERVE: which engines exist that nobody has named in the configuration.

A finder hands on whole lists (``Finding``): asked again and again (``Finder``) or telling by itself (``Watcher``).
``Found`` keeps the last good list of each and merges them with the configuration's. Is not the static list (that is
the engine room's settings), and reads no metric: it hands ``EngineTarget`` values on.
"""

from pinchpoint.sources.discovery.described import Build, described
from pinchpoint.sources.discovery.finder import Finder, Finding, Say, Watcher
from pinchpoint.sources.discovery.found import Found
from pinchpoint.sources.discovery.ground import Ground
from pinchpoint.sources.discovery.loopback import Listener, LoopbackFinder, Question, find_engines
from pinchpoint.sources.discovery.openings import Opening, openings
from pinchpoint.sources.discovery.settings import DiscoverySettings
from pinchpoint.sources.discovery.shard import Shard

__all__ = [
    "Build",
    "DiscoverySettings",
    "Finder",
    "Finding",
    "Found",
    "Ground",
    "Listener",
    "LoopbackFinder",
    "Opening",
    "Question",
    "Say",
    "Shard",
    "Watcher",
    "described",
    "find_engines",
    "openings",
]
