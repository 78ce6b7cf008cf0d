"""The numbers a verdict depends on: unit, default, why that default; by topic, in one flat set of settings.

How facts weigh against each other, rules say.
"""

from pydantic import ConfigDict

from pinchpoint.diagnosis.thresholds.clients import ClientThresholds
from pinchpoint.diagnosis.thresholds.engine import EngineThresholds
from pinchpoint.diagnosis.thresholds.node import NodeThresholds
from pinchpoint.diagnosis.thresholds.pace import PaceThresholds
from pinchpoint.diagnosis.thresholds.time import TimeThresholds


class Thresholds(NodeThresholds, ClientThresholds, PaceThresholds, EngineThresholds, TimeThresholds):
    """Settings of the diagnosis. The objectives (TTFT, TPOT) are the engine's own ``Slo``, not thresholds.

    Where a pair ``x_begins`` / ``x_certain`` exists, a signal below the first counts nothing, above the second fully,
    and in between in proportion.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
