"""What an operator may write, and what is said when it is wrong."""

from typing import Any

import pytest
from pydantic import ValidationError

from pinchpoint.snapshot import Placement
from pinchpoint.sources.probe import ProbeSettings, ProbeTargetSettings


def target(**values: Any) -> ProbeTargetSettings:
    return ProbeTargetSettings.model_validate({"name": "chat", "url": "http://127.0.0.1:8000"} | values)


def test_nothing_is_probed_unless_it_is_named():
    assert ProbeSettings().targets == []


def test_the_defaults_are_those_of_a_local_target():
    local = target()
    assert (local.placement, local.interval_seconds, local.max_tokens) == (Placement.LOCAL, 30, 32)
    assert local.deadlines.model_dump() == {"connect": 5, "first_token": 30, "idle": 15, "overall": 60}


@pytest.mark.parametrize("placement", ["hosted", Placement.HOSTED])
def test_a_hosted_target_is_probed_seldom_unless_told(placement: object):
    assert target(placement=placement, model="m").interval_seconds == 300
    assert target(placement=placement, model="m", interval_seconds=60).interval_seconds == 60


def test_a_trailing_slash_is_dropped():
    assert target(url="https://host/api/").url == "https://host/api"


def test_a_key_never_prints():
    assert "hunter2" not in repr(target(api_key="hunter2"))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"url": "http://user:pw@host"},
            "holds credentials, which would end up in logs; give the token by its own setting",
        ),
        ({"url": "ftp://host"}, "is no http:// or https:// URL with a host"),
        ({"url": "127.0.0.1:8000"}, "write it like http://127.0.0.1:8000"),
        ({"url": "http://host:99999"}, "is no URL with a valid host and port"),
        ({"url": "http://host?key=1"}, "has a query or a fragment"),
        ({"proxy": "http://me:pw@proxy:3128"}, "holds credentials"),
        (
            {"placement": "hosted", "model": "m", "interval_seconds": 59},
            "interval_seconds 59 is too short for a hosted API",
        ),
        ({"placement": "hosted"}, "a hosted target needs model"),
        ({"api_key": "a", "api_key_file": "/k"}, "api_key and api_key_file are both set; keep one"),
        ({"deadlines": {"overall": 10}}, "raise overall, or lower the others"),
        ({"placement": []}, "Input should be 'local' or 'hosted'"),
        ({"max_tokens": 1}, "greater than or equal to 16"),
        ({"interval_seconds": float("nan")}, "finite"),
        ({"interval": 3}, "Extra inputs are not permitted"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(values: dict[str, Any], said: str):
    with pytest.raises(ValidationError) as caught:
        target(**values)
    assert said in str(caught.value)


@pytest.mark.parametrize("url", ["http://user:hunter2@host", "http://host:hunter2"])
def test_a_mistake_does_not_print_a_password(url: str):
    with pytest.raises(ValidationError) as caught:
        target(url=url)
    assert "hunter2" not in caught.value.errors()[0]["msg"]


def test_a_local_target_names_hosted_ones_to_be_held_against_and_nobody_else():
    hosted = {"name": "api", "url": "http://h", "placement": "hosted", "model": "m"}
    local = {"name": "chat", "url": "http://127.0.0.1:8000", "compare_with": ["api"]}
    assert ProbeSettings(targets=[local, hosted]).targets[0].compare_with == ["api"]
    with pytest.raises(ValidationError, match=r"compare_with names no hosted target \(chat\); hosted are: api"):
        ProbeSettings(targets=[{**local, "compare_with": ["chat"]}, hosted])
    with pytest.raises(ValidationError, match="compare_with is for local targets; name api in theirs"):
        ProbeSettings(targets=[{**hosted, "compare_with": ["api"]}])
