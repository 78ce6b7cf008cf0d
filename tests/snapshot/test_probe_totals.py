"""Probe totals: sums of what happened, and of nothing else."""

from pinchpoint.snapshot import Placement, ProbeOutcome, ProbeReading, ProbeTotals


def reading(outcome: ProbeOutcome = ProbeOutcome.OK, **values: object) -> ProbeReading:
    return ProbeReading(target="chat", placement=Placement.LOCAL, at=1.0, outcome=outcome, **values)  # type: ignore[arg-type]


def test_a_success_counts_its_latencies_tokens_and_phases() -> None:
    totals = ProbeTotals(target="chat", placement=Placement.LOCAL).after(
        reading(ttft_seconds=0.09, tpot_seconds=0.012, completion_tokens=32, phases={"connect": 0.002})
    )
    assert totals.requests_total == 1
    assert totals.failures_total == {}
    assert totals.tokens_total == {"completion": 32}
    assert totals.ttft_seconds is not None
    assert totals.ttft_seconds.count == 1
    assert dict(zip(totals.ttft_seconds.bounds, totals.ttft_seconds.counts, strict=True))[0.1] == 1
    assert dict(zip(totals.ttft_seconds.bounds, totals.ttft_seconds.counts, strict=True))[0.08] == 0
    assert totals.phase_seconds["connect"].sum == 0.002


def test_a_failure_is_counted_by_its_reason_and_adds_no_latency() -> None:
    totals = ProbeTotals(target="chat", placement=Placement.LOCAL)
    for outcome in (ProbeOutcome.AUTH, ProbeOutcome.AUTH, ProbeOutcome.STALLED):
        totals = totals.after(reading(outcome))
    assert totals.requests_total == 3
    assert totals.failures_total == {ProbeOutcome.AUTH: 2, ProbeOutcome.STALLED: 1}
    assert totals.ttft_seconds is None


def test_failures_in_a_row_are_counted_whatever_their_reasons_and_end_with_a_success() -> None:
    totals = ProbeTotals(target="chat", placement=Placement.LOCAL)
    for outcome in (ProbeOutcome.DNS, ProbeOutcome.OK, ProbeOutcome.AUTH, ProbeOutcome.STALLED):
        totals = totals.after(reading(outcome))
    assert (totals.consecutive_failures, totals.last_failure) == (2, ProbeOutcome.STALLED)
    totals = totals.skipped("overlap")
    assert totals.consecutive_failures == 2
    totals = totals.after(reading())
    assert (totals.consecutive_failures, totals.last_failure) == (0, None)


def test_a_probe_that_was_not_sent_is_skipped_not_failed() -> None:
    totals = ProbeTotals(target="chat", placement=Placement.LOCAL).skipped("overlap").skipped("overlap")
    assert totals.skipped_total == {"overlap": 2}
    assert totals.requests_total == 0
