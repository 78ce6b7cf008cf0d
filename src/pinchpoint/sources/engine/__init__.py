"""OBSERVE: an inference engine, by its ``/metrics``.

``EngineScraper`` asks one endpoint; ``vllm.VOCABULARY`` is the one place that knows upstream names. Reads vLLM, 0.3.3
and up. Is not: an aggregator of replicas, a rate of counters, or a judge; those are the diagnosis'.
"""

from pinchpoint.sources.engine.epoch import EpochTracker
from pinchpoint.sources.engine.reading import reading_from_body
from pinchpoint.sources.engine.scrape import EngineScraper
from pinchpoint.sources.engine.settings import EngineSettings, EngineSourceSettings, SloSettings

__all__ = [
    "EngineScraper",
    "EngineSettings",
    "EngineSourceSettings",
    "EpochTracker",
    "SloSettings",
    "reading_from_body",
]
