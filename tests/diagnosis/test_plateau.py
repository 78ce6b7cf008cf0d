"""A limit that nobody told is inferred only where nothing else explains the same number again and again."""

import pytest

from pinchpoint.diagnosis import Thresholds, diagnose
from pinchpoint.diagnosis.plateau import inferred_max_num_seqs
from pinchpoint.snapshot import EngineFacts, EngineReading, ReplicaReading, Snapshot, Window

T = Thresholds()


def scrapes(
    *moments: tuple[float, float, float | None], facts: EngineFacts | None = None, epoch: str = ""
) -> list[EngineReading]:
    """Scrapes of one replica: running, waiting, KV usage."""
    return [
        EngineReading(
            engine="chat",
            at=float(at),
            epoch=epoch,
            facts=facts or EngineFacts(),
            replicas=(ReplicaReading(requests_running=running, requests_waiting=waiting, kv_cache_usage_ratio=kv),),
        )
        for at, (running, waiting, kv) in enumerate(moments)
    ]


FULL = (48.0, 20.0, 0.4)


@pytest.mark.parametrize(
    ("moments", "limit"),
    [
        ([FULL] * 5, 48.0),
        ([(3.0, 0.0, 0.1)] * 50 + [FULL] * 5, 48.0),  # less load says nothing against it
        ([FULL] * 9 + [(47.0, 20.0, 0.4)] * 2, 48.0),  # a slot that is being filled
        ([FULL] * 4, None),  # too few
        ([FULL] * 5 + [(47.0, 20.0, 0.4)] * 5, None),  # it swings
        ([FULL] * 9 + [(60.0, 0.0, 0.4)], None),  # more have run
        ([(48.0, 0.0, 0.4)] * 9, None),  # nobody waits
        ([(48.0, 20.0, 0.95)] * 9, None),  # the cache is full
        ([(48.0, 20.0, None)] * 9, None),  # nobody tells of the cache
        ([(0.0, 20.0, 0.4)] * 9, None),  # stalled
        ([(4.0, 20.0, 0.79)] * 9, 4.0),
        ([(3.0, 20.0, 0.79)] * 9, None),  # a fourth would not fit into the cache
        ([], None),
    ],
)
def test_a_plateau_before_a_queue_with_room_in_the_cache_is_a_limit(
    moments: list[tuple[float, float, float | None]], limit: float | None
) -> None:
    assert inferred_max_num_seqs(scrapes(*moments), T) == limit


def test_one_replicas_limit_is_the_others_too() -> None:
    readings = [
        EngineReading(
            engine="chat",
            at=float(at),
            replicas=(
                ReplicaReading(requests_running=48.0, requests_waiting=5.0, kv_cache_usage_ratio=0.3),
                ReplicaReading(replica="1", requests_running=7.0, requests_waiting=0.0, kv_cache_usage_ratio=0.1),
            ),
        )
        for at in range(6)
    ]
    assert inferred_max_num_seqs(readings, T) == 48


def inferred(readings: list[EngineReading]) -> float | None:
    snapshots = tuple(Snapshot(at=reading.at, engines=(reading,)) for reading in readings)
    return diagnose(Window(300.0, snapshots), "chat", readings[-1].at, T).signals.get("inferred_max_num_seqs")


def test_the_verdict_has_it_as_inferred_and_only_where_nobody_told_it() -> None:
    assert inferred(scrapes(*[FULL] * 60)) == 48
    assert inferred(scrapes(*[FULL] * 60, facts=EngineFacts(max_num_seqs=64))) is None


def test_what_was_before_a_restart_is_another_engines_limit() -> None:
    before, after = scrapes(*[FULL] * 9), scrapes(*[(12.0, 5.0, 0.1)] * 20, epoch="2")[9:]
    assert inferred(before + after) == 12
