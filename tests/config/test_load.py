"""The configuration: every mistake at once, each with its file, its key and a remedy."""

from pathlib import Path

import pytest

from pinchpoint.config import ConfigError, Settings, load


def write(folder: Path, text: str) -> Path:
    file = folder / "pinchpoint.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def mistakes(file: Path | None = None, **more: object) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(file, **{"environment": {}, **more})  # type: ignore[arg-type]
    return [str(problem) for problem in caught.value.problems]


def test_without_a_file_everything_has_a_default_and_nothing_hosted_is_called() -> None:
    settings = load(environment={})
    assert settings.gpu.enabled
    assert settings.discovery.looks_on_loopback(configured_engines=0)
    assert not settings.engines.targets
    assert not settings.probes.targets


def test_three_mistakes_give_three_messages_with_file_line_key_and_remedy(tmp_path: Path) -> None:
    file = write(tmp_path, "web:\n  listen_adress: ':1'\ntick_seconds: fast\nengines:\n  interval_seconds: 0.01\n")
    messages = mistakes(file)
    assert len(messages) == 3
    unknown = next(message for message in messages if "listen_adress" in message)
    assert unknown == f"{file}:2: web.listen_adress: is no setting; did you mean `listen_address`?"
    wrong_type = next(message for message in messages if "tick_seconds" in message)
    assert wrong_type.startswith(f"{file}:3: tick_seconds: should be a number; it means: ")
    assert "Seconds between two ticks" in wrong_type
    out_of_range = next(message for message in messages if "interval_seconds" in message)
    assert out_of_range.startswith(f"{file}:5: engines.interval_seconds: should be at least 1;")
    assert all("\n" not in message for message in messages)


def test_a_mistake_in_a_list_names_the_entry_and_its_line(tmp_path: Path) -> None:
    file = write(
        tmp_path, "engines:\n  targets:\n    - name: a\n      url: http://h:1\n    - name: b\n      ulr: http://h:2\n"
    )
    messages = mistakes(file)
    assert any(
        message.startswith(f"{file}:6: engines.targets.1.ulr: is no setting; did you mean `url`?")
        for message in messages
    )
    assert any(message.startswith(f"{file}:5: engines.targets.1.url: is missing; add `url:`") for message in messages)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("web: [1\n", "is no valid YAML"),
        ("- a\n- b\n", "is no mapping of sections; start with a section"),
        ("just words\n", "is no mapping of sections"),
        ("1: {}\n", "is no mapping of sections"),
        ("web: !!python/object/apply:os.system ['true']\n", "is no valid YAML"),
        ("a: &a [*a]\n", "a: is no setting"),
    ],
)
def test_a_file_that_is_no_configuration_is_one_line(tmp_path: Path, text: str, expected: str) -> None:
    file = write(tmp_path, text)
    (message,) = mistakes(file)
    assert message.startswith(str(file))
    assert expected in message


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    assert "no such file" in mistakes(tmp_path / "absent.yaml")[0]
    assert "directory" in mistakes(tmp_path)[0]
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert "is not UTF-8 text" in mistakes(tmp_path / "binary")[0]
    (tmp_path / "huge").write_bytes(b"#" * (2 << 20))
    assert "larger than 1 MiB" in mistakes(tmp_path / "huge")[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tick_seconds: 2024-13-01", "is no valid YAML: month must be in 1..12"),
        ("tick_seconds: !!int abc", "is no valid YAML: invalid literal"),
        (f"tick_seconds: {'9' * 5000}", "is no valid YAML: Exceeds the limit"),
        ("tick_seconds: \x01", "is no valid YAML: special characters are not allowed"),
        ("tick_seconds: 1\ntick_seconds: 2", "2: tick_seconds: is given twice, first in line 1; keep one of them"),
        ("log: {level: info, level: debug}", "1: log.level: is given twice, first in line 1"),
        ('"\\ud800": 1', "unable to parse raw data as a unicode string"),
        ("engines: {targets: [{name: a, url: 'http://x', max_num_seqs: 1" + "0" * 400 + "}]}", "should be at most"),
    ],
)
def test_yaml_that_python_can_not_hold_is_one_line(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "pinchpoint.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(file, environment={})
    assert expected in str(caught.value)
    assert len(caught.value.problems) == 1


def test_a_merge_key_may_be_overridden(tmp_path: Path) -> None:
    file = tmp_path / "pinchpoint.yaml"
    target = "{name: %s, url: 'http://%s', slo: %s}"
    a, b = target % ("a", "a", "&s {ttft_seconds: 1}"), target % ("b", "b", "{<<: *s, ttft_seconds: 3}")
    file.write_text(f"engines: {{targets: [{a}, {b}]}}")
    first, second = load(file, environment={}).engines.targets
    assert (first.slo.ttft_seconds, second.slo.ttft_seconds) == (1, 3)


def test_a_device_without_an_end_is_read_no_further_than_the_limit() -> None:
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        load(Path("/dev/zero"), environment={})


def test_a_password_in_the_place_of_a_port_does_not_print(tmp_path: Path) -> None:
    file = tmp_path / "pinchpoint.yaml"
    file.write_text("engines: {targets: [{name: a, url: 'http://admin:hunter2'}]}")
    with pytest.raises(ConfigError) as caught:
        load(file, environment={})
    assert "hunter2" not in str(caught.value)
    assert "engines.targets.0.url" in str(caught.value)


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    assert load(write(tmp_path, "# nothing\n"), environment={}).tick_seconds == Settings().tick_seconds
    assert load(write(tmp_path, "gpu:\nweb:\n"), environment={}).gpu == Settings().gpu


def test_flags_beat_the_environment_and_the_environment_beats_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, "web:\n  listen_address: ':1'\n  max_requests: 7\ntick_seconds: 3\n")
    variables = {"PINCHPOINT_WEB__LISTEN_ADDRESS": ":2", "PINCHPOINT_TICK_SECONDS": "4"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        settings = load(file, flags={"web": {"listen_address": ":3"}})
    assert settings.web.listen_address == ":3"
    assert settings.web.max_requests == 7
    assert settings.tick_seconds == 4


def test_a_misspelt_variable_is_a_mistake() -> None:
    (message,) = mistakes(environment={"PINCHPOINT_WEBB__LISTEN_ADDRESS": ":1", "HOME": "/"})
    assert message == "environment PINCHPOINT_WEBB__LISTEN_ADDRESS: is no setting; did you mean `web`?"


def test_a_bad_value_in_a_variable_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINCHPOINT_TICK_SECONDS", "soon")
    with pytest.raises(ConfigError, match="environment PINCHPOINT_TICK_SECONDS: tick_seconds: should be a number"):
        load()


def test_mistakes_within_and_across_sections_are_told_together_each_at_its_line(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        """
diagnosis: {window_seconds: 400}
tick_seconds: fast
engines:
  targets:
    - {name: chat, url: 'http://h:1', gpus: 0}
    - {name: rag, url: 'http://h:1/'}
    - {name: chat, url: 'http://h:3'}
probes:
  targets:
    - {name: one, url: 'http://h:1', engine: caht}
    - {name: one, url: 'http://h:2', engine: rag}
""",
    )
    messages = sorted(mistakes(file))
    expected = sorted(
        (
            f"{file}:2: diagnosis.window_seconds: diagnosis.window_seconds (400) is above history_seconds (300): ",
            f"{file}:3: tick_seconds: should be a number; it means: ",
            f"{file}:6: engines.targets.0.gpus: should be a list, like [a, b]; ",
            f"{file}:7: engines.targets.1.url: is the URL of engine 'chat' too; ",
            f"{file}:8: engines.targets.2.name: 'chat' is given twice; ",
            f"{file}:11: probes.targets.0.engine: names no configured engine ('caht'); use one of: chat, rag",
            f"{file}:12: probes.targets.1.name: 'one' is given twice; ",
        )
    )
    assert len(messages) == len(expected), messages
    for message, start in zip(messages, expected, strict=True):
        assert message.startswith(start)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("history_seconds: 60\ndiagnosis: {window_seconds: 90}\n", "diagnosis.window_seconds"),
        ("diagnosis: {idle_seconds: 30}\n", "diagnosis.idle_seconds"),
        ("diagnosis: {stall_seconds: 21}\n", "diagnosis.stall_seconds"),
        ("diagnosis: {window_seconds: 12}\n", "diagnosis.window_seconds"),  # its limits are defaults: 10 and 15
        ("diagnosis: {full_scrapes: 2}\n", "diagnosis.full_scrapes"),
        ("diagnosis: {queue_share: 0.5, kv_share_begins: 0.9}\n", "diagnosis.kv_share_begins"),
        ("engines: {interval_seconds: 100, stale_after_seconds: 300}\n", "engines.interval_seconds"),
        (
            "engines: {interval_seconds: 200, stale_after_seconds: 600}\ndiagnosis: {stale_seconds: 600}\n",
            "engines.interval_seconds",
        ),
    ],
)
def test_settings_that_would_never_give_a_verdict_are_a_mistake(tmp_path: Path, text: str, key: str) -> None:
    (message,) = mistakes(write(tmp_path, text))
    assert f" {key}: " in message
    assert "lower" in message.partition("; ")[2]


def test_engines_of_one_url_and_two_paths_are_two_engines(tmp_path: Path) -> None:
    engines = "".join(f"    - {{name: {n}, url: 'http://h', metrics_path: '/{n}'}}\n" for n in "ab")
    assert len(load(write(tmp_path, f"engines:\n  targets:\n{engines}"), environment={}).engines.targets) == 2


def test_a_probe_may_name_an_engine_that_discovery_finds(tmp_path: Path) -> None:
    probe = "probes: {targets: [{name: p, url: 'http://h:1', engine: found}]}\n"
    assert load(write(tmp_path, probe), environment={}).probes.targets[0].engine == "found"
    engine = "engines: {targets: [{name: a, url: 'http://h:1'}]}\n"
    assert load(write(tmp_path, probe + engine + "discovery: {loopback: true}\n"), environment={})
    assert "names no configured engine" in mistakes(write(tmp_path, probe + engine))[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("web: 3\n", "web: should be a mapping of key: value"),
        ("engines: {targets: 3}\n", "engines.targets: should be a list, like [a, b]"),
        ("gpu: {enabled: perhaps}\n", "gpu.enabled: should be true or false"),
        ("gpu: {gpus_expected: 1.5}\n", "gpu.gpus_expected: should be a whole number"),
        ("log: {level: loud}\n", "log.level: should be 'debug', 'info', 'warning' or 'error'"),
        ("tick_seconds: 9\n", "tick_seconds: should be at most 5"),
        ("diagnosis: {window_seconds: 0, idle_seconds: 0, stall_seconds: 0}\n", "diagnosis.window_seconds: should be"),
        ("web: {listen_address: [1]}\n", "web.listen_address: should be text"),
    ],
)
def test_a_wrong_type_is_told_in_the_words_of_a_yaml_file(tmp_path: Path, text: str, words: str) -> None:
    assert any(words in message for message in mistakes(write(tmp_path, text)))


def test_an_environment_that_is_given_stands_in_for_the_processs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINCHPOINT_TICK_SECONDS", "4")
    assert load(environment={}).tick_seconds == 1
    assert load(environment={"pinchpoint_tick_seconds": "3"}).tick_seconds == 3
    assert load().tick_seconds == 4
    assert Settings().tick_seconds == 1


def test_a_variable_that_is_no_json_is_told(tmp_path: Path) -> None:
    (message,) = mistakes(environment={"PINCHPOINT_ENGINES": "[nonsense"})
    assert message == "environment: engines: holds no valid JSON; write lists and mappings as JSON in a variable"


def test_a_secret_comes_from_the_secrets_folder_and_never_prints(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "PINCHPOINT_TICK_SECONDS").write_text("2\n")
    assert load(secrets=secrets, environment={}).tick_seconds == 2
    file = write(tmp_path, "probes:\n  targets:\n    - {name: a, url: 'http://h:1', api_key: s3cret-key}\n")
    assert "s3cret-key" not in repr(load(file, environment={}))
    file = write(tmp_path, "probes:\n  targets:\n    - {name: a, url: 'http://h:1', api_key: [s3cret-key]}\n")
    assert "s3cret-key" not in "\n".join(mistakes(file))


def test_a_secrets_folder_that_is_not_there_is_said() -> None:
    assert mistakes(secrets=Path("/nowhere/at/all")) == [
        "/nowhere/at/all: is no folder; name the secrets folder, or leave it out"
    ]


def test_every_setting_says_what_it_means() -> None:
    """Each field documents its unit, its default and the reason of the default: --help, errors and docs use it."""
    from pydantic import BaseModel

    def undocumented(model: type[BaseModel], path: str) -> list[str]:
        found = []
        for name, field in model.model_fields.items():
            kinds = [field.annotation, *getattr(field.annotation, "__args__", ())]
            nested = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
            for kind in nested:
                found += undocumented(kind, f"{path}{name}.")
            if not nested and not field.description:
                found.append(f"{path}{name}")
        return found

    assert undocumented(Settings, "") == []


def test_two_lists_of_engines_with_one_name_and_what_can_t_be_a_list_are_mistakes(tmp_path: Path) -> None:
    files = "[{name: fleet, paths: [/a.json]}, {name: fleet, paths: [/b.json]}, {name: c, paths: [c.json]}]"
    text = f"discovery:\n  files: {files}\n  http: [{{name: fleet, url: 'cmdb/engines'}}]\n  shard: 4/4\n"
    found = mistakes(write(tmp_path, text))
    for said in (
        "discovery.files.1.name: 'fleet' is given twice",
        "discovery.files.2.paths.0: is no absolute path that ends in .json, .yml, .yaml",
        "discovery.http.0.url: is no http:// or https:// URL with a host; write it like http://cmdb:8080/engines",
        "discovery.shard: '4/4' is no shard; the first of N (at most 1000) is 0/N, the last is 3/4",
    ):
        assert any(said in message for message in found), found
    assert len(found) == 4


def test_a_probe_may_name_an_engine_that_a_list_will_bring(tmp_path: Path) -> None:
    probe = "{name: p, url: 'http://b:1', engine: b}"
    engines = f"engines: {{targets: [{{name: a, url: 'http://a:1'}}]}}\nprobes: {{targets: [{probe}]}}\n"
    assert "names no configured engine" in mistakes(write(tmp_path, engines))[0]
    listed = "discovery: {files: [{name: fleet, paths: [/a.json]}]}\n"
    assert load(write(tmp_path, engines + listed), environment={}).discovery.uses_lists
