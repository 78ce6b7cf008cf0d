"""Checks a base URL, a key and a model step by step, and says which of the three is wrong and what to write instead.

The three come from a configured target, from a URL, or from the configuration of a coding tool (``tools/``). Is not a
measurement: what it sends is as little as can be. Reads, and writes nothing. No key leaves here.
"""

from pinchpoint.sources.probe.check.asking import UNNAMED
from pinchpoint.sources.probe.check.check import check, check_target
from pinchpoint.sources.probe.check.tools import ToolFileError, triples_in
from pinchpoint.sources.probe.check.triple import Check, Finding, Part, State, Step, Triple

__all__ = [
    "UNNAMED",
    "Check",
    "Finding",
    "Part",
    "State",
    "Step",
    "ToolFileError",
    "Triple",
    "check",
    "check_target",
    "triples_in",
]
