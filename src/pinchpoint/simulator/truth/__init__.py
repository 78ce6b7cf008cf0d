"""The judge: random worlds, and the truth about each, found by playing it again with one thing made generous.

Knows nothing of the diagnosis that is held against it. Labels come from re-runs only, never from what was intended.
"""

from pinchpoint.simulator.truth.draw import world_of
from pinchpoint.simulator.truth.label import Truth, truth_of
from pinchpoint.simulator.truth.outcome import SECONDS, WARM_UP_SECONDS, Outcome, outcome_of
from pinchpoint.simulator.truth.relax import RESOURCES, relaxed, with_one_more_replica, with_tensor_parallel_doubled

__all__ = [
    "RESOURCES",
    "SECONDS",
    "WARM_UP_SECONDS",
    "Outcome",
    "Truth",
    "outcome_of",
    "relaxed",
    "truth_of",
    "with_one_more_replica",
    "with_tensor_parallel_doubled",
    "world_of",
]
