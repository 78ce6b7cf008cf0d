"""A process that probes a hosted target as fast as its caps allow, to be killed: ``python -m tests.fakes.spender``.

It forks a child for each line on stdin, the day's cap in tokens, which is quicker than a new interpreter, and prints
the child's pid; the child probes until it is killed, or until it may not, which is exit code 3. The code is printed
too.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

import structlog

from pinchpoint.snapshot import ProbeSkip
from pinchpoint.sources.probe import Prober, ProbeSettings
from pinchpoint.sources.probe.spend import Admission, Purse

NOON = 1_796_040_000.0  # 2026-11-30 12:00 UTC, and so it stays: no test of a day ends at midnight
REFUSED = 3


async def _spend(folder: Path, given: dict[str, object], cap: int) -> int:
    settings = ProbeSettings.model_validate({"targets": [{**given, "caps": {"tokens_per_day": cap}}]})
    (target,) = settings.targets
    prober = Prober(target)
    admission = Admission(target, settings.caps.caps(), Purse(folder, wall=lambda: NOON), seconds_apart=0)
    while True:
        answer = await admission.ask(0.0)
        if isinstance(answer, ProbeSkip):
            await prober.close()
            return REFUSED
        await admission.settle(answer, await prober.probe(), 0.0)


def main() -> None:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    folder, given = Path(sys.argv[1]), json.loads(sys.argv[2])
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            os._exit(asyncio.run(_spend(folder, given, int(line))))
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
