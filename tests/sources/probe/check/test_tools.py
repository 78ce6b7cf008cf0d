"""Configurations of coding tools: what each would ask, with which key, for which model."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.sources.probe.check import Part, ToolFileError, Triple, triples_in
from pinchpoint.sources.probe.check.tools.sql_rows import rows_of
from pinchpoint.sources.probe.dialects import DialectName

KEY = "sk-canary-0123456789abcdef"
CONFIG_TOML = """
model = "gpt-5-codex"
model_provider = "taotoken"

[model_providers.taotoken]
name = "TaoToken"
base_url = "https://taotoken.net/api/v1"
wire_api = "responses"
"""
CLAUDE: dict[str, Any] = {
    "env": {
        "ANTHROPIC_BASE_URL": "https://taotoken.net/api",
        "ANTHROPIC_AUTH_TOKEN": KEY,
        "ANTHROPIC_MODEL": "claude-sonnet-4-5",
    }
}


def written(folder: Path, **files: str | dict[str, Any]) -> Path:
    """The first of the files, whose names are written with an underscore for the dot."""
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name.replace("_", ".")).write_text(text)
    return folder / next(iter(files)).replace("_", ".")


def one(path: Path, **environment: str) -> Triple:
    (triple,) = triples_in(path, environment)
    assert KEY not in repr(triple)
    return triple


def test_codex_has_url_and_model_in_one_file_and_the_key_in_the_other_whichever_is_named(tmp_path: Path) -> None:
    written(tmp_path, config_toml=CONFIG_TOML, auth_json={"OPENAI_API_KEY": KEY})
    for name in ("config.toml", "auth.json"):
        triple = one(tmp_path / name)
        assert (triple.url, triple.key, triple.model) == ("https://taotoken.net/api/v1", KEY, "gpt-5-codex")
        assert (triple.dialect, triple.appended) == (DialectName.OPENAI_RESPONSES, "")
        assert triple.places[Part.URL] == "model_providers.taotoken.base_url of config.toml"
        assert triple.flaws == ()


def test_codex_key_may_be_in_a_variable_or_in_the_file_and_a_variable_that_is_not_set_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, config_toml=CONFIG_TOML + 'env_key = "TAO_KEY"\n')
    assert one(path, TAO_KEY=KEY).key == KEY
    (flaw,) = one(path).flaws
    assert (flaw.part, flaw.remedy) == (Part.KEY, "export TAO_KEY where Codex runs")
    path.write_text(CONFIG_TOML + f'experimental_bearer_token = "{KEY}"\nwire_api2 = 1\n')
    assert one(path).key == KEY


def test_a_key_of_the_environment_that_no_file_names_goes_to_openai_alone(tmp_path: Path) -> None:
    path = written(tmp_path, config_toml=CONFIG_TOML.replace("taotoken.net", "relay.example"))
    assert one(path, OPENAI_API_KEY=KEY).key == ""
    path.write_text('model = "gpt-5-codex"')
    assert one(path, OPENAI_API_KEY=KEY).key == KEY


def test_codex_profile_wins_and_a_provider_that_is_not_there_is_told(tmp_path: Path) -> None:
    text = (
        CONFIG_TOML.replace("\nmodel =", '\nprofile = "cheap"\nmodel =') + '\n[profiles.cheap]\nmodel = "gpt-5-mini"\n'
    )
    assert one(written(tmp_path, config_toml=text)).model == "gpt-5-mini"
    path = written(tmp_path, config_toml='model = "m"\nmodel_provider = "gone"\n')
    (flaw,) = one(path).flaws
    assert "there is no [model_providers.gone]" in flaw.what


def test_a_codex_login_is_no_api_key(tmp_path: Path) -> None:
    auth = {"OPENAI_API_KEY": None, "tokens": {"access_token": f"eyJ{KEY}", "refresh_token": KEY}}
    triple = one(written(tmp_path, auth_json=auth, config_toml=CONFIG_TOML))
    assert triple.key == ""
    (flaw,) = triple.flaws
    assert "holds a ChatGPT login (OAuth) and no API key" in flaw.what


def test_an_auth_json_with_all_three_is_checked_and_what_codex_does_not_read_of_it_is_told(tmp_path: Path) -> None:
    auth = {"base_url": "https://taotoken.net/api/v1", "api_key": KEY, "model": "gpt-4o-mini"}
    triple = one(written(tmp_path, auth_json=auth))
    assert (triple.url, triple.key, triple.model) == (auth["base_url"], KEY, "gpt-4o-mini")
    assert [flaw.part for flaw in triple.flaws] == [Part.URL, Part.MODEL]


def test_claude_code_has_all_three_in_its_env(tmp_path: Path) -> None:
    triple = one(written(tmp_path, settings_json=CLAUDE))
    assert (triple.url, triple.key, triple.model) == ("https://taotoken.net/api", KEY, "claude-sonnet-4-5")
    assert (triple.dialect, triple.appended, triple.bearer) == (DialectName.ANTHROPIC, "/v1", True)


def test_claude_code_alone_is_at_anthropic_with_the_other_header_and_an_alias_is_resolved(tmp_path: Path) -> None:
    env = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_DEFAULT_OPUS_MODEL": "glm-4.6"}
    triple = one(written(tmp_path, settings_json={"model": "opus", "env": env}))
    assert (triple.url, triple.bearer, triple.model) == ("https://api.anthropic.com", False, "glm-4.6")
    assert triple.places[Part.KEY] == "env.ANTHROPIC_API_KEY"


def test_claude_code_with_two_keys_is_a_note_and_a_helper_is_not_run(tmp_path: Path) -> None:
    both = {"env": {**CLAUDE["env"], "ANTHROPIC_API_KEY": "sk-other"}}
    assert one(written(tmp_path, settings_json=both)).notes[0].part is Part.KEY
    ran = tmp_path / "ran"
    helper = {"apiKeyHelper": f"touch {ran}", "env": {"ANTHROPIC_BASE_URL": "https://x"}}
    assert "apiKeyHelper, a program, which a check does not run" in one(written(tmp_path, s_json=helper)).flaws[0].what
    assert not ran.exists()


@pytest.mark.parametrize(
    ("state", "secrets", "expected"),
    [
        (
            {"actModeApiProvider": "openai", "openAiBaseUrl": "https://x/v1", "actModeOpenAiModelId": "m"},
            {"openAiApiKey": KEY},
            ("https://x/v1", "m", DialectName.OPENAI_CHAT, ""),
        ),
        (
            {"apiProvider": "openai", "openAiBaseUrl": "https://x", "openAiModelId": "m", "openAiApiKey": KEY},
            {},
            ("https://x", "m", DialectName.OPENAI_CHAT, ""),
        ),
        (
            {"actModeApiProvider": "anthropic", "anthropicBaseUrl": "https://x", "actModeApiModelId": "c"},
            {"apiKey": KEY},
            ("https://x", "c", DialectName.ANTHROPIC, "/v1"),
        ),
        (
            {"actModeApiProvider": "openrouter", "actModeOpenRouterModelId": "v/m"},
            {"openRouterApiKey": KEY},
            ("https://openrouter.ai/api/v1", "v/m", DialectName.OPENAI_CHAT, ""),
        ),
    ],
)
def test_cline_keeps_its_key_beside_its_state(
    tmp_path: Path, state: dict[str, Any], secrets: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    triple = one(written(tmp_path, globalState_json=state, secrets_json=secrets))
    assert (triple.url, triple.model, triple.dialect, triple.appended) == expected
    assert triple.key == KEY


def test_clines_secrets_lead_to_its_state_and_a_provider_that_is_not_spoken_is_told(tmp_path: Path) -> None:
    state = {"actModeApiProvider": "openai", "openAiBaseUrl": "https://x/v1", "actModeOpenAiModelId": "m"}
    assert one(written(tmp_path, secrets_json={"openAiApiKey": KEY}, globalState_json=state)).url == "https://x/v1"
    assert "bedrock" in one(written(tmp_path, state_json={"apiProvider": "bedrock"})).flaws[0].what


SWITCH: dict[str, Any] = {
    "version": 2,
    "claude": {
        "current": "b",
        "providers": {
            "a": {"id": "a", "name": "Other", "settingsConfig": {}},
            "b": {"id": "b", "name": "Tao", "settingsConfig": CLAUDE},
        },
    },
    "codex": {
        "current": "c",
        "providers": {
            "c": {
                "id": "c",
                "name": "Tao",
                "settingsConfig": {"auth": {"OPENAI_API_KEY": KEY}, "config": CONFIG_TOML},
            }
        },
    },
    "mcp": {"servers": {}},
}


def tells_both(triples: list[Triple]) -> bool:
    found = {(triple.name.partition(" (")[0], triple.url, triple.key, triple.model) for triple in triples}
    return found == {
        ("CC Switch: Tao for Claude Code", "https://taotoken.net/api", KEY, "claude-sonnet-4-5"),
        ("CC Switch: Tao for Codex", "https://taotoken.net/api/v1", KEY, "gpt-5-codex"),
    }


def test_cc_switch_has_a_current_provider_for_each_tool(tmp_path: Path) -> None:
    assert tells_both(triples_in(written(tmp_path, config_json=SWITCH), {}))


SCHEMA = """
CREATE TABLE providers (id TEXT NOT NULL, app_type TEXT NOT NULL, name TEXT NOT NULL, settings_config TEXT NOT NULL,
  created_at TEXT DEFAULT (datetime('now')), is_current BOOLEAN NOT NULL DEFAULT 0, PRIMARY KEY (id, app_type));
CREATE INDEX by_name ON providers(name);
"""
ROW = 'INSERT INTO "providers" ("id", "app_type", "name", "settings_config", "is_current") VALUES (?, ?, ?, ?, ?)'


def rows() -> list[tuple[object, ...]]:
    return [
        (each["id"], app, each["name"], json.dumps(each["settingsConfig"]), each["id"] == SWITCH[app]["current"])
        for app in ("claude", "codex")
        for each in SWITCH[app]["providers"].values()
    ]


def test_cc_switch_database_is_read_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "cc-switch.db"
    database = sqlite3.connect(path)
    database.executescript(SCHEMA)
    database.executemany(ROW, rows())
    database.commit()
    database.close()
    before = path.read_bytes()
    path.chmod(0o400)
    assert tells_both(triples_in(path, {}))
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["cc-switch.db"]
    path.chmod(0o600)
    path.write_bytes(b"no database at all")
    with pytest.raises(ToolFileError, match="is no database of CC Switch"):
        triples_in(path, {})


@pytest.mark.parametrize(
    "view",
    [
        "SELECT 'claude' app_type, 'n' name, hex(zeroblob(450000000)) settings_config, 1 is_current",
        (
            "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) "
            "SELECT 'claude' app_type, 'n' name, '{}' settings_config, x < 0 is_current FROM r"
        ),
    ],
)
def test_a_view_in_place_of_the_table_gets_neither_memory_nor_time(tmp_path: Path, view: str) -> None:
    path = tmp_path / "cc-switch.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"CREATE VIEW providers AS {view}")
    code = (
        "import resource, sys; from pathlib import Path; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
    )
    code += "from pinchpoint.sources.probe.check import ToolFileError, triples_in\n"
    code += "try: triples_in(Path(sys.argv[1]), {})\nexcept ToolFileError as error: print(error)"
    ended = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=10, check=False
    )
    assert ended.stdout.startswith(str(path))  # one line that says why


def test_a_pipe_is_no_database_and_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "cc-switch.db"
    os.mkfifo(path)
    code = (
        "import sys; from pathlib import Path\nfrom pinchpoint.sources.probe.check import ToolFileError, triples_in\n"
    )
    code += "try: triples_in(Path(sys.argv[1]), {})\nexcept ToolFileError as error: print(error)"
    ended = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=10, check=False
    )
    assert "is no file" in ended.stdout


def test_a_long_text_in_a_dump_takes_about_its_own_size_of_memory() -> None:
    text = "INSERT INTO providers (a) VALUES ('" + "a" * 2_000_000
    code = "import resource, sys; from pinchpoint.sources.probe.check.tools.sql_rows import rows_of\n"
    code += "text = sys.stdin.read() * 1; before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
    code += "list(rows_of(text, 'providers')); print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    ended = subprocess.run(
        [sys.executable, "-c", code], input=text, capture_output=True, text=True, timeout=10, check=False
    )
    assert int(ended.stdout) < 100_000  # KiB


def export(*more: str) -> str:
    def quoted(value: object) -> str:
        return str(int(value)) if isinstance(value, bool) else "'" + str(value).replace("'", "''") + "'"

    inserts = [ROW.partition("(?")[0] + f"({', '.join(map(quoted, row))});" for row in rows()]
    head = "-- CC Switch SQLite 导出\nPRAGMA foreign_keys=OFF;\nPRAGMA user_version=9;\nBEGIN TRANSACTION;"
    return "\n".join((head, SCHEMA, *inserts, *more, "COMMIT;"))


def test_an_export_of_cc_switch_is_read(tmp_path: Path) -> None:
    path = tmp_path / "export.sql"
    path.write_text(export())
    assert tells_both(triples_in(path, {}))


def test_rows_that_come_together_and_the_text_of_an_attack_are_rows_and_text(tmp_path: Path) -> None:
    path, other = tmp_path / "export.sql", tmp_path / "written.db"
    together = export().replace(f";\n{ROW.partition('(?')[0]}", ",\n")
    assert together.count("VALUES") == 1
    path.write_text(together + f"\nATTACH '{other}' AS o; VACUUM INTO '{other}';")
    assert tells_both(triples_in(path, {}))
    assert not other.exists()


@given(st.lists(st.tuples(*[st.text(alphabet="a'(),;\n\"", max_size=8)] * 3), max_size=5))
def test_whatever_texts_a_row_holds_they_are_read_back(wanted: list[tuple[str, str, str]]) -> None:
    def quoted(row: tuple[str, ...]) -> str:
        return "(" + ", ".join("'" + value.replace("'", "''") + "'" for value in row) + ")"

    text = 'INSERT INTO "providers" ("a", "b", "c") VALUES ' + ",\n".join(map(quoted, wanted)) + ";"
    assert [tuple(row.values()) for row in rows_of(text, "providers")] == wanted


@given(st.text(alphabet="(),' 1x;", max_size=40))
def test_a_dump_that_is_none_ends_quietly(rest: str) -> None:
    assert len(list(rows_of(f'INSERT INTO "providers" ("a") VALUES {rest}', "providers"))) <= len(rest)


def test_the_shared_settings_json_needs_its_key_from_the_environment(tmp_path: Path) -> None:
    path = written(tmp_path, settings_json={"TAOTOKEN_MODEL": "gpt-4o-mini", "VLLM_MAX_NUM_SEQS": 16})
    triple = one(path, TAOTOKEN_API_KEY=KEY)
    assert (triple.url, triple.key, triple.model) == ("https://taotoken.net/api", KEY, "gpt-4o-mini")
    assert triple.appended is None
    assert one(path).key == ""


def test_an_env_file_is_a_file_of_variables(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text(f"# mine\nexport ANTHROPIC_BASE_URL='https://x'\nANTHROPIC_API_KEY={KEY}\nANTHROPIC_MODEL=$OTHER\n")
    triple = one(path)
    assert (triple.url, triple.key, triple.model) == ("https://x", KEY, "$OTHER")
    path.write_text(f"OPENAI_BASE_URL=https://x/v1\nOPENAI_API_KEY={KEY}\nOPENAI_MODEL=m\n")
    assert (one(path).url, one(path).key, one(path).model) == ("https://x/v1", KEY, "m")
    path.write_text(f"TAOTOKEN_API_KEY={KEY}\n")
    assert (one(path).url, one(path).key) == ("https://taotoken.net/api", KEY)


@pytest.mark.parametrize("names", [("base_url", "api_key", "model"), ("baseUrl", "apiKey", "modelId")])
def test_any_other_file_that_names_the_three_in_plain_words_is_read(tmp_path: Path, names: tuple[str, ...]) -> None:
    values = ("https://taotoken.net/api/v1", KEY, "gpt-4o-mini")
    triple = one(written(tmp_path, tool_json=dict(zip(names, values, strict=True))))
    assert (triple.url, triple.key, triple.model) == values


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.json", b"{", "x.json:1: is no valid JSON"),
        ("x.toml", f'key = "{KEY}'.encode(), "is no valid TOML"),
        ("x.json", b"[1]", "holds no object with settings"),
        ("x.json", b"{}", "names no base URL, key and model that are known"),
        ("x.json", b'{"editor": "vi"}', "names no base URL, key and model that are known"),
        ("x.json", b"\xff\xfe", "is not UTF-8 text"),
        ("x.json", b"[" * 100_000, "can't be read as json"),
        ("x.json", b" " * (5 << 20), "is larger than 4 MiB"),
        ("x.sql", b"SELECT", "names no base URL, key and model"),
    ],
)
def test_a_file_that_tells_nothing_is_one_line(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ToolFileError) as caught:
        triples_in(tmp_path / name, {})
    assert said in str(caught.value)
    assert KEY not in str(caught.value)


def test_a_pipe_and_a_folder_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    for path in (tmp_path / "pipe.json", tmp_path, tmp_path / "absent.db"):
        with pytest.raises(ToolFileError):
            triples_in(path, {})


@pytest.mark.parametrize("value", [1, None, [], {}, "", "x" * 10_000, True])
def test_values_of_the_wrong_kind_are_none(tmp_path: Path, value: object) -> None:
    for document in (
        {"env": {"ANTHROPIC_BASE_URL": value, "ANTHROPIC_AUTH_TOKEN": value}, "model": value},
        {"model_providers": value, "model_provider": value, "base_url": value},
        {"apiProvider": value, "openAiBaseUrl": value},
        {"claude": {"providers": value, "current": value}},
        {"OPENAI_API_KEY": value, "tokens": value},
    ):
        path = written(tmp_path, auth_json=json.dumps(document))
        try:
            triples = triples_in(path, {})
        except ToolFileError:
            continue
        assert all(isinstance(each.url, str) and isinstance(each.key, str) for each in triples)
