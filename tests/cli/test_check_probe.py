"""``pinchpoint probe --check`` as a user runs it, against an API on a real socket."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pinchpoint.cli import app
from pinchpoint.cli.check_probe import _of_url
from tests.fakes.openai_api import api
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.own_thread import in_a_thread

KEY = "sk-canary-0123456789abcdef"


@pytest.fixture(scope="module")
def server() -> Iterator[FakeOpenAI]:
    with in_a_thread(FakeOpenAI(api("/api/v1", keys=[KEY]))) as fake:
        yield fake


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def check(*arguments: str) -> Result:
    result = CliRunner().invoke(app, ["probe", "--check", *arguments], catch_exceptions=False)
    assert KEY not in result.output
    return result


def test_a_tools_file_with_a_misplaced_url_says_what_to_write(server: FakeOpenAI, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    env = {"ANTHROPIC_BASE_URL": f"{server.url}/api/v1", "ANTHROPIC_AUTH_TOKEN": KEY, "ANTHROPIC_MODEL": "gpt-4o"}
    file.write_text(json.dumps({"env": env}))
    result = check(str(file))
    assert result.exit_code == 1
    assert result.stdout.startswith(f"Claude Code ({file})\n")
    assert f"Remedy: write {server.url}/api into env.ANTHROPIC_BASE_URL." in result.stdout
    assert "  ok    request  2 tokens" in result.stdout
    answer = json.loads(check(str(file), "--json").stdout)
    assert [finding["part"] for finding in answer[0]["wrong"]] == ["url"]
    assert answer[0]["key_hint"] == "…cdef (26 characters)"


def test_a_url_with_a_key_file_is_fine_and_free_posts_nothing(server: FakeOpenAI, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY)
    server.requests.clear()
    url = f"{server.url}/api"
    result = check(url, "--api-key-file", str(tmp_path / "key"), "--model", "gpt-4o", "--free")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "  nothing is wrong that was tested")
    assert {request.method for request in server.requests} == {"GET"}


def test_configured_targets_are_checked_by_name_by_file_and_all_of_them(server: FakeOpenAI, tmp_path: Path) -> None:
    file = tmp_path / "pinchpoint.yaml"
    target = "{name: %s, url: '%s/api', model: gpt-4o, api_key: %s}"
    targets = ", ".join((target % ("good", server.url, KEY), target % ("bad", server.url, "sk-no")))
    file.write_text(f"probes: {{targets: [{targets}]}}\n")
    assert check("good", "--config.file", str(file)).exit_code == 0
    for arguments in (["--config.file", str(file)], [str(file)]):
        result = check(*arguments)
        assert result.exit_code == 1
        assert [line for line in result.stdout.splitlines() if not line.startswith(" ")] == ["good", "bad"]
        assert "wrong: the key: auth: HTTP 401" in result.stdout


def test_the_shared_settings_of_the_environment_are_checked(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("BASE_URL", f"{server.url}/api"), ("MODEL", "gpt-4o-mini"), ("API_KEY", KEY)):
        monkeypatch.setenv(f"TAOTOKEN_{name}", value)
    result = check()
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "taotoken")
    assert "taotoken: a probe may cost up to" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to check"),
        (["chat"], "no configured target, no URL and no file"),
        (["http://me:hunter2@h"], "http://***@h: holds credentials"),
        (["tests"], "is no file"),
    ],
)
def test_what_can_not_be_checked_is_one_line_and_exit_2(arguments: list[str], said: str) -> None:
    result = check(*arguments)
    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)
    assert said in result.stderr


@pytest.mark.parametrize(
    ("url", "placement"), [("https://relay.example/v1", "hosted"), ("http://127.0.0.1:1", "local")]
)
def test_a_url_that_nobody_knows_is_hosted_unless_it_is_this_machine(url: str, placement: str) -> None:
    assert _of_url(url, {}).placement == placement


def test_what_a_file_says_is_no_order_to_the_terminal(server: FakeOpenAI, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    url = f"{server.url}/api"
    file.write_text(
        'model_provider = "x\\u001b]0;owned\\u0007"\nmodel = "m\\u001b[2J"\n'
        f'[model_providers."x\\u001b]0;owned\\u0007"]\nbase_url = "{url}"\nenv_key = "K\\u001b[2J"\n'
    )
    said = check(str(file), "--free").output
    assert "owned" in said
    assert said.replace("\n", "").isprintable()


def test_what_a_hosted_check_costs_is_counted_and_a_cap_keeps_it_back(server: FakeOpenAI, tmp_path: Path) -> None:
    file = tmp_path / "pinchpoint.yaml"
    target = f"name: t, url: '{server.url}/api', placement: hosted, model: gpt-4o, api_key: {KEY}"
    caps = "caps: {tokens_per_day: 1216}"
    file.write_text(f"probes: {{targets: [{{{target}, {caps}}}]}}\nstate_directory: {tmp_path}/state\n")
    server.requests.clear()
    result = check("t", "t", "--config.file", str(file))
    assert result.stdout.count("  ok    request") == 1
    assert result.stdout.count("  -     request  not sent") == 1
    assert "t: not sent (budget" in result.stderr
    assert sum(request.method == "POST" for request in server.requests) == 1
