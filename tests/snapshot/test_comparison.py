"""Local against hosted: what is compared, with whom, and what is not."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.snapshot import Placement, ProbeOutcome, ProbeReading, are_kin, compared, model_family

NOW = 10_000.0
LOCAL, HOSTED = Placement.LOCAL, Placement.HOSTED


def probes(target: str, placement: Placement, *ttfts: float | None, **more: Any) -> list[ProbeReading]:
    """One a minute, the newest now; ``None``: no first token in time."""
    made: dict[str, Any] = {
        "tpot_seconds": 0.01,
        "completion_tokens": 40,
        "characters": 160,
        "token_source": "usage",
        **more,
    }
    return [
        ProbeReading(target=target, placement=placement, at=at, outcome=ProbeOutcome.OK, ttft_seconds=ttft,
                     ttfc_seconds=ttft, **made)
        if ttft is not None
        else ProbeReading(target=target, placement=placement, at=at, outcome=ProbeOutcome.FIRST_TOKEN_TIMEOUT,
                          model=made.get("model"))
        for at, ttft in zip((NOW - 60 * back for back in reversed(range(len(ttfts)))), ttfts, strict=True)
    ]  # fmt: skip


def test_medians_of_the_last_five_are_compared_so_that_outliers_and_the_past_move_nothing() -> None:
    ours = probes("chat", LOCAL, 90, 90, 0.4, 0.4, 8.0, 0.4, 0.4)
    theirs = probes("api", HOSTED, 0.2, 0.2, 0.2, tpot_seconds=0.02, characters=320)
    (found,) = compared([ours, theirs], NOW)
    assert (found.target, found.hosted) == ("chat", ("api",))
    assert (found.local.ttft_seconds, found.theirs.ttft_seconds) == (0.4, 0.2)
    assert (found.local.probes, found.theirs.probes) == (5, 3)
    assert found.ratios == {"ttft": 2.0, "ttfc": 2.0, "tpot": 0.5, "characters_per_second": 1.0}


def test_fewer_than_three_probes_and_probes_of_another_hour_make_no_ratio() -> None:
    theirs = probes("api", HOSTED, 0.2, 0.2, 0.2)
    (few,) = compared([probes("chat", LOCAL, 0.4, 0.4), theirs], NOW)
    assert few.ratios == {}
    (one,) = compared([probes("chat", LOCAL, 0.4), theirs[-1:]], NOW, at_least=1)
    assert one.ratios["ttft"] == 2.0
    assert compared([probes("chat", LOCAL, 0.4, 0.4, 0.4), theirs], NOW + 3600 + 121) == ()


def test_a_probe_that_waited_in_vain_is_slower_than_any_that_did_not() -> None:
    theirs = probes("api", HOSTED, 0.2, 0.2, 0.2)
    (some,) = compared([probes("chat", LOCAL, 0.4, None, 0.6, None, 0.4), theirs], NOW)
    assert (some.ratios["ttft"], some.local.too_slow) == (0.6 / 0.2, 2)
    (most,) = compared([probes("chat", LOCAL, 0.4, None, None, None, 0.4), theirs], NOW)
    assert most.local.ttft_seconds is None
    assert "ttft" not in most.ratios
    assert (most.local.probes, most.local.too_slow) == (5, 3)


def test_other_failures_are_no_measurement() -> None:
    ours = probes("chat", LOCAL, 0.4, 0.4, 0.4)
    refused = [ProbeReading(target="api", placement=HOSTED, at=NOW, outcome=ProbeOutcome.AUTH)] * 5
    (found,) = compared([ours, refused], NOW)
    assert found.ratios == {}
    assert found.theirs.probes == 0


def test_tokens_that_nobody_counted_and_tokens_of_unlike_models_have_no_ratio_but_characters_have() -> None:
    ours = probes("chat", LOCAL, 0.4, 0.4, 0.4, model="Qwen/Qwen2.5-14B-Instruct")
    for theirs in (
        probes("api", HOSTED, 0.2, 0.2, 0.2, token_source="chunks", model="qwen2.5-14b-instruct"),
        probes("api", HOSTED, 0.2, 0.2, 0.2, model="gpt-4o-mini"),
    ):
        (found,) = compared([ours, theirs], NOW)
        assert set(found.ratios) == {"ttft", "ttfc", "characters_per_second"}


def test_a_first_token_that_hides_reasoning_is_compared_by_its_content_alone() -> None:
    ours = probes("chat", LOCAL, 0.4, 0.4, 0.4, reasoning="streamed")
    theirs = probes("api", HOSTED, 4.0, 4.0, 4.0, reasoning="hidden", phases={"generation": 0.4})
    (found,) = compared([ours, theirs], NOW)
    assert "ttft" not in found.ratios
    assert found.ratios["ttfc"] == pytest.approx(0.1)
    assert found.ratios["characters_per_second"] == pytest.approx(400 / (160 / 0.4))


def test_the_same_family_is_preferred_and_the_operators_word_before_that() -> None:
    ours = probes("chat", LOCAL, 0.4, 0.4, 0.4, model="meta-llama/Llama-3.3-70B-Instruct")
    kin = probes("kin", HOSTED, 0.2, 0.2, 0.2, model="llama-3.3-70b-versatile")
    other = probes("other", HOSTED, 0.8, 0.8, 0.8, model="gpt-4o")
    assert compared([ours, kin, other], NOW)[0].hosted == ("kin",)
    assert compared([ours, other], NOW)[0].hosted == ("other",)
    wanted = probes("chat", LOCAL, 0.4, 0.4, 0.4, model="llama-3.3-70b", compare_with=("other",))
    assert compared([wanted, kin, other], NOW)[0].hosted == ("other",)
    assert compared([wanted, kin], NOW) == ()


def test_several_hosted_targets_count_by_their_median() -> None:
    ours = probes("chat", LOCAL, 0.6, 0.6, 0.6)
    theirs = [probes(name, HOSTED, *[ttft] * 3) for name, ttft in (("a", 0.1), ("b", 0.2), ("c", 9.0))]
    (found,) = compared([ours, *theirs], NOW)
    assert found.ratios["ttft"] == pytest.approx(3.0)
    assert found.theirs.probes == 9


def test_nothing_is_compared_without_both_sides() -> None:
    assert compared([], NOW) == ()
    assert compared([probes("chat", LOCAL, 0.4, 0.4, 0.4)], NOW) == ()
    assert compared([probes("api", HOSTED, 0.4, 0.4, 0.4)], NOW) == ()


@given(
    st.lists(st.none() | st.floats(0, 1e6), max_size=8),
    st.lists(st.none() | st.floats(0, 1e6), max_size=8),
    st.integers(1, 3),
)
def test_a_ratio_is_always_a_finite_number(ours: list[float | None], theirs: list[float | None], at_least: int) -> None:
    for found in compared([probes("a", LOCAL, *ours), probes("b", HOSTED, *theirs)], NOW, at_least=at_least):
        assert all(math.isfinite(ratio) and ratio >= 0 for ratio in found.ratios.values())
        assert found.local.too_slow <= found.local.probes <= 5


@pytest.mark.parametrize(
    ("names", "family"),
    [
        (("Qwen/Qwen2.5-14B-Instruct-AWQ", "qwen2.5-72b-instruct", "qwen2.5:7b"), "qwen2.5"),
        (("meta-llama/Llama-3.3-70B-Instruct", "llama-3.3-70b-versatile"), "llama-3.3"),
        (("deepseek-ai/DeepSeek-V3-0324", "deepseek-v3"), "deepseek-v3"),
        (("gpt-4o-mini", "gpt-4o-2024-08-06"), "gpt-4o"),
        (("Qwen/Qwen2.5-Coder-32B-Instruct",), "qwen2.5-coder"),
        (("mistralai/Mistral-7B-Instruct-v0.3", "mistral-large-latest"), "mistral"),
        (("mistralai/Mixtral-8x7B-v0.1",), "mixtral"),
        (("Qwen/Qwen3-30B-A3B-FP8", "qwen3-235b-a22b"), "qwen3"),
        (("openai/gpt-oss-120b",), "gpt-oss"),
        (("", None, "/", "---"), None),
    ],
)
def test_a_models_family_is_its_name_without_size_tuning_and_date(
    names: tuple[str | None, ...], family: str | None
) -> None:
    assert {model_family(name) for name in names} == {family}


def test_kinship_of_a_model_without_a_name_is_not_known() -> None:
    assert are_kin("gpt-4o", None) is None
    assert are_kin("gpt-4o", "gpt-4o-mini") is True
    assert are_kin("gpt-4o", "qwen2.5-7b") is False


@pytest.mark.parametrize(
    ("fields", "pace"),
    [
        ({"tpot_seconds": 0.01, "completion_tokens": 40, "characters": 160}, 400.0),
        ({"tpot_seconds": 0.01, "completion_tokens": 40, "characters": 160, "reasoning": "streamed"}, 400.0),
        (
            {"tpot_seconds": 0.01, "completion_tokens": 900, "characters": 160, "reasoning": "hidden",
             "phases": {"generation": 0.5}},
            320.0,
        ),
        ({"tpot_seconds": 0.01, "completion_tokens": 900, "characters": 160, "reasoning": "hidden"}, None),
        ({"tpot_seconds": None, "completion_tokens": 40, "characters": 160}, None),
        ({"tpot_seconds": 0.01, "completion_tokens": None, "characters": 160}, None),
        ({"tpot_seconds": 0.01, "completion_tokens": 40, "characters": None}, None),
    ],
)  # fmt: skip
def test_the_pace_of_the_text_is_known_where_tpot_is_and_hidden_tokens_have_no_length(
    fields: dict[str, Any], pace: float | None
) -> None:
    reading = ProbeReading(target="t", placement=LOCAL, at=1.0, outcome=ProbeOutcome.OK, **fields)
    assert reading.characters_per_second == (None if pace is None else pytest.approx(pace))
