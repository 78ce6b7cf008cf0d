"""``pinchpoint gpu pause`` and ``resume``: a running pinchpoint lets go of the driver, and takes it again."""

import http.client
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Annotated

import typer

from pinchpoint.cli.exits import BAD_NEWS, fail

VARIABLE = "PINCHPOINT_GPU__PAUSE_TOKEN"  # the daemon's own, so that one environment file serves both
TIMEOUT_SECONDS = 400.0  # a pause may wait as long as the daemon's deadline, which may be 300 s

Url = Annotated[str, typer.Argument(help="The running pinchpoint.")]
TokenFile = Annotated[Path | None, typer.Option(help=f"File with the pause token. Default: {VARIABLE}.")]

gpu = typer.Typer(help="Have a running pinchpoint let go of the GPUs' driver.", no_args_is_help=True)


@gpu.command()
def pause(url: Url = "http://127.0.0.1:10770", token_file: TokenFile = None) -> None:
    """Shut NVML down in a running pinchpoint, so that a GPU can be reset or unbound.

    Exit code 0: it has let go; 1: it has not, the line says why; 2: wrong usage or input.

    \b
    Example:
      pinchpoint gpu pause && nvidia-smi --gpu-reset -i 3; pinchpoint gpu resume
    """
    _post(url, "pause", token_file)


@gpu.command()
def resume(url: Url = "http://127.0.0.1:10770", token_file: TokenFile = None) -> None:
    """Start NVML again in a running pinchpoint.

    Exit code 0: it is being started; 1: it is not; 2: wrong usage or input.

    \b
    Example:
      pinchpoint gpu resume http://gpu-node-1:10770 --token-file pause.token
    """
    _post(url, "resume", token_file)


def _post(url: str, what: str, token_file: Path | None) -> None:
    from pinchpoint.logs import redact

    shown = redact(url)
    if not url.startswith(("http://", "https://")):
        fail(f"{shown}: is no URL; write http://HOST:PORT")
    request = urllib.request.Request(f"{url.rstrip('/')}/-/gpu/{what}", method="POST")  # noqa: S310 - checked above
    token = _token(token_file)
    request.add_header("Authorization", f"Bearer {token}")
    try:
        with _direct().open(request, timeout=TIMEOUT_SECONDS) as answer:
            print(answer.read(4096).decode(errors="replace").strip().replace(token, "***"))
    except urllib.error.HTTPError as error:
        text = error.read(4096).decode(errors="replace").strip().replace(token, "***")  # who answers may be anybody
        fail(f"{shown}: {text or error.reason}", BAD_NEWS if error.code == 503 else 2)
    except (OSError, ValueError, http.client.HTTPException) as error:
        fail(f"{shown}: {getattr(error, 'reason', error)}; see whether pinchpoint runs there")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def _direct() -> urllib.request.OpenerDirector:
    """Goes to the URL and nowhere else: a redirect or a proxy would be given the token."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects())


def _token(file: Path | None) -> str:
    try:
        token = file.read_text(encoding="utf-8").strip() if file else os.environ.get(VARIABLE, "")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file}: can't be read ({error}); name the file with the pause token")
    if not token or not token.isascii() or not token.isprintable():
        fail(f"no pause token; name its file with --token-file, or set {VARIABLE}")
    return token
