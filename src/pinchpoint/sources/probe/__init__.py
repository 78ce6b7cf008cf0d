"""The probe source: a synthetic streaming request to an OpenAI-compatible API, timed and judged.

One ``Prober`` per target; ``probe()`` returns one ``ProbeReading`` and never raises. What it measures and how:
``timing.py``; what can go wrong: ``judgement.py``, ``refusal.py``, ``transport.py``; what to do then: ``remedy.py``.
The APIs it can speak: a file each in ``dialects/``.

Is not: a scheduler, a counter, a load generator. It calls nothing that the operator has not named.
"""

from pinchpoint.sources.probe.prober import Prober
from pinchpoint.sources.probe.settings import DeadlineSettings, ParameterSettings, ProbeSettings, ProbeTargetSettings

__all__ = ["DeadlineSettings", "ParameterSettings", "ProbeSettings", "ProbeTargetSettings", "Prober"]
