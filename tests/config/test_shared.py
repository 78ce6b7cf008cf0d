"""VLLM_… and TAOTOKEN_… from the environment, the secrets folder and a settings.json."""

import json
from pathlib import Path
from typing import Any

import pytest

from pinchpoint.config import ConfigError, Loaded, provenance, read
from pinchpoint.snapshot import Placement

KEY = "sk-canary-0123456789abcdef"
# As articles about vLLM and TaoToken show it.
SHOWN = """{
  "VLLM_MODEL": "/models/Qwen2.5-13B-Instruct",
  "VLLM_TENSOR_PARALLEL_SIZE": 2,
  "VLLM_GPU_MEMORY_UTILIZATION": 0.90,
  "VLLM_MAX_MODEL_LEN": 8192,
  "VLLM_MAX_NUM_SEQS": 16,
  "TAOTOKEN_BASE_URL": "https://taotoken.net/api",
  "TAOTOKEN_MODEL": "gpt-4o-mini"
}
"""
FACTS = {
    "model": "/models/Qwen2.5-13B-Instruct",
    "tensor_parallel_size": 2,
    "gpu_memory_utilization": 0.9,
    "max_model_len": 8192,
    "max_num_seqs": 16,
}


@pytest.fixture
def shown(tmp_path: Path) -> Path:
    file = tmp_path / "settings.json"
    file.write_text(SHOWN)
    return file


def loaded(file: Path | None = None, *, yaml: Path | None = None, secrets: Path | None = None, **names: str) -> Loaded:
    flags: dict[str, Any] = {"settings_file": file} if file else {}
    return read(yaml, secrets=secrets, flags=flags, environment=names)


def notes(of: Loaded) -> list[str]:
    return [str(notice) for notice in of.notices]


def written(folder: Path, text: str) -> Path:
    file = folder / "pinchpoint.yaml"
    file.write_text(text)
    return file


def test_a_settings_json_as_shown_and_a_key_are_the_engines_facts_and_a_hosted_probe(shown: Path) -> None:
    found = loaded(shown, TAOTOKEN_API_KEY=KEY)
    assert found.settings.local_engine.model_dump() == FACTS
    (target,) = found.settings.probes.targets
    assert (target.name, target.url, target.model) == ("taotoken", "https://taotoken.net/api", "gpt-4o-mini")
    assert (target.placement, target.interval_seconds) == (Placement.HOSTED, 300)
    assert target.api_key is not None
    assert target.api_key.get_secret_value() == KEY
    assert notes(found) == []


def test_the_same_from_the_environment_alone() -> None:
    names = {name: str(value) for name, value in json.loads(SHOWN).items()}
    found = loaded(**names, TAOTOKEN_API_KEY=KEY)
    assert found.settings.local_engine.model_dump() == FACTS
    assert [target.model for target in found.settings.probes.targets] == ["gpt-4o-mini"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"TAOTOKEN_API_KEY": KEY}, "is given without a model: nothing hosted is probed; add TAOTOKEN_MODEL"),
        ({"TAOTOKEN_MODEL": "m"}, "is given without a key: nothing hosted is probed; add TAOTOKEN_API_KEY"),
        ({"TAOTOKEN_BASE_URL": "https://x"}, "is given without a key: nothing hosted is probed"),
    ],
)
def test_half_of_what_a_hosted_probe_needs_spends_nothing_and_is_told(names: dict[str, str], said: str) -> None:
    found = loaded(**names)
    assert found.settings.probes.targets == []
    (note,) = notes(found)
    assert said in note
    assert KEY not in note


def test_the_key_may_lie_in_the_secrets_folder(shown: Path, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "TAOTOKEN_API_KEY").write_text(f"{KEY}\n")
    (target,) = loaded(shown, secrets=secrets).settings.probes.targets
    assert target.api_key is not None
    assert target.api_key.get_secret_value() == KEY
    (secrets / "TAOTOKEN_API_KEY").write_text("")
    with pytest.raises(ConfigError, match="TAOTOKEN_API_KEY: is empty, too long or holds more than one line"):
        loaded(shown, secrets=secrets)


def test_the_environment_beats_the_file_and_what_does_not_count_is_named(shown: Path) -> None:
    found = loaded(shown, VLLM_MAX_NUM_SEQS="32", VLLM_MAX_MODEL_LEN="8192", VLLM_GPU_MEMORY_UTILIZATION="0.9")
    assert found.settings.local_engine.max_num_seqs == 32
    (conflict, _) = notes(found)
    assert conflict == (
        f"{shown}:6: VLLM_MAX_NUM_SEQS: is 16, and environment VLLM_MAX_NUM_SEQS says 32, which counts; "
        "keep one of them"
    )


def test_the_yaml_file_beats_both_and_its_environment_beats_the_yaml_file(shown: Path, tmp_path: Path) -> None:
    yaml = written(tmp_path, f"settings_file: {shown}\nlocal_engine: {{max_num_seqs: 64, max_model_len: 4096}}\n")
    found = loaded(yaml=yaml, PINCHPOINT_LOCAL_ENGINE__MAX_MODEL_LEN="2048", VLLM_TENSOR_PARALLEL_SIZE="4")
    engine = found.settings.local_engine
    assert (engine.max_num_seqs, engine.max_model_len, engine.tensor_parallel_size) == (64, 2048, 4)
    assert engine.model == FACTS["model"]
    said = "\n".join(notes(found))
    assert f"VLLM_MAX_NUM_SEQS: is 16, and {yaml} (local_engine.max_num_seqs) says 64, which counts" in said
    assert "VLLM_MAX_MODEL_LEN: is 8192, and environment PINCHPOINT_LOCAL_ENGINE__MAX_MODEL_LEN says 2048" in said


def test_two_keys_that_differ_are_named_and_neither_is_shown(shown: Path) -> None:
    shown.write_text(SHOWN.replace("{\n", '{\n  "TAOTOKEN_API_KEY": "sk-other-0123456789abcdef",\n', 1))
    found = loaded(shown, TAOTOKEN_API_KEY=KEY)
    (note,) = notes(found)
    where = f"{shown}:2: TAOTOKEN_API_KEY"
    assert note == f"{where}: is not the key at environment TAOTOKEN_API_KEY, which counts; keep one of them"


def test_a_configured_target_of_that_api_lacks_nothing_and_is_not_probed_twice(shown: Path, tmp_path: Path) -> None:
    targets = (
        "[{name: hosted, url: 'https://taotoken.net/api/v1', placement: hosted, model: gpt-5, interval_seconds: 600}]"
    )
    found = loaded(shown, yaml=written(tmp_path, f"probes: {{targets: {targets}}}\n"), TAOTOKEN_API_KEY=KEY)
    (target,) = found.settings.probes.targets
    assert (target.name, target.model, target.interval_seconds) == ("hosted", "gpt-5", 600)
    assert target.api_key is not None
    assert target.api_key.get_secret_value() == KEY
    assert any("TAOTOKEN_MODEL: is gpt-4o-mini" in note and "says gpt-5, which counts" in note for note in notes(found))


def test_the_key_is_given_to_no_other_address_than_the_one_it_is_for(shown: Path, tmp_path: Path) -> None:
    elsewhere = "{name: taotoken, url: 'https://elsewhere.example', placement: hosted, model: m}"
    neighbour = "{name: other, url: 'https://taotoken.net/other', placement: hosted, model: m, api_key: its-own}"
    yaml = written(tmp_path, f"probes: {{targets: [{elsewhere}, {neighbour}]}}\n")
    first, second, *rest = loaded(shown, yaml=yaml, TAOTOKEN_API_KEY=KEY).settings.probes.targets
    assert first.api_key is None
    assert second.api_key is not None
    assert second.api_key.get_secret_value() == "its-own"
    assert rest == []


def test_other_targets_of_the_yaml_file_stay_beside_the_hosted_one(shown: Path, tmp_path: Path) -> None:
    yaml = written(tmp_path, "probes: {targets: [{name: chat, url: 'http://127.0.0.1:8000'}]}\n")
    found = loaded(shown, yaml=yaml, TAOTOKEN_API_KEY=KEY)
    assert [target.name for target in found.settings.probes.targets] == ["chat", "taotoken"]


def test_a_list_of_targets_above_the_file_is_the_whole_list_and_that_is_told(shown: Path) -> None:
    whole = '[{"name": "chat", "url": "http://127.0.0.1:8000"}]'
    found = loaded(shown, TAOTOKEN_API_KEY=KEY, PINCHPOINT_PROBES__TARGETS=whole)
    assert [target.name for target in found.settings.probes.targets] == ["chat"]
    assert any("environment PINCHPOINT_PROBES__TARGETS gives the whole list of targets" in n for n in notes(found))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SHOWN.replace("16,", '"two",'), "settings.json:6: local_engine.max_num_seqs: should be a whole number"),
        (SHOWN.replace("0.90", "9"), "settings.json:4: local_engine.gpu_memory_utilization: should be at most 1"),
        (SHOWN.replace("16,", "true,"), "settings.json:6: VLLM_MAX_NUM_SEQS: should be a text or a number"),
        (SHOWN.replace("https://", "ftp://"), "settings.json:7: probes.targets.0.url: is no http:// or https:// URL"),
        (SHOWN.replace("https://", "https://me:hunter2@"), "settings.json:7: probes.targets.0.url: holds credentials"),
        (SHOWN.replace("16,", "16"), "settings.json:7: is no valid JSON"),
        (SHOWN.replace("{", '{"TAOTOKEN_BASE_URL": "https://a.example",', 1), "1: TAOTOKEN_BASE_URL: is given twice"),
        ("[1]", "is no JSON object"),
        ("[" * 100_000, "is no JSON that can be read"),
        ("\xff", "settings.json:1: is no valid JSON"),
    ],
)
def test_a_mistake_in_a_settings_json_is_one_line_with_its_place(shown: Path, text: str, said: str) -> None:
    shown.write_text(text)
    with pytest.raises(ConfigError) as caught:
        loaded(shown, TAOTOKEN_API_KEY=KEY)
    (problem,) = map(str, caught.value.problems)
    assert said in problem
    assert KEY not in problem
    assert "hunter2" not in problem


def test_a_settings_json_that_is_not_there_or_has_no_end_is_told() -> None:
    with pytest.raises(ConfigError, match="no such file"):
        loaded(Path("/nowhere/settings.json"))
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        loaded(Path("/dev/zero"))


def test_a_variable_that_is_no_value_was_meant_for_another_program_perhaps_and_ends_nothing() -> None:
    found = loaded(VLLM_MAX_NUM_SEQS="many", VLLM_MAX_MODEL_LEN="auto", VLLM_TENSOR_PARALLEL_SIZE="", VLLM_MODEL="m")
    assert found.settings.local_engine.model_dump(exclude_none=True) == {"model": "m"}
    assert notes(found) == ["environment VLLM_MAX_NUM_SEQS: is 'many', which is no value: it is not used; correct it"]


def test_numbers_are_read_as_vllm_reads_its_own_flags(shown: Path) -> None:
    shown.write_text('{"VLLM_MAX_MODEL_LEN": "8k", "VLLM_MAX_NUM_SEQS": "16"}')
    engine = loaded(shown, VLLM_TENSOR_PARALLEL_SIZE="2").settings.local_engine
    assert (engine.max_model_len, engine.max_num_seqs, engine.tensor_parallel_size) == (8000, 16, 2)


def test_a_name_that_is_nearly_one_of_ours_is_told_and_vllms_own_are_not(shown: Path) -> None:
    shown.write_text('{"VLLM_MAX_NUM_SEQ": 16,\n"VLLM_USE_V1": 1, "EDITOR": "vi"}')
    assert notes(loaded(shown)) == [
        f"{shown}:1: VLLM_MAX_NUM_SEQ: is not read; did you mean `VLLM_MAX_NUM_SEQS`?",
    ]


def test_where_each_value_came_from_is_told_and_no_secret(shown: Path, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "PINCHPOINT_GPU__PAUSE_TOKEN").write_text("canary-token-of-a-secret")
    engine = "{name: a, url: 'http://a', bearer_token: canary-b, headers: {X-Key: canary-h}}"
    yaml = written(tmp_path, f"tick_seconds: 2\nengines:\n  targets:\n    - {engine}\n")
    found = loaded(shown, yaml=yaml, secrets=secrets, TAOTOKEN_API_KEY=KEY, PINCHPOINT_LOG__LEVEL="debug")
    told = {each.key: (each.value, each.where) for each in provenance(found.settings, found.origins)}
    assert told["tick_seconds"] == ("2.0", f"{yaml}:1")
    assert told["log.level"] == ("debug", "environment PINCHPOINT_LOG__LEVEL")
    assert told["gpu.pause_token"] == ("***", str(secrets / "PINCHPOINT_GPU__PAUSE_TOKEN"))
    assert told["local_engine.max_num_seqs"] == ("16", f"{shown}:6")
    assert told["probes.targets.0.model"] == ("gpt-4o-mini", f"{shown}:8")
    assert told["probes.targets.0.api_key"] == ("***", "environment TAOTOKEN_API_KEY")
    assert told["probes.targets.0.interval_seconds"] == ("300.0", "default")
    assert told["engines.targets.0.bearer_token"][0] == "***"
    assert told["engines.targets.0.headers.X-Key"] == ("***", f"{yaml}:4")
    assert told["settings_file"] == (str(shown), "flags")
    assert "web.listen_address" not in told
    for text in (str(told), repr(found), repr(found.settings)):
        assert "canary" not in text
