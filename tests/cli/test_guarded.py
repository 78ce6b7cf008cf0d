"""diagnose against an engine behind TLS and a token."""

import json
from pathlib import Path

from typer.testing import CliRunner

from pinchpoint.cli import app
from tests.fakes.certificates import Authority
from tests.fakes.guarded_engine import GuardedEngine


def test_diagnose_is_let_in_by_a_token_file_and_trusts_the_given_authority(tmp_path: Path) -> None:
    ours, token = Authority(tmp_path), tmp_path / "token"
    token.write_text("s3cret\n")
    with GuardedEngine(ours.issue("IP:127.0.0.1"), "s3cret") as engine:
        options = ["--bearer-token-file", str(token), "--ca-file", str(ours.file)]
        result = CliRunner().invoke(app, ["diagnose", engine.url, *options, "--seconds", "5", "--json"])
    assert json.loads(result.stdout)["class"] != "no_data", result.output
    assert "s3cret" not in result.output


def test_a_file_that_is_missing_is_one_line_and_wrong_usage(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["diagnose", "https://h", "--ca-file", str(tmp_path / "no.pem")])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert f"ca_file {tmp_path}/no.pem: no such file or directory" in line


def test_credentials_without_a_url_to_send_them_to_are_refused() -> None:
    result = CliRunner().invoke(app, ["diagnose", "--bearer-token-file", "token"])
    assert result.exit_code == 2
    assert "give one" in result.stderr
