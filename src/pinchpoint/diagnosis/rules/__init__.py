"""One file per class: what it claims, what decides it, what contradicts it, what to do.

Is not: the order of evaluation beyond these tuples (that is ``decide``), or a measurement (that is ``signals``).
An engine that exposes nothing has its classes in ``probed``.
To add a class: one file with one function, one name in a tuple here, its cases in the tests.
"""

from pinchpoint.diagnosis.judgement import Rule
from pinchpoint.diagnosis.rules.compute import compute
from pinchpoint.diagnosis.rules.hardware import hardware
from pinchpoint.diagnosis.rules.healthy import healthy
from pinchpoint.diagnosis.rules.host_cpu import host_cpu
from pinchpoint.diagnosis.rules.idle import idle
from pinchpoint.diagnosis.rules.imbalance import imbalance
from pinchpoint.diagnosis.rules.interconnect import interconnect
from pinchpoint.diagnosis.rules.kv_capacity import kv_capacity
from pinchpoint.diagnosis.rules.memory_bandwidth import memory_bandwidth
from pinchpoint.diagnosis.rules.memory_growth import memory_growth
from pinchpoint.diagnosis.rules.network import network
from pinchpoint.diagnosis.rules.no_data import no_data
from pinchpoint.diagnosis.rules.probed import never_rests, on_time, one_at_a_time, quiet
from pinchpoint.diagnosis.rules.scheduler import scheduler
from pinchpoint.diagnosis.rules.sleeping import sleeping
from pinchpoint.diagnosis.rules.stalled import stalled
from pinchpoint.diagnosis.rules.unknown import unknown

# What one scrape, or none, can tell. A lost card comes first: it is why the engine behind it can't be read.
AT_ONCE: tuple[Rule, ...] = (hardware, no_data, sleeping)
# What takes a few scrapes: gates in this order, then classes by score.
OVER_TIME: tuple[Rule, ...] = (
    idle,
    stalled,
    memory_growth,
    imbalance,
    healthy,
    network,
    kv_capacity,
    scheduler,
    compute,
    memory_bandwidth,
    host_cpu,
    interconnect,
)
# The same for an engine that exposes nothing.
BY_PROBES: tuple[Rule, ...] = (quiet, memory_growth, on_time, one_at_a_time, never_rests, network)

__all__ = ["AT_ONCE", "BY_PROBES", "OVER_TIME", "unknown"]
