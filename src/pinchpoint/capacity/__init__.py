"""PLAN, pure: whether more GPUs would help, and whether a change did.

Is not: a diagnosis (one floor down), a report (outputs) or a query of history (a source).
"""

from pinchpoint.capacity.comparison import Change, Comparison, compare
from pinchpoint.capacity.measured_run import MeasuredRun, measured_run
from pinchpoint.capacity.scaling import Scaling, judge_scaling

__all__ = ["Change", "Comparison", "MeasuredRun", "Scaling", "compare", "judge_scaling", "measured_run"]
