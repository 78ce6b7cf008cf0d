"""A real vLLM, a real pinchpoint, a real load: ``make test-vllm``. Exit code 1 when anything is not as it should be.

Installs the CPU build of vLLM into a virtual environment of its own (once), makes a small random model, and drives the
engine into idle, moderate, KV-saturated and slot-limited; kills it in mid-stream and starts it anew. The table goes to
stdout, progress to stderr. See docs/vllm-real.md.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from tests.real_vllm.install import InstallError, installed
from tests.real_vllm.journey import Journey, Row
from tests.real_vllm.report import print_table
from tests.real_vllm.server import EngineError
from tests.real_vllm.states import RUNS, SHAPES


def main() -> int:
    parser = argparse.ArgumentParser(prog="make test-vllm", description=__doc__)
    parser.add_argument("--shapes", action="store_true", help="two API servers, two replicas; takes 8 GB")
    runs = SHAPES if parser.parse_args().shapes else RUNS
    console, started, failure = Console(stderr=True, highlight=False), time.monotonic(), ""
    rows: list[Row] = []
    with console.status("") as status:

        def say(text: str) -> None:
            status.update(text)
            console.print(f"{time.monotonic() - started:4.0f} s  {text}", soft_wrap=True)

        try:
            home = installed(say)
            started = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="pinchpoint-vllm-") as name:
                journey = Journey(home=home, folder=Path(name), runs=runs, say=say, note=rows.append)
                asyncio.run(_until_ended(journey))
        except (InstallError, EngineError, TimeoutError, AssertionError) as error:
            failure = str(error)
        except (KeyboardInterrupt, asyncio.CancelledError):
            failure = "interrupted; everything that was started is ended"
    if rows:
        print_table(rows, time.monotonic() - started)
    if failure:
        console.print(f"[red]{escape(failure)}[/]", soft_wrap=True)
    return 0 if rows and not failure and all(row.good for row in rows) else 1


async def _until_ended(journey: Journey) -> None:
    """SIGTERM ends it as Ctrl-C does: in good order."""
    journeying = asyncio.ensure_future(journey.travel())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, journeying.cancel)
    await journeying


if __name__ == "__main__":
    sys.exit(main())
