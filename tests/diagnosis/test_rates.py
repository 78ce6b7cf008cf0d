"""A rate spans no reset, and the replicas are summed."""

from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.diagnosis.rates import histories, known, last_rise, observed, rate
from pinchpoint.snapshot import EngineReading, Histogram, ReplicaReading


def scrapes(**replicas: list[float | None]) -> list[EngineReading]:
    steps = len(next(iter(replicas.values())))
    return [
        EngineReading(
            engine="chat",
            at=float(step),
            replicas=tuple(
                ReplicaReading(
                    replica=name,
                    generation_tokens_total=values[step],
                    ttft_seconds=None
                    if (count := values[step]) is None
                    else Histogram((1.0, float("inf")), (count, count), count / 2, count),
                )
                for name, values in replicas.items()
            ),
        )
        for step in range(steps)
    ]


def tokens(replica: ReplicaReading) -> float | None:
    return replica.generation_tokens_total


def test_a_fall_breaks_only_its_own_interval() -> None:
    every = histories(scrapes(a=[100.0, 110.0, 0.0, 10.0, 20.0]))

    assert rate(every, tokens) == 10.0
    histogram = observed(every, lambda replica: replica.ttft_seconds)
    assert histogram is not None
    assert histogram.count == 30.0


def test_replicas_are_summed_even_when_one_was_restarted() -> None:
    assert rate(histories(scrapes(a=[0.0, 10.0, 20.0], b=[500.0, 0.0, 5.0])), tokens) == 15.0


def test_a_missing_value_is_skipped_not_read_as_zero() -> None:
    assert rate(histories(scrapes(a=[0.0, None, 20.0])), tokens) == 10.0
    assert rate(histories(scrapes(a=[None, None])), tokens) is None
    assert rate(histories(scrapes(a=[7.0])), tokens) is None


def test_the_last_rise_is_remembered() -> None:
    assert last_rise(histories(scrapes(a=[0.0, 1.0, 1.0, 1.0], b=[5.0, 5.0, 6.0, 6.0])), tokens) == 2.0
    assert last_rise(histories(scrapes(a=[4.0, 4.0])), tokens) is None


def test_a_nan_is_no_measurement() -> None:
    assert known(float("nan")) is None
    assert known(float("inf")) is None
    assert known(0.0) == 0.0


@given(st.lists(st.none() | st.floats(0, 1e9), min_size=2, max_size=20))
def test_a_rate_is_never_negative(values: list[float | None]) -> None:
    assert (rate(histories(scrapes(a=values)), tokens) or 0.0) >= 0.0
