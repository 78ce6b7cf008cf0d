"""The host's CPU and memory, from the kernel's own files (Linux, cgroup v2).

Is: how busy the CPUs are, how long tasks wait for one, how often this cgroup's quota was used up.
Is not: a process list; nothing here looks at what other programs do.
"""

from pinchpoint.sources.host.settings import HostSettings
from pinchpoint.sources.host.source import HostSource

__all__ = ["HostSettings", "HostSource"]
