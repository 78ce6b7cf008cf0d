"""The host's CPU and memory, from the kernel's own files (Linux, cgroup v2).

Is: how busy the CPUs are, how long tasks wait for one; of each engine, how much CPU its processes take, how often its
quota was used up, how long its tasks wait.
Is not: a process list; whose processes are an engine's is told.
"""

from pinchpoint.sources.host.settings import HostSettings
from pinchpoint.sources.host.source import HostSource

__all__ = ["HostSettings", "HostSource"]
