"""A file that holds one secret: a token or a password."""

from pathlib import Path

from pinchpoint.sources.http.regular_file import open_regular

MAX_SECRET_BYTES = 16_384  # a signed token of a large organisation has four


def read_secret(path: str | Path) -> str:
    """The secret in ``path``, without the white space around it. Blocks, and for as long as the disk does.

    Raises ``ValueError`` with cause and remedy, and none of the content, when there is no such secret.
    """
    try:
        with open_regular(path) as file:
            content = file.read(MAX_SECRET_BYTES + 1)
    except OSError as error:
        cause = (error.strerror or type(error).__name__).lower()
        raise ValueError(f"{path} can't be read: {cause}; make it readable to pinchpoint") from None
    try:
        secret = content.decode().strip()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; put the bare secret into it") from None
    if not secret or not secret.isprintable() or len(content) > MAX_SECRET_BYTES:
        raise ValueError(f"{path} is empty, too long or holds more than one line; put the bare secret into it")
    return secret
