"""The board: what is fresh is in the snapshot, what is not is an absence with its reason."""

import pytest

from pinchpoint.config import Settings
from pinchpoint.daemon.board import Board
from pinchpoint.snapshot import (
    Absence,
    EngineReading,
    EngineTarget,
    GpuPod,
    GpuReading,
    HostReading,
    PeerLink,
    Placement,
    ProbeOutcome,
    ProbeReading,
    Reason,
    ReplicaReading,
    SourceReport,
)
from pinchpoint.sources.pods import PodDevice, PodsReading


class TwoGpus:
    gpus_expected = gpus_visible = 2
    links = (PeerLink("0", "1", "NV18"),)

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def readings(self, now: float) -> tuple[tuple[GpuReading, ...], tuple[Absence, ...]]:
        return tuple(GpuReading(gpu=str(n), uuid=f"GPU-{n}", at=now) for n in range(2)), ()

    def report(self, now: float) -> SourceReport:
        return SourceReport(source="gpu", up=True)


@pytest.fixture
def board() -> Board:
    board = Board(Settings(), TwoGpus())
    board.expect_engines([EngineTarget(engine="chat", url="http://h:1")], now=0.0)
    board.expect_probes([("chat", Placement.LOCAL)])
    return board


def scrape(at: float, name: str = "chat") -> EngineReading:
    return EngineReading(engine=name, at=at, replicas=(ReplicaReading(),))


def report(board: Board, source: str, now: float) -> SourceReport:
    return next(report for report in board.snapshot(now, 1000.0)[1] if report.source == source)


def test_an_engine_that_was_never_scraped_is_starting(board: Board) -> None:
    snapshot, _ = board.snapshot(1.0, 0.0)
    absence = snapshot.absence("engine/chat")
    assert absence is not None
    assert absence.reason is Reason.STARTING
    assert snapshot.engines == ()
    assert report(board, "engine/chat", 1.0) == SourceReport(source="engine/chat", up=False)


def test_a_scrape_is_shown_until_it_is_stale(board: Board) -> None:
    limit = Settings().engines.fresh_for_seconds
    board.put_engine("chat", scrape(10.0), 0.02)
    assert board.snapshot(10.0 + limit, 0.0)[0].engines == (scrape(10.0),)
    snapshot, _ = board.snapshot(10.1 + limit, 0.0)
    absence = snapshot.absence("engine/chat")
    assert snapshot.engines == ()
    assert absence is not None
    assert absence.reason is Reason.STALE


def test_a_failed_scrape_replaces_the_reading_and_keeps_the_time_of_the_last_success(board: Board) -> None:
    board.put_engine("chat", scrape(10.0), 0.02)
    board.put_engine("chat", Absence("engine/chat", Reason.TIMEOUT, "no answer", 15.0), 4.0)
    assert board.snapshot(16.0, 0.0)[0].engines == ()
    assert report(board, "engine/chat", 16.0) == SourceReport(
        source="engine/chat", up=False, duration_seconds=4.0, last_success_timestamp_seconds=1010.0
    )


def test_an_absence_counts_from_the_first_failure_whatever_its_reasons(board: Board) -> None:
    def absent(at: float, reason: Reason) -> tuple[float, Reason, str]:
        board.put_engine("chat", Absence("engine/chat", reason, f"attempt at {at}", at), 0.1)
        seen = board.snapshot(at + 1.0, 0.0)[0].absence("engine/chat")
        assert seen is not None
        return seen.at, seen.reason, seen.detail

    assert absent(5.0, Reason.TIMEOUT) == (0.0, Reason.TIMEOUT, "attempt at 5.0"), "it has been starting since 0"
    assert absent(10.0, Reason.DNS) == (0.0, Reason.DNS, "attempt at 10.0")
    board.put_engine("chat", scrape(20.0), 0.02)
    assert absent(25.0, Reason.TIMEOUT)[0] == 25.0
    assert absent(30.0, Reason.TIMEOUT)[0] == 25.0


def test_a_failure_after_a_reading_grew_stale_counts_from_that_reading(board: Board) -> None:
    board.put_engine("chat", scrape(10.0), 0.02)
    late = 11.0 + Settings().engines.fresh_for_seconds
    board.put_engine("chat", Absence("engine/chat", Reason.TIMEOUT, "no answer", late), 4.0)
    absence = board.snapshot(late, 0.0)[0].absence("engine/chat")
    assert absence is not None
    assert absence.at == 10.0


def test_an_engine_that_is_no_longer_expected_takes_its_readings_with_it(board: Board) -> None:
    board.put_engine("chat", scrape(10.0), 0.02)
    board.expect_engines([EngineTarget(engine="rag", url="http://h:2")], now=11.0)
    board.put_engine("chat", scrape(11.0), 0.02)  # its last scrape was under way
    snapshot, reports = board.snapshot(12.0, 0.0)
    assert snapshot.engine_names() == ("rag",)
    assert "engine/chat" not in {report.source for report in reports}


def test_totals_of_a_probe_start_before_its_first_run_and_go_on_over_a_reload(board: Board) -> None:
    assert board.snapshot(0.0, 0.0)[0].probe_totals[0].requests_total == 0
    reading = ProbeReading(target="chat", placement=Placement.LOCAL, at=5.0, outcome=ProbeOutcome.STALLED)
    board.put_probe(reading, 3.0)
    board.expect_probes([("chat", Placement.LOCAL), ("other", Placement.HOSTED)])
    snapshot, _ = board.snapshot(6.0, 0.0)
    assert [totals.requests_total for totals in snapshot.probe_totals] == [1, 0]
    assert snapshot.probes == (reading,)
    assert report(board, "probe/chat", 6.0).up is False
    board.expect_probes([])
    assert board.snapshot(7.0, 0.0)[0].probe_totals == ()
    assert board.snapshot(7.0, 0.0)[0].probes == ()


def test_a_probe_target_that_moves_to_a_hosted_api_begins_anew(board: Board) -> None:
    board.put_probe(ProbeReading(target="chat", placement=Placement.LOCAL, at=1.0, outcome=ProbeOutcome.OK), 0.1)
    board.expect_probes([("chat", Placement.HOSTED)])
    snapshot, _ = board.snapshot(2.0, 0.0)
    assert snapshot.probes == ()
    assert [(t.placement, t.requests_total) for t in snapshot.probe_totals] == [(Placement.HOSTED, 0)]


def test_a_snapshot_compares_the_last_probes_of_local_and_hosted_targets_and_forgets_those_that_are_gone(
    board: Board,
) -> None:
    targets = [("chat", Placement.LOCAL), ("api", Placement.HOSTED)]
    board.expect_probes(targets)
    for at in range(9):
        for (name, placement), ttft in zip(targets, (9.0 if at < 4 else 0.6, 0.2), strict=True):
            probe = ProbeReading(
                target=name, placement=placement, at=at, outcome=ProbeOutcome.OK, ttft_seconds=ttft, engine="chat"
            )
            board.put_probe(probe, 1.0)
    (comparison,) = board.snapshot(10.0, 0.0)[0].comparisons
    assert (comparison.target, comparison.hosted, comparison.local.probes) == ("chat", ("api",), 5)
    assert comparison.ratios["ttft"] == pytest.approx(3.0)
    assert comparison.engine == "chat"
    board.expect_probes(targets[:1])
    assert board.snapshot(11.0, 0.0)[0].comparisons == ()


def test_an_old_host_reading_is_gone(board: Board) -> None:
    board.put_host(HostReading(at=10.0, cpu_count=4), 0.001)
    assert board.snapshot(20.0, 0.0)[0].host is not None
    assert board.snapshot(10.0 + 3 * Settings().host.interval_seconds + 0.1, 0.0)[0].host is None


def test_gpus_come_from_their_source_each_time(board: Board) -> None:
    assert [gpu.at for gpu in board.snapshot(42.0, 0.0)[0].gpus] == [42.0, 42.0]


def test_a_success_is_stamped_with_its_end(board: Board) -> None:
    probe = ProbeReading(target="chat", placement=Placement.LOCAL, at=5.0, outcome=ProbeOutcome.OK)  # when it began
    board.put_probe(probe, 3.0)
    board.put_host(HostReading(at=7.0), 0.5)
    assert report(board, "probe/chat", 9.0).last_success_timestamp_seconds == 1008.0
    assert report(board, "host", 9.0).last_success_timestamp_seconds == 1007.5


def test_how_gpus_are_connected_comes_from_their_source(board: Board) -> None:
    assert board.snapshot(1.0, 0.0)[0].links == (PeerLink("0", "1", "NV18"),)


POD = GpuPod(uuid="GPU-1", namespace="serving", pod="chat", container="vllm")
FRESH = Settings().pods.fresh_for_seconds


def kubelet(at: float) -> PodsReading:
    return PodsReading(at=at, devices=(PodDevice("GPU-1", "serving", "chat", "vllm"),))


def no_kubelet(at: float) -> Absence:
    return Absence("pods", Reason.TIMEOUT, "it did not answer", at)


def test_without_a_kubelet_nothing_is_said_of_pods(board: Board) -> None:
    board.put_pods(None)
    snapshot, reports = board.snapshot(1.0, 0.0)
    assert (snapshot.pods, snapshot.absence("pods")) == ((), None)
    assert "pods" not in {report.source for report in reports}


def test_a_kubelet_that_fails_is_down_at_once_and_its_last_answer_goes_when_it_is_old(board: Board) -> None:
    board.put_pods(kubelet(10.0), 0.5)
    assert board.snapshot(11.0, 0.0)[0].pods == (POD,)
    assert report(board, "pods", 11.0).up
    board.put_pods(no_kubelet(40.0), 5.0)
    snapshot, _ = board.snapshot(10.0 + FRESH, 0.0)
    assert (snapshot.pods, snapshot.absence("pods")) == ((POD,), None)
    assert report(board, "pods", 45.0) == SourceReport(
        source="pods", up=False, duration_seconds=5.0, last_success_timestamp_seconds=1010.5
    )
    snapshot, _ = board.snapshot(10.1 + FRESH, 0.0)
    assert (snapshot.pods, snapshot.absence("pods")) == ((), no_kubelet(40.0))
    assert len(snapshot.gpus) == 2


def test_a_kubelet_that_goes_takes_its_pods_with_it(board: Board) -> None:
    board.put_pods(kubelet(10.0))
    board.put_pods(None)
    snapshot, reports = board.snapshot(11.0, 0.0)
    assert snapshot.pods == ()
    assert "pods" not in {report.source for report in reports}


def test_a_pods_gpu_by_index_is_found_among_the_gpus_of_that_tick(board: Board) -> None:
    board.put_pods(PodsReading(at=10.0, devices=(PodDevice("1", "serving", "chat", "vllm"),)))
    assert board.snapshot(11.0, 0.0)[0].pods == (POD,)
