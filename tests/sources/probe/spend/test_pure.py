"""What a probe can cost, what it has cost, which day it is, and when to come again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.snapshot import Placement, ProbeOutcome, ProbeReading, ProbeSkip
from pinchpoint.sources.probe import prompt
from pinchpoint.sources.probe.spend.amount import Price, Spent, Tokens
from pinchpoint.sources.probe.spend.bill import billed
from pinchpoint.sources.probe.spend.days import DOUBT_SECONDS, LEAP_SECONDS, Days, day_of
from pinchpoint.sources.probe.spend.estimate import most_tokens
from pinchpoint.sources.probe.spend.pacing import LONGEST_PAUSE_SECONDS, Pacer

MOST = Tokens(input=100, output=50)
COUNTED = {"prompt_tokens": 80, "completion_tokens": 32, "token_source": "usage", "characters": 100, "http_status": 200}


def reading(outcome: ProbeOutcome = ProbeOutcome.OK, **more) -> ProbeReading:
    return ProbeReading(target="t", placement=Placement.HOSTED, at=0.0, outcome=outcome, **more)


def test_cached_tokens_have_a_price_of_their_own_and_money_is_rounded_up() -> None:
    price = Price(input=0.15, output=0.6, cached=0.0751)
    assert price.nano_usd(Tokens(input=100, cached=60, output=10)) == 6000 + 4506 + 6000
    assert Price(input=0.0001, output=0, cached=0).nano_usd(Tokens(input=1)) == 1
    assert Spent.on(Tokens(input=5), None).usd is None


def test_the_worst_of_a_request_holds_its_prompt_whatever_the_tokenizer_and_the_longest_answer() -> None:
    text = prompt.build(prompt.nonce(), 64)
    assert most_tokens(64, 32, {}).input > 2 * len(text.split())
    assert most_tokens(64, 32, {}).output == 256, "a server's own minimum is followed up to there"
    assert most_tokens(64, 2000, {}).output == 2000


@pytest.mark.parametrize(
    ("extra", "output"),
    [
        ({"max_completion_tokens": 4000}, 4000),
        ({"generationConfig": {"maxOutputTokens": 900, "candidateCount": 3}}, 2700),
        ({"thinking": {"type": "enabled", "budget_tokens": 8000}}, 8000),
        ({"n": 4}, 1024),
        ({"logprobs": True, "seed": 123456, "stop": ["a"]}, 256),
    ],
)
def test_further_fields_of_the_request_can_make_it_dearer(extra: dict[str, object], output: int) -> None:
    assert most_tokens(64, 32, extra).output == output


@pytest.mark.parametrize(
    ("given", "tokens"),
    [
        (reading(**COUNTED), 112),
        (reading(**COUNTED, cached_tokens=64), 112),
        (reading(ProbeOutcome.NOT_STREAMED, **COUNTED), 112),
        (reading(**{**COUNTED, "token_source": "chunks"}), 150),
        (reading(**{**COUNTED, "prompt_tokens": None}), 150),
        (reading(**{**COUNTED, "prompt_tokens": 0}), 150),
        (reading(**{**COUNTED, "completion_tokens": 0}), 150),
        (reading(**COUNTED, resent=True), 262),
        (reading(ProbeOutcome.TRUNCATED, **COUNTED), 150),
        (reading(ProbeOutcome.FIRST_TOKEN_TIMEOUT), 150),
        (reading(ProbeOutcome.RESET), 150),
        (reading(ProbeOutcome.SERVER_ERROR, http_status=504), 150),
        (reading(ProbeOutcome.INTERNAL), 150),
        (reading(ProbeOutcome.AUTH, http_status=401), 0),
        (reading(ProbeOutcome.AUTH), 0),
        (reading(ProbeOutcome.QUOTA, http_status=429), 0),
        (reading(ProbeOutcome.QUOTA, http_status=200), 150),
        (reading(ProbeOutcome.OVERLOADED, http_status=503), 0),
        (reading(ProbeOutcome.OVERLOADED, http_status=200), 150),
        (reading(ProbeOutcome.DNS), 0),
        (reading(ProbeOutcome.CONNECT_REFUSED), 0),
    ],
    ids=lambda value: f"{value.outcome}-{value.http_status}" if isinstance(value, ProbeReading) else None,
)
def test_only_what_is_certain_costs_less_than_the_worst(given: ProbeReading, tokens: int) -> None:
    assert billed(given, MOST).total == tokens


@pytest.mark.parametrize("outcome", ProbeOutcome)
def test_every_outcome_has_a_bill_between_nothing_and_the_worst(outcome: ProbeOutcome) -> None:
    for status in (None, 200, 400, 500):
        assert 0 <= billed(reading(outcome, http_status=status), MOST).total <= MOST.total


def test_a_day_is_utcs_and_a_clock_set_back_is_followed_at_once() -> None:
    days = Days()
    assert day_of(days.unix(1_796_083_199.0, 0.0)) == "2026-11-30"
    assert day_of(days.unix(1_796_083_200.0, 1.0)) == "2026-12-01"
    assert day_of(days.unix(1_796_083_199.0, 2.0)) == "2026-11-30"


@given(st.lists(st.tuples(st.floats(0, 1200), st.sampled_from([0.0, 0.0, 30.0, 61.0, 1e6, -1e6])), max_size=80))
def test_time_leaps_once_an_hour_at_most_however_the_clock_jumps(steps: list[tuple[float, float]]) -> None:
    days, wall, monotonic = Days(), 1e9, 0.0
    latest, leapt_at = days.unix(wall, monotonic), 0.0
    for elapsed, jump in steps:
        monotonic += elapsed
        wall += elapsed + jump
        now = days.unix(wall, monotonic)
        assert now <= wall or now == pytest.approx(latest + elapsed), "doubted, or as the wall says"
        if now - latest > elapsed + LEAP_SECONDS + 0.001:
            assert monotonic - leapt_at >= DOUBT_SECONDS
            leapt_at = monotonic
        latest = now


def refusals(pacer: Pacer, *ticks: float) -> list[ProbeSkip | None]:
    return [pacer.refusal(tick) for tick in ticks]


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        (ProbeOutcome.AUTH, ProbeSkip.AUTH_STOP),
        (ProbeOutcome.QUOTA, ProbeSkip.QUOTA_STOP),
    ],
)
def test_a_refused_key_and_an_empty_account_are_tried_again_once_an_hour(outcome, cause) -> None:
    pacer = Pacer(300)
    pacer.ended(outcome, 0.0, 1.0, 0.5)
    ticks = [300.0 * n for n in range(1, 13)]
    assert refusals(pacer, *ticks) == [cause] * 11 + [None]
    pacer.reset()
    assert refusals(pacer, *ticks) == [None] * 12


def test_a_busy_server_is_asked_half_as_often_with_each_failure_and_as_before_once_it_is_well() -> None:
    pacer, began, waited = Pacer(300), 0.0, []
    for _ in range(7):
        pacer.ended(ProbeOutcome.OVERLOADED, began, began + 1, 0.5)
        tick = began + 300
        while pacer.refusal(tick) is ProbeSkip.BACKOFF:
            tick += 300
        waited.append((tick - began) / 300)
        began = tick
    assert waited == [1, 2, 4, 8, 12, 12, 12], "never longer than an hour"
    pacer.ended(ProbeOutcome.OK, began, began + 1, 0.5)
    assert pacer.refusal(began + 300) is None


def test_chance_spreads_the_returns() -> None:
    waited = set()
    for chance in (0.0, 0.25, 0.5, 0.75, 1.0):
        pacer = Pacer(60)
        for _ in range(4):
            pacer.ended(ProbeOutcome.RATE_LIMITED, 0.0, 1.0, chance)
        waited.add(next(tick for tick in range(60, 1200, 60) if pacer.refusal(tick) is None))
    assert len(waited) > 2


def test_retry_after_is_honoured_to_the_second_and_capped_at_an_hour() -> None:
    pacer = Pacer(60)
    pacer.ended(ProbeOutcome.RATE_LIMITED, 0.0, 2.0, 0.0, 600)
    assert refusals(pacer, 601.9, 602.0) == [ProbeSkip.BACKOFF, None]
    pacer.ended(ProbeOutcome.RATE_LIMITED, 700.0, 702.0, 0.0, 86_400)
    assert refusals(pacer, 702.0 + LONGEST_PAUSE_SECONDS - 1, 702.0 + LONGEST_PAUSE_SECONDS) == [
        ProbeSkip.BACKOFF,
        None,
    ]


def test_a_server_that_is_back_is_spared_no_longer_than_it_asked_for_and_a_stop_stays():
    pacer = Pacer(300)
    for _ in range(5):
        pacer.ended(ProbeOutcome.OVERLOADED, 0, 1, 0.5)
    assert pacer.refusal(600) is ProbeSkip.BACKOFF
    pacer.back()
    assert pacer.refusal(600) is None
    pacer.ended(ProbeOutcome.OVERLOADED, 600, 601, 0.5, 1800)
    pacer.back()
    assert pacer.refusal(2400) is ProbeSkip.BACKOFF
    assert pacer.refusal(2402) is None
    pacer.ended(ProbeOutcome.AUTH, 3000, 3001, 0.5)
    pacer.back()
    assert pacer.refusal(3300) is ProbeSkip.AUTH_STOP


def test_any_other_failure_costs_no_pause() -> None:
    pacer = Pacer(300)
    for outcome in (ProbeOutcome.DNS, ProbeOutcome.CONNECT_REFUSED, ProbeOutcome.FORBIDDEN, ProbeOutcome.TRUNCATED):
        pacer.ended(outcome, 0.0, 1.0, 1.0)
        assert pacer.refusal(300.0) is None
