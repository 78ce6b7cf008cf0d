"""Which kind of engine speaks: told by its exposition, or by the operator, and what is said when the two differ."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from pinchpoint.snapshot import EngineFacts, EngineReading, EngineTarget, Reason
from pinchpoint.sources.engine import KINDS, EngineSettings, kind_in, reading_from_body
from pinchpoint.sources.http import SourceError

DATA = Path("tests/data/engine-metrics")
FILES = {
    "sglang-0.5.23.prom": "sglang",
    "lmdeploy-main-2026-08-21.prom": "lmdeploy",
    "tgi-3.x-synthetic.prom": "tgi",
    "llamacpp-master-2026-synthetic.prom": "llamacpp",
    "vllm-0.33.0-v1.prom": "vllm",
    "vllm-0.3.3-v0.prom": "vllm",
}


def read(body: bytes | str, kind: str = "") -> EngineReading:
    target = EngineTarget(engine="chat", url="http://127.0.0.1:8000", facts=EngineFacts(kind=kind))
    return reading_from_body(target, body.encode() if isinstance(body, str) else body, None, 1.0)


def why_not(body: str, kind: str = "") -> SourceError:
    with pytest.raises(SourceError) as caught:
        read(body, kind)
    return caught.value


@pytest.mark.parametrize(("file", "kind"), FILES.items())
def test_an_exposition_tells_its_kind(file: str, kind: str):
    body = (DATA / file).read_bytes()
    assert read(body).facts.kind == kind
    assert read(body, kind).facts.kind == kind
    assert kind_in(body[:4096]) == kind


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("trtllm_num_requests_running 1", "trtllm"),
        ("trtllm:num_requests_running 1", "trtllm"),
        ('nv_trt_llm_request_metrics{request_type="active",model="m",version="1"} 1', "triton"),
        ('dynamo_frontend_inflight_requests{model="m"} 1', "dynamo"),
        ("ray_vllm_num_requests_running 1", "vllm"),
        ("sglang_num_running_reqs 1", "sglang"),
    ],
)
def test_one_line_tells_the_kind(line: str, kind: str):
    assert read(f"{line}\n").facts.kind == kind
    assert kind_in(f"# HELP process_cpu x\n{line}\n".encode()) == kind


def test_a_stranger_is_of_no_kind():
    assert kind_in(b"go_goroutines 7\nmy_vllm_thing 1\n") == ""


def test_a_kind_that_the_exposition_contradicts_is_refused_with_the_remedy():
    error = why_not("vllm:num_requests_running 1\n", "sglang")
    assert error.reason is Reason.WRONG_KIND
    assert error.detail == ("kind is sglang, but this is vLLM's exposition; set kind to vllm or auto, or check url")


def test_a_named_kind_whose_families_are_missing_says_how_to_switch_them_on():
    assert "--enable-metrics" in why_not("http_requests_total 1\n", "sglang").detail


def test_an_unknown_kind_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ValidationError) as caught:
        EngineSettings(name="chat", url="http://127.0.0.1:8000", kind="vlm")
    (error,) = caught.value.errors()
    assert error["loc"] == ("kind",)
    assert "'vlm' is no kind of engine; known are auto, vllm, sglang" in error["msg"]
    assert all(kind in error["msg"] for kind in KINDS)


def test_kind_auto_leaves_it_to_the_exposition():
    assert EngineSettings(name="chat", url="http://127.0.0.1:8000").target().facts.kind == ""
    assert EngineSettings(name="chat", url="http://127.0.0.1:8000", kind="tgi").target().facts.kind == "tgi"


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        ('vllm:current_qps{server="http://a"} 1\nvllm:num_requests_running{server="http://a"} 1', "production-stack"),
        ('vllm:num_requests_running{server="http://a"} 1', "production-stack"),
        ("inference_extension_scheduler_e2e_duration_seconds_count 1", "endpoint picker"),
        ("llm_d_inference_scheduler_pd_decision_total 1", "llm-d's router"),
        ("smg_requests_total 1", "SGLang's model gateway"),
    ],
)
def test_a_routers_own_metrics_are_refused_with_words(lines: str, title: str):
    error = why_not(f"{lines}\n")
    assert error.reason is Reason.METRICS_MISSING
    assert title in error.detail
    assert "name the engines behind it" in error.detail


def test_a_kind_whose_families_begin_with_the_first_request_waits_for_it():
    (replica,) = read("", "tgi").replicas
    assert replica.requests_running is None
    assert why_not("").reason is Reason.METRICS_MISSING  # nobody said that it is one
