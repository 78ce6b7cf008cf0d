"""An engine's /metrics behind TLS and a token, in a thread of the test."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from tests.fakes.certificates import Certificate

BODY = Path("tests/data/engine-metrics/vllm-0.33.0-v1.prom").read_bytes()


class GuardedEngine:
    """Lets in who sends ``token``, which may be changed at any time."""

    def __init__(self, certificate: Certificate, token: str) -> None:
        self.token = token
        self.scrapes = 0
        engine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                let_in = self.headers["Authorization"] == f"Bearer {engine.token}" and self.path == "/metrics"
                engine.scrapes += let_in
                self.send_response(200 if let_in else 401)
                self.send_header("Content-Length", str(len(BODY) if let_in else 0))
                self.end_headers()
                self.wfile.write(BODY if let_in else b"")

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.socket = certificate.server().wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self.url = f"https://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
