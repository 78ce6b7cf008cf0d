"""Symptoms from the field, of /metrics as a page that fails while the engine serves, or that tells no release."""

from pathlib import Path
from time import monotonic

import pytest

from pinchpoint.snapshot import Absence, EngineReading, Reason
from tests.sources.engine.servers import QUICK, http, says, scraper, stuck

BODY = Path("tests/data/engine-metrics/vllm-0.10.0-v1.prom").read_bytes()


# https://github.com/vllm-project/vllm/issues/49983
@pytest.mark.parametrize(("health", "serves"), [(says(b""), True), (says(b"", 503), False), (None, False)])
async def test_metrics_that_fail_while_requests_are_served_are_no_dead_engine(health, serves):
    pages = {"metrics": says(b"Internal Server Error", 500)} | ({"health": health} if health else {})
    async with http(**pages) as url, scraper(url) as one:
        absence = await one.scrape(monotonic)
    assert isinstance(absence, Absence)
    assert absence.reason is Reason.HTTP_STATUS
    assert ("the engine serves and only its metrics are broken" in absence.detail) is serves


async def test_a_health_that_hangs_beside_broken_metrics_stays_within_the_scrapes_deadline():
    async with http(metrics=says(b"", 500), health=stuck) as url, scraper(url, QUICK) as one:
        began = monotonic()
        assert isinstance(await one.scrape(monotonic), Absence)
    assert monotonic() - began < 0.3 + 0.5


async def test_an_old_releases_quirk_is_told_once_its_version_is_known():
    pages = {"metrics": says(BODY), "health": says(b""), "version": says(b'{"version": "0.10.0"}')}
    async with http(**pages) as url, scraper(url) as one:
        reading = await one.scrape(monotonic)
    assert isinstance(reading, EngineReading)
    assert reading.facts.version == "0.10.0"
    assert reading.warnings == ("up to vLLM 0.11.0 prefix cache hits include what was preempted and computed again",)
