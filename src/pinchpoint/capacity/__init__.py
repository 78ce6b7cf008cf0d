"""PLAN, pure: whether more GPUs would help.

Is not: a diagnosis (one floor down), a report (outputs) or a query of history (a source).
"""

from pinchpoint.capacity.scaling import Scaling, judge_scaling

__all__ = ["Scaling", "judge_scaling"]
