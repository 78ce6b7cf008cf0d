"""What the tests of the prober share: a prober that is closed, and deadlines."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from pinchpoint.sources.probe import Prober, ProbeTargetSettings, prompt
from pinchpoint.sources.probe.lateness import LoopWatch

QUICK = {"connect": 0.3, "first_token": 0.3, "idle": 0.15, "overall": 0.7}  # where a deadline has to pass
PATIENT = {"connect": 5, "first_token": 10, "idle": 5, "overall": 20}  # where none may, on a busy machine

UNWATCHED = LoopWatch(clock_ns=lambda: 0)  # believes every stamp: a busy machine is late, and that is seldom the matter

MakeProber = Callable[..., Prober]


@pytest.fixture
async def prober_of() -> AsyncIterator[MakeProber]:
    """Make probers of a URL; they are closed after the test. Fields of the target as keywords."""
    made: list[Prober] = []

    def make(url: str, nonce: Callable[[], str] = prompt.nonce, watch: LoopWatch = UNWATCHED, **target: Any) -> Prober:
        values = {"name": "t", "url": url, "model": "m", "deadlines": PATIENT} | target
        prober = Prober(ProbeTargetSettings.model_validate(values), clock=lambda: 7.0, nonce=nonce, watch=watch)
        made.append(prober)
        return prober

    yield make
    for prober in made:
        await prober.close()
