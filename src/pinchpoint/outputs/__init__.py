"""TELL: I/O out, all from one ``Scene``. Siblings that don't know each other; ``catalog`` alone names metrics.

Is not: a place that measures or decides.
"""
