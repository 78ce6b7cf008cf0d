"""What a server said, made safe to show."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.sources.probe.excerpt import MAX_CHARACTERS, excerpt


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Incorrect API key provided: sk-proj-abc123def456.", "Incorrect API key provided: [redacted]"),
        ("got 'Authorization: Bearer abcdef'", "got 'Authorization: Bearer [redacted]'"),
        ("cannot reach http://user:pw@host:80/x", "cannot reach http://[redacted]@host:80/x"),
        ('{"api_key": "short1"}', '{"api_key": "[redacted]"}'),
        ("key 0123456789abcdef0123456789abcdef is unknown", "key [redacted] is unknown"),
        ("two\nlines\t and \x1b[31mcolour\x1b[0m", "two lines and [31mcolour[0m"),
        ("No model mistralai/Mistral-7B-Instruct-v0.3 here", "No model mistralai/Mistral-7B-Instruct-v0.3 here"),
    ],
)
def test_keys_and_control_characters_do_not_get_out(said: str, shown: str):
    assert excerpt(said) == shown


def test_the_targets_own_key_is_masked_whatever_it_looks_like():
    assert excerpt("you sent hunter2, really", ("hunter2",)) == "you sent [redacted], really"


def test_a_key_at_the_cut_is_masked_before_it_is_cut():
    assert "sk-" not in excerpt("x " * 97 + "sk-live-0123456789")


@given(st.text(max_size=2000))
def test_an_excerpt_is_one_short_printable_line(said: str):
    line = excerpt(said)
    assert len(line) <= MAX_CHARACTERS
    assert line.isprintable()


@pytest.mark.parametrize("said", ["{", "a.", "a" * 31 + " ", "a1", "://a", "x=", "token ", "bearer ", "sk-", "-"])
def test_a_long_text_costs_no_more_than_its_length(said: str):
    started = process_time()
    excerpt(said * (20_000 // len(said)))
    assert process_time() - started < 0.2
