"""How long a server asks to wait."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.sources.probe.error_body import error_facts
from pinchpoint.sources.probe.retry_after import MAX_SECONDS, retry_after_seconds

NOON = 1_796_040_000.0  # Mon, 30 Nov 2026 12:00:00 GMT
DATE = "Mon, 30 Nov 2026 12:00:00 GMT"


def wait(message: object = "", **headers: str) -> float | None:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return retry_after_seconds(names, error_facts(message), NOON)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "20"}, 20),
        ({"retry_after": " 1.5 "}, 1.5),
        ({"retry_after": "0"}, 0),
        ({"retry_after_ms": "1500"}, 1.5),
        ({"retry_after_ms": "1500", "retry_after": "2"}, 1.5),
        ({"retry_after": "Mon, 30 Nov 2026 12:01:30 GMT"}, 90),
        ({"retry_after": "Monday, 30-Nov-26 12:01:30 GMT"}, 90),
        ({"retry_after": "Mon Nov 30 12:01:30 2026"}, 90),
        ({"retry_after": "Mon, 30 Nov 2026 13:01:30 GMT", "date": "Mon, 30 Nov 2026 13:00:00 GMT"}, 90),  # its clock
        ({"retry_after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry_after": "86400"}, MAX_SECONDS),
        ({"retry_after": "Tue, 30 Nov 2027 12:00:00 GMT"}, MAX_SECONDS),
        ({"retry_after": "1000000000000"}, MAX_SECONDS),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "-5"}, None),
        ({"retry_after": "nan"}, None),
        ({"retry_after": "1e9"}, None),
        ({"retry_after": "9" * 400}, MAX_SECONDS),
        ({"retry_after": "Mon, 99 Nov 99999 99:99:99 GMT"}, None),
        ({"date": DATE}, None),
        ({}, None),
    ],
)
def test_a_header_is_understood_in_each_of_its_forms(headers: dict[str, str], seconds: float | None):
    assert wait(**headers) == seconds


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Rate limit is exceeded. Try again in 2 seconds.", 2),
        ("Please try again in 20ms.", 0.02),
        ("Please try again in 6m0.36s. Visit", 360.36),
        ("Please try again in 1h2m3s", 3600),
        ("Please retry after 26 seconds.", 26),
        ("Please retry in 26.397821s.", 26.397821),
        ("You must wait 3 minutes", 180),
        ("Quota resets in 1 day", 3600),
        ("请在 30 秒后重试", 30),
        ("请求过于频繁，请 2分钟后再试", 120),
        ("No capacity. Try again later.", None),
        ("Retry 3 times", None),
        ("limit 60 seconds, used 2", None),
    ],
)
def test_words_are_understood(message: str, seconds: float | None):
    assert wait({"error": {"message": message}}) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({"details": [{"@type": "…RetryInfo", "retryDelay": "26s"}]}, 26),
        ({"details": [{"retryDelay": "0.5s"}]}, 0.5),
        ({"retry_after": 12}, 12),
        ({"retry_after_ms": 1500}, 1.5),
        ({"metadata": {"retryAfter": "7"}}, 7),
        ({"retry_after": None}, None),
    ],
)
def test_a_field_of_the_body_is_understood(fields: dict[str, object], seconds: float | None):
    assert wait({"error": {"message": "slow down"} | fields}) == seconds


def test_a_header_beats_what_a_message_may_only_quote():
    assert wait({"error": {"message": "Please try again in 5s", "retry_after": 7}}, retry_after="3") == 3


@given(header=st.text(max_size=60), date=st.text(max_size=40), message=st.text(max_size=200))
def test_whatever_a_server_says_the_wait_is_none_or_within_an_hour(header: str, date: str, message: str):
    for said in (message, f"try again in {message}", json.dumps({"retry_after": message})):
        seconds = wait(said, retry_after=header, date=date)
        assert seconds is None or 0 <= seconds <= MAX_SECONDS
