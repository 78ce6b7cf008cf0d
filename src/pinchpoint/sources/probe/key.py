"""Where a target's API key comes from: its setting, its file, or an environment variable. It goes into no message."""

import asyncio
import os
from pathlib import Path

from pinchpoint.sources.http.regular_file import open_regular
from pinchpoint.sources.probe.settings import ProbeTargetSettings

MAX_KEY_BYTES = 16 * 1024


class KeyUnusableError(Exception):
    """There is a key, but none that could be sent. The message says why, and never the key."""


async def key_of(target: ProbeTargetSettings) -> str:
    """The key, ``""`` for none. A file is read anew each time, in a thread, so that it can be rotated."""
    if target.api_key_file is not None:
        try:
            async with asyncio.timeout(target.deadlines.connect):
                key = await asyncio.to_thread(_read, target.api_key_file)
        except OSError as error:
            cause = error.strerror or type(error).__name__
            raise KeyUnusableError(f"api_key_file {target.api_key_file}: {cause}") from None
    elif target.api_key is not None:
        key = target.api_key.get_secret_value()
    else:
        key = os.environ.get(target.api_key_variable or "", "")
    if not (key.isascii() and key.isprintable()):
        raise KeyUnusableError("the key holds characters that no key has")
    return key


def _read(path: Path) -> str:
    with open_regular(path) as file:
        return file.read(MAX_KEY_BYTES).decode("utf-8", errors="replace").strip()
