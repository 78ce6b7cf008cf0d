"""What clients and probes saw: gateway, balancer and queue included."""

from dataclasses import replace
from statistics import fmean, median

import pytest

from pinchpoint.simulator import Lengths, Service, Workload, play
from pinchpoint.simulator.world import Gateway, Leak, LostCard, Probes, Stall
from pinchpoint.snapshot import Placement, ProbeOutcome
from tests.simulator.engine.small import request
from tests.simulator.node.worlds import small_world

PROBED = Probes(every_seconds=5.0)


def answered(world, seconds=60.0):
    return [sent for sent in play(world, seconds).sent if sent.finished_at is not None]


def of(service, placement):
    return [probe for probe in service.probes() if probe.placement is placement]


def local(world, seconds=60.0):
    return of(play(world, seconds), Placement.LOCAL)


def test_a_delay_at_the_gateway_is_seen_by_clients_and_not_by_the_engine():
    near, far = play(small_world(), 60.0), play(small_world(gateway=Gateway(delay_seconds=1.5)), 60.0)
    seen = [median(s.ttft_seconds for s in service.sent if s.ttft_seconds is not None) for service in (near, far)]
    told = [service.engines[0].ledger.ttft.sum / service.engines[0].ledger.ttft.count for service in (near, far)]
    assert seen[1] - seen[0] == pytest.approx(1.5, abs=0.02)
    assert told[1] == pytest.approx(told[0], rel=0.2)


def test_behind_a_buffering_gateway_the_first_token_comes_with_the_last():
    for sent in answered(small_world(gateway=Gateway(buffers=True))):
        assert sent.ttft_seconds == sent.finished_at - sent.sent_at
        assert sent.tpot_seconds in (0.0, None)


def test_the_mean_pace_is_of_the_tokens_after_the_first():
    sent = max(answered(small_world()), key=lambda sent: sent.request.output_tokens)
    streamed = sent.finished_at - sent.sent_at - sent.ttft_seconds
    assert sent.tpot_seconds == pytest.approx(streamed / (sent.request.output_tokens - 1))


def test_probes_are_requests_like_any_other_and_the_engine_counts_them():
    nobody = replace(small_world(), workload=Workload(), probes=PROBED)
    service = play(nobody, 60.0)
    probes = of(service, Placement.LOCAL)
    assert len(probes) == sum(service.engines[0].ledger.success.values()) == 12
    for probe in probes:
        assert (probe.outcome, probe.buffered, probe.completion_tokens) == (ProbeOutcome.OK, False, 32)
        assert probe.duration_seconds == pytest.approx(probe.ttft_seconds + 31 * probe.tpot_seconds)
        assert probe.phases["first_token"] == probe.ttft_seconds
    assert service.sent == []


def test_probes_wait_in_the_queue_and_at_the_gateway():
    crowd = Workload(clients=12, output=Lengths(median=300))
    quiet, slots, gateway = (
        fmean(probe.ttft_seconds for probe in local(world) if probe.ttft_seconds is not None)
        for world in (
            small_world(probes=PROBED),
            small_world(probes=PROBED, workload=crowd, engine={"max_num_seqs": 4}),
            small_world(probes=PROBED, gateway=Gateway(delay_seconds=0.8)),
        )
    )
    assert slots > quiet + 1.0
    assert gateway == pytest.approx(quiet + 0.8, abs=0.05)


def test_a_probe_says_that_the_answer_came_whole():
    probes = local(small_world(probes=PROBED, gateway=Gateway(buffers=True)))
    assert probes
    for probe in probes:
        assert (probe.outcome, probe.buffered) == (ProbeOutcome.NOT_STREAMED, True)
        assert (probe.ttft_seconds, probe.tpot_seconds) == (None, None)
        assert probe.duration_seconds > 0.1


def test_a_probe_gives_up_after_thirty_seconds_without_a_token():
    service = play(small_world(probes=PROBED, faults=(Stall(replica=0, at=0.0),)), 60.0)
    probes = of(service, Placement.LOCAL)
    assert len(probes) == 6
    for probe in probes:
        assert probe.outcome is ProbeOutcome.FIRST_TOKEN_TIMEOUT
        assert (probe.duration_seconds, probe.unfinished_phase) == (30.0, "first_token")
        assert probe.ttft_seconds is None


def test_when_the_engine_dies_the_probe_in_flight_is_reset_and_the_next_are_refused():
    probes = Probes(every_seconds=4.0, output_tokens=900)
    world = small_world(probes=probes, faults=(Leak(gpu="0", bytes_per_second=4e8),))
    outcomes = [probe.outcome for probe in local(world, 40.0)]
    assert ProbeOutcome.RESET in outcomes
    assert outcomes == sorted(outcomes, key=[ProbeOutcome.OK, ProbeOutcome.RESET, ProbeOutcome.CONNECT_REFUSED].index)
    assert outcomes.count(ProbeOutcome.CONNECT_REFUSED) > 2


def test_a_probe_whose_stream_falls_silent_ends_after_a_minute():
    probed = Probes(every_seconds=4.0, output_tokens=900)
    first, *_ = local(small_world(probes=probed, faults=(LostCard(gpu="0", at=6.0),)), 70.0)
    assert (first.outcome, first.unfinished_phase) == (ProbeOutcome.OVERALL_TIMEOUT, "generation")
    assert first.duration_seconds == 60.0


def test_the_hosted_target_keeps_its_own_pace():
    probes = of(play(small_world(probes=replace(PROBED, hosted_ttft_seconds=0.7)), 300.0), Placement.HOSTED)
    assert median(probe.ttft_seconds for probe in probes) == pytest.approx(0.7, rel=0.15)
    assert all(probe.outcome is ProbeOutcome.OK for probe in probes)


def test_a_request_from_outside_joins_and_is_forgotten_when_it_ends():
    service, tokens = Service(small_world(workload=Workload())), []
    asked = request(output=5, on_token=tokens.append)
    service.submit(asked)
    service.advance_to(5.0)
    assert len(tokens) == 5
    service.abort(asked)  # too late, and no harm
    assert service.engines[0].ledger.success["length"] == 1


def test_a_request_from_outside_is_told_when_its_engine_ends():
    service, lost = Service(small_world(faults=(Leak(gpu="0", bytes_per_second=2e9),))), []
    service.submit(request(output=900), lambda: lost.append("while it ran"))
    service.advance_to(10.0)
    service.submit(request(output=900), lambda: lost.append("at once"))
    assert lost == ["while it ran", "at once"]


def test_what_has_ended_is_forgotten_on_demand_and_the_rest_kept():
    service = play(small_world(), 30.0)
    still_open = [sent for sent in service.sent if not sent.request.finished]
    service.forget()
    assert service.sent == still_open != []
