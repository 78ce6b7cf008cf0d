"""OBSERVE: which engines exist that nobody has named: vLLM servers that listen on this host's loopback.

Is not the static list (that is the engine room's settings), and reads no metric: it hands ``EngineTarget`` values on.
"""

from pinchpoint.sources.discovery.loopback import Listener, find_engines
from pinchpoint.sources.discovery.settings import DiscoverySettings

__all__ = ["DiscoverySettings", "Listener", "find_engines"]
