"""``pinchpoint gpu``: the token goes to the URL and nowhere else."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pinchpoint.cli import app

TOKEN = "a-token-that-is-long-enough"


class Elsewhere(http.server.ThreadingHTTPServer):
    """Sends whoever asks for a pause to another place, and remembers who came there."""

    daemon_threads = True

    class Handler(http.server.BaseHTTPRequestHandler):
        server: "Elsewhere"

        def do_POST(self) -> None:
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_address[1]}/elsewhere")
            self.end_headers()

        def do_GET(self) -> None:
            self.server.followed.append(self.headers.get("Authorization", ""))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.followed: list[str] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


@pytest.fixture
def server() -> Iterator[Elsewhere]:
    server = Elsewhere()
    yield server
    server.shutdown()
    server.server_close()


def test_a_redirect_or_a_proxy_is_not_given_the_token(
    server: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # nobody listens there: a proxied request would fail
    (tmp_path / "token").write_text(TOKEN)
    url = f"http://127.0.0.1:{server.server_address[1]}"
    result = CliRunner().invoke(
        app, ["gpu", "pause", url, "--token-file", str(tmp_path / "token")], catch_exceptions=False
    )
    assert result.exit_code == 2
    assert "Found" in result.stderr or "302" in result.stderr
    assert server.followed == []
    assert TOKEN not in result.output
