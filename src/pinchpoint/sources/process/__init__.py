"""OBSERVE: an engine's process on this host: who listens on its port, its command line, its log, its process tree.

What ``/metrics`` does not say (``max_num_seqs``, tensor parallelism, which GPUs) stands there. Opens no connection, and
keeps nothing of a command line but the facts that it looks for.
"""

from pinchpoint.sources.process.finder import Looked, ProcessFinder
from pinchpoint.sources.process.settings import ProcessSettings

__all__ = ["Looked", "ProcessFinder", "ProcessSettings"]
