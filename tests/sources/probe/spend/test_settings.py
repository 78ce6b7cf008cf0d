"""What an operator may say about money, and what is said when it can't be meant."""

from typing import Any

import pytest
from pydantic import ValidationError

from pinchpoint.sources.probe import ProbeSettings, ProbeTargetSettings
from pinchpoint.sources.probe.spend.admission import ask_of
from pinchpoint.sources.probe.spend.amount import Caps

PRICE = {"input_usd_per_million_tokens": 1, "output_usd_per_million_tokens": 2}


def target(**values: Any) -> ProbeTargetSettings:
    hosted = {"name": "h", "url": "https://api.example.com", "placement": "hosted", "model": "m"}
    return ProbeTargetSettings.model_validate(hosted | values)


@pytest.mark.parametrize(("interval", "probes"), [(300, 288), (60, 1440), (86_400, 1)])
def test_a_hosted_target_without_any_cap_gets_one_that_its_probes_stay_under(interval: float, probes: int) -> None:
    ask = ask_of(target(interval_seconds=interval), Caps())
    cap = ask.caps.day.tokens
    usual = 110 + 32  # tokens of a probe by common tokenizers
    assert probes * usual + ask.reserve.tokens <= cap <= 6 * probes * usual + ask.reserve.tokens
    assert (ask.caps.day.nano_usd, ask.caps.month.tokens) == (None, None)


def test_any_cap_of_its_own_takes_the_place_of_the_default() -> None:
    ask = ask_of(target(price=PRICE, caps={"usd_per_month": 2.5}), Caps())
    assert ask.caps.day.tokens is None
    assert ask.caps.month.nano_usd == 2_500_000_000


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"caps": {"usd_per_day": 1}}, "needs the price"),
        ({"caps": {"tokens_per_day": 100}}, "less than the 12"),
        ({"caps": {"tokens_per_month": 100}}, "caps.tokens_per_month 100"),
        ({"placement": "local", "price": PRICE}, "for hosted targets"),
        ({"placement": "local", "caps": {"tokens_per_day": 10**6}}, "for hosted targets"),
        ({"caps": {"tokens_per_day": -1}}, "greater than or equal to 0"),
        ({"price": {**PRICE, "input_usd_per_million_tokens": float("nan")}}, "finite"),
        ({"price": {"input_usd_per_million_tokens": 1}}, "output_usd_per_million_tokens"),
        ({"interval_seconds": 59}, "too short for a hosted API"),
    ],
)
def test_what_can_not_be_meant_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        target(**given)


def test_a_cap_in_money_over_all_needs_every_price() -> None:
    with pytest.raises(ValidationError, match="give that of h, or cap"):
        ProbeSettings(targets=[target()], caps={"usd_per_day": 1})
    assert ProbeSettings(targets=[target(price=PRICE)], caps={"usd_per_day": 1}).caps.usd_per_day == 1
