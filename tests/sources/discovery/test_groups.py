"""Target groups: what a label means, and that a bad item costs nobody else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.daemon.finding import engine_described
from pinchpoint.snapshot import EngineTarget, Reason, Slo
from pinchpoint.sources.discovery import Finding
from pinchpoint.sources.discovery.groups import MAX_REFUSED, MAX_TARGETS, read_groups
from pinchpoint.sources.http import SourceError
from tests.sources.discovery.listing import described_plainly, names


def read(*groups: object, build=engine_described) -> Finding:
    return read_groups(list(groups), "fleet.json", "file/fleet", build)


def one(labels: dict[str, object], address: str = "10.0.0.1:8000") -> EngineTarget:
    (target,) = read({"targets": [address], "labels": labels}).targets
    return target


def refusal(labels: dict[str, object], address: str = "10.0.0.1:8000") -> str:
    finding = read({"targets": ["good:1"]}, {"targets": [address], "labels": labels})
    assert names(finding.targets) == ["good:1"]
    (line,) = finding.refused
    assert line.startswith("fleet.json: group 2")
    return line


def test_a_target_without_labels_is_an_http_engine_named_after_its_address() -> None:
    target = one({})
    assert (target.engine, target.url, target.metrics_path) == ("10.0.0.1:8000", "http://10.0.0.1:8000", "/metrics")
    assert target.found_by == "file/fleet"


def test_labels_of_prometheus_mean_what_they_mean_there() -> None:
    target = one(
        {"__scheme__": "https", "__metrics_path__": "/prometheus/metrics", "__param_a": "x y", "__meta_dc": "a",
         "team": "nlp"},
        "[2001:db8::1]:443",
    )  # fmt: skip
    assert target.url == "https://[2001:db8::1]:443"
    assert target.metrics_path == "/prometheus/metrics?a=x+y"
    assert target.labels == {"team": "nlp"}


def test_our_labels_say_what_a_configured_engine_can_say() -> None:
    target = one(
        {
            "engine": "chat",
            "__pinchpoint_kind": "vllm",
            "__pinchpoint_max_num_seqs": "256",
            "__pinchpoint_tensor_parallel_size": 2,
            "__pinchpoint_enable_prefix_caching": True,
            "__pinchpoint_gpus": "0, 1",
            "__pinchpoint_slo_ttft_seconds": "1.5",
        }
    )
    assert target.engine == "chat"
    facts = target.facts
    assert (facts.kind, facts.max_num_seqs, facts.tensor_parallel_size, facts.enable_prefix_caching) == (
        "vllm", 256, 2, True,
    )  # fmt: skip
    assert target.gpus == ("0", "1")
    assert target.slo == Slo(ttft_seconds=1.5, tpot_seconds=0.05)
    assert target.labels == {"engine": "chat"}


def test_engines_that_share_a_name_in_one_group_have_their_addresses_in_it() -> None:
    finding = read({"targets": ["a:1", "b:1"], "labels": {"engine": "chat"}}, {"targets": ["c:1"], "labels": {}})
    assert names(finding.targets) == ["chat/a:1", "chat/b:1", "c:1"]


@pytest.mark.parametrize(
    ("labels", "address", "said"),
    [
        ({}, "http://10.0.0.1:8000", "is a URL; give host:port"),
        ({}, "10.0.0.1:8000/v1", "is no host:port; give a path by the label __metrics_path__"),
        ({}, "", "is no host:port"),
        ({}, "10.0.0.1:port", "is no URL with a valid host and port"),
        ({"__scheme__": "gopher"}, "a:1", "is no http:// or https:// URL"),
        ({"__metrics_path__": "metrics"}, "a:1", "metrics_path"),
        ({"__pinchpoint_kind": "vlmm"}, "a:1", "kind"),
        ({"__pinchpoint_max_num_seqs": "many"}, "a:1", "max_num_seqs"),
        ({"__pinchpoint_max_num_seq": "1"}, "a:1", "means nothing; use __pinchpoint_max_num_seqs"),
        ({"__pinchpoint_bearer_token_file": "/etc/shadow"}, "a:1", "means nothing"),
        ({"__pinchpoint_url": "http://b:1"}, "a:1", "means nothing"),
        ({"__pinchpoint_model_config": "{}"}, "a:1", "means nothing"),
        ({"engine": "a\nb"}, "a:1", "name"),
        ({"team": ["a"]}, "a:1", "has the label 'team' without a text"),
        ({f"l{n}": "x" for n in range(65)}, "a:1", "more than 64 labels"),
        ({"team": "x" * 2000}, "a:1", "above 1024 characters"),
    ],
)
def test_a_bad_item_is_named_with_its_remedy_and_the_good_ones_are_taken(labels, address: str, said: str) -> None:
    assert said in refusal(labels, address)


def test_credentials_in_an_address_are_refused_and_not_said() -> None:
    line = refusal({}, "user:hunter2@10.0.0.1:8000")
    assert "hunter2" not in line
    assert "10.0.0.1:8000" in line


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ("a:1", "is no mapping"),
        ({}, "has no list of targets"),
        ({"targets": "a:1"}, "has no list of targets"),
        ({"targets": ["a:1"], "labels": "x"}, "has labels that are no mapping"),
        ({"targets": ["a:1"], "label": {}}, "has the key 'label'"),
        ({"targets": [1]}, "a target is no text"),
    ],
)
def test_a_group_that_is_none_is_named_and_the_others_are_taken(group: object, said: str) -> None:
    finding = read({"targets": ["good:1"]}, group)
    assert names(finding.targets) == ["good:1"]
    assert said in finding.refused[0]


@pytest.mark.parametrize("groups", [{}, "x", None, 3, {"targets": ["a:1"]}])
def test_what_is_no_list_is_a_failure_and_not_an_empty_list(groups: object) -> None:
    with pytest.raises(SourceError, match="no list of groups") as raised:
        read_groups(groups, "fleet.json", "file/fleet", described_plainly)
    assert raised.value.reason is Reason.INVALID


def test_a_hundred_thousand_targets_are_cut_with_words() -> None:
    finding = read({"targets": [f"h{n}:1" for n in range(100_000)]}, build=described_plainly)
    assert len(finding.targets) == MAX_TARGETS
    assert finding.refused == (
        f"fleet.json: has more than {MAX_TARGETS} targets, the rest is left out; make several lists",
    )


def test_an_alias_that_unfolds_to_billions_of_targets_is_cut_too() -> None:
    targets = [f"h{n}:1" for n in range(5000)]
    assert len(read(*[{"targets": targets}] * 100_000, build=described_plainly).targets) == MAX_TARGETS


def test_thousands_of_bad_items_are_a_hundred_lines_and_a_number() -> None:
    finding = read({"targets": ["://"] * 5000, "labels": {}}, build=described_plainly)
    assert len(finding.refused) == MAX_REFUSED + 1
    assert finding.refused[-1] == f"fleet.json: {5000 - MAX_REFUSED} more"


_KEYS = ["targets", "labels", "engine", "__scheme__", "__pinchpoint_gpus", "x"]
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(_json, max_size=5))
def test_no_json_at_all_makes_it_raise(groups: list[object]) -> None:
    json.dumps(groups)
    finding = read(*groups)
    assert all(isinstance(target, EngineTarget) for target in finding.targets)
    assert all("\n" not in line for line in finding.refused)
