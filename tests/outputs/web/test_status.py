"""The JSON: its keys are a contract."""

import json
import math
from dataclasses import replace

import pytest

from pinchpoint.outputs.web import diagnoses, status
from pinchpoint.outputs.web.as_json import as_json
from pinchpoint.snapshot import FrontendReading, Reason
from tests.outputs.web import scenes

ENGINE_KEYS = {
    "engine", "model", "kind", "version", "up", "severity", "words", "starting", "class", "since_unix_seconds", "why",
    "confidence", "runner_up", "candidate", "evidence", "missing", "advice", "more_gpus_help", "more_gpus_reason",
    "kv_cache_usage_ratio", "kv_cache_over_alert_line", "kv_cache_capacity_tokens", "requests_running",
    "requests_waiting", "prompt_tokens_per_second", "generation_tokens_per_second", "ttft", "tpot", "history", "gpus",
    "replicas", "warnings", "unavailable", "lora", "facts", "gpus_by_replica", "score", "runner_up_score",
    "contradicted_by", "timeline",
}  # fmt: skip


def test_the_keys_are_stable_whether_an_engine_answers_or_not() -> None:
    told = status(scenes.full_node())
    assert set(told) == {
        "at_unix_seconds", "version", "simulated", "headline", "engines", "gpus", "links", "topology", "findings",
        "probes", "comparisons", "host", "missing", "alerting", "sources", "self",
    }  # fmt: skip
    for engine in told["engines"]:  # type: ignore[attr-defined]
        assert set(engine) == ENGINE_KEYS


@pytest.mark.parametrize("make", [scenes.full_node, scenes.hostile, scenes.empty, scenes.no_data, scenes.kv_full])
def test_every_scene_is_strict_json(make: object) -> None:
    scene = make()  # type: ignore[operator]
    json.dumps([status(scene), diagnoses(scene)], allow_nan=False)


def test_a_full_cache_is_told_in_numbers() -> None:
    engine = status(scenes.kv_full(now=1_000_000.0))["engines"][0]  # type: ignore[index]
    assert engine["class"] == "kv_capacity"
    assert engine["since_unix_seconds"] == 1_000_000.0 - 200
    assert engine["kv_cache_usage_ratio"] == pytest.approx(0.97)
    assert engine["generation_tokens_per_second"] == pytest.approx(900)
    assert (engine["more_gpus_help"], engine["runner_up"]) == (True, "scheduler")
    assert [advice["action"] for advice in engine["advice"]] == ["fp8_kv_cache", "add_replica"]
    assert len(engine["history"]["kv_cache_usage_ratio"]) == 60
    assert engine["ttft"]["slo_seconds"] == 2.0


def test_an_absent_engine_has_nulls_and_never_zeros() -> None:
    told = status(scenes.no_data())
    engine = told["engines"][0]  # type: ignore[index]
    assert engine["up"] is False
    numbers = ("kv_cache_usage_ratio", "requests_running", "requests_waiting", "generation_tokens_per_second", "ttft")
    assert [engine[key] for key in numbers] == [None] * 5
    assert told["missing"][0] == {  # type: ignore[index]
        "source": "engine/chat",
        "reason": "connect_refused",
        "detail": "http://10.0.0.5:8000 refuses: start it",
        "for_seconds": 60.0,
    }


def test_each_gpu_names_its_engine_and_its_age() -> None:
    gpus = status(scenes.full_node())["gpus"]
    assert [gpu["engine"] for gpu in gpus] == ["chat", "chat", "code", "code", "summarize", "embed", None, None]  # type: ignore[attr-defined]
    assert gpus[0]["age_seconds"] == 0.0  # type: ignore[index]
    assert (gpus[7]["up"], gpus[7]["state"], gpus[7]["power_watts"]) == (False, "lost", None)  # type: ignore[index]


def test_the_diagnosis_is_keyed_by_engine_and_holds_scores_and_signals() -> None:
    told = diagnoses(scenes.kv_full())["engines"]
    assert {"class", "confidence", "evidence", "scores", "signals", "more_gpus_help"} <= set(told["chat"])  # type: ignore[index]


def test_what_decided_and_when_each_class_held_is_told() -> None:
    for told in (
        status(scenes.kv_full(now=1e6))["engines"][0],  # type: ignore[index]
        diagnoses(scenes.kv_full(now=1e6))["engines"]["chat"],  # type: ignore[index]
    ):
        assert (told["score"], told["runner_up"], told["runner_up_score"]) == (0.91, "scheduler", 0.42)
        assert told["evidence"][0]["threshold"] == 0.9
        assert [fact["signal"] for fact in told["contradicted_by"]] == ["slots_full_share"]
        assert told["advice"][0]["flag"] == "--kv-cache-dtype fp8"
        assert told["timeline"] == [
            {"start": 1e6 - 440, "end": 1e6 - 200, "class": "healthy"},
            {"start": 1e6 - 200, "end": 1e6, "class": "kv_capacity"},
        ]


def test_what_json_has_no_number_for_is_null() -> None:
    assert as_json({"a": math.nan, "b": (math.inf, 1.5), "c": None}) == {"a": None, "b": [None, 1.5], "c": None}


def test_the_latencies_are_those_of_the_verdict_and_what_lies_below_the_lowest_bucket_has_a_bound_only() -> None:
    fast = scenes.healthy()
    engine = status(scenes.scene(scenes.fast(), [fast.verdicts["chat"]]))["engines"][0]  # type: ignore[index]
    assert engine["tpot"] == {
        "slo_seconds": 0.05, "judged_seconds": pytest.approx(0.005), "judged_by": "mean", "over_slo": False,
        "window_seconds": 20.0,
        "p50_seconds": None, "p50_at_least_seconds": None, "p50_at_most_seconds": 0.01,
        "p95_seconds": None, "p95_at_least_seconds": None, "p95_at_most_seconds": 0.01,
    }  # fmt: skip


def test_a_full_cache_on_a_calm_engine_is_over_the_alert_line_and_says_so() -> None:
    engine = status(scenes.full_but_calm())["engines"][0]  # type: ignore[index]
    assert (engine["class"], engine["kv_cache_over_alert_line"]) == ("healthy", True)
    assert status(scenes.healthy())["engines"][0]["kv_cache_over_alert_line"] is False  # type: ignore[index]


def test_adapters_are_named_and_a_field_that_is_not_known_says_why() -> None:
    chat = scenes.full_node()
    frontend = FrontendReading(lora_adapters={"running": 1.0}, lora_adapters_max=4.0, lora_running=("sql",))
    told = replace(chat.snapshot.engines[0], frontend=frontend, unavailable={"kv_cache_usage_ratio": Reason.STALE})
    snapshot = replace(chat.snapshot, engines=(told, *chat.snapshot.engines[1:]))
    engines = status(replace(chat, snapshot=snapshot))["engines"]
    engine = next(each for each in engines if each["engine"] == told.engine)  # type: ignore[attr-defined]
    assert engine["unavailable"] == {"kv_cache_usage_ratio": "stale"}
    assert engine["lora"] == {"max": 4.0, "running": ["sql"], "waiting": []}
