"""diagnose against an engine behind TLS and a token."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pinchpoint.cli import app
from tests.fakes.certificates import Authority

BODY = Path("tests/data/engine-metrics/vllm-0.33.0-v1.prom").read_bytes()


class Guarded(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        let_in = self.headers["Authorization"] == "Bearer s3cret" and self.path == "/metrics"
        self.send_response(200 if let_in else 401)
        body = BODY if let_in else b""
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[str]:
    """A server whose authority and token are ``ours/ca.pem`` and ``token`` in the test's folder."""
    (tmp_path / "token").write_text("s3cret\n")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Guarded)
    server.daemon_threads = True
    context = Authority(tmp_path, "ours").issue("IP:127.0.0.1").server()
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_diagnose_is_let_in_by_a_token_file_and_trusts_the_given_authority(guarded: str, tmp_path: Path) -> None:
    options = ["--bearer-token-file", str(tmp_path / "token"), "--ca-file", str(tmp_path / "ours" / "ca.pem")]
    result = CliRunner().invoke(app, ["diagnose", guarded, *options, "--seconds", "5", "--json"])
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
