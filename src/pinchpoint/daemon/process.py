"""The daemon as this process: event loop, exit code, a farewell that nothing can hold up."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from pinchpoint.daemon import Daemon
from pinchpoint.outputs.web import ListenError


def _new_loop() -> asyncio.AbstractEventLoop:
    with contextlib.suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop()
    return asyncio.new_event_loop()


def live(build: Callable[[], Daemon]) -> NoReturn:
    """Builds the daemon inside a new event loop, runs it to its end and ends the process.

    A taken port is one line and exit code 2. Leaves by ``os._exit``: a thread that hangs in a driver or on a disk must
    not keep the process. A daemon that is to begin anew does so under the same process id, with the same command line.
    """
    runner = asyncio.Runner(loop_factory=_new_loop)
    code, begins_anew = 0, False
    try:
        begins_anew = runner.run(_run(build))
    except ListenError as error:
        sys.stderr.writelines(f"pinchpoint: {line}\n" for line in str(error).splitlines())
        code = 2
    except OSError as error:  # too few file descriptors even for an event loop
        sys.stderr.write(f"pinchpoint: can't start: {error.strerror or error}\n")
        code = 2
    except KeyboardInterrupt:
        code = 130
    with contextlib.suppress(OSError):  # a full disk, a pipe without a reader
        sys.stdout.flush()
        sys.stderr.flush()
    if begins_anew:
        code = os.EX_TEMPFAIL
        with contextlib.suppress(OSError):
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - our own command line
    os._exit(code)


async def _run(build: Callable[[], Daemon]) -> bool:
    daemon = build()
    await daemon.run()
    return daemon.begins_anew
