"""OBSERVE: an inference engine, by its ``/metrics``.

``EngineScraper`` asks one endpoint; ``kinds`` is the one place that knows upstream names, a file for each kind of
engine. Is not: an aggregator of replicas, a rate of counters, or a judge; those are the diagnosis'.
"""

from pinchpoint.sources.engine.epoch import EpochTracker
from pinchpoint.sources.engine.fingerprint import kind_in
from pinchpoint.sources.engine.kinds import KINDS, PATHS, llamacpp
from pinchpoint.sources.engine.quirks import with_quirks
from pinchpoint.sources.engine.reading import as_kind, reading_from_body
from pinchpoint.sources.engine.recall import Recall
from pinchpoint.sources.engine.scrape import EngineScraper
from pinchpoint.sources.engine.settings import EngineSettings, EngineSourceSettings, SloSettings

__all__ = [
    "KINDS",
    "PATHS",
    "EngineScraper",
    "EngineSettings",
    "EngineSourceSettings",
    "EpochTracker",
    "Recall",
    "SloSettings",
    "as_kind",
    "kind_in",
    "llamacpp",
    "reading_from_body",
    "with_quirks",
]
