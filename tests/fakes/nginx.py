"""Debian's nginx in front of another server, as a process of its own."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin")

_CONFIG = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass {upstream}; {directives} }}
  }}
}}
"""


@contextmanager
def nginx(folder: Path, upstream: str, directives: str = "") -> Iterator[str]:
    """The URL of an nginx that passes everything to ``upstream``, with further ``directives`` for that."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = folder / "nginx.conf"
    config.write_text(_CONFIG.format(folder=folder, port=port, upstream=upstream, directives=directives))
    assert NGINX is not None, "install Debian's nginx"
    process = subprocess.Popen([NGINX, "-c", str(config), "-e", str(folder / "error.log")])
    try:
        _wait_until_it_listens(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return
