"""Drives the real engine from state to state, the daemon beside it, and notes what pinchpoint said in each."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.daemon import RunningDaemon
from tests.real_vllm import checks
from tests.real_vllm.checks import Check
from tests.real_vllm.load import Ledger, Load
from tests.real_vllm.server import Vllm, free_port, make_model
from tests.real_vllm.states import Run, State
from tests.real_vllm.watching import Look, Pinchpoint, write_config

LOOK_EVERY_SECONDS = 1.0
STEADY_AFTER_SECONDS = 14.0  # the load has reached its level, and the daemon's window holds nothing older
PATIENCE_SECONDS = 60.0  # to see something that a daemon with these intervals sees within seconds
SETTLE_SECONDS = 15.0  # for the last scrape, and for what is asked less often than metrics
MID_STREAM_SECONDS = 4.0
DEAD = frozenset({"engine_dead", "connect_refused"})
BUSY = Load(clients=4, prompt_words=60, max_tokens=400)


@dataclass(slots=True, kw_only=True)
class Row:
    """A state as it was seen: means over its steady part, the class at its end, and every check."""

    name: str
    seconds: float
    looks: list[Look] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return all(check.good for check in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Journey:
    """``say`` hears what is being done, ``note`` gets each state as soon as it was seen."""

    home: Path  # of vLLM
    folder: Path  # for the model, the configuration and the logs
    runs: Sequence[Run]
    say: Callable[[str], None]
    note: Callable[[Row], None]

    async def travel(self) -> None:
        port, config, model = free_port(), self.folder / "pinchpoint.yaml", self.folder / "model"
        self.say("making a model of random weights")
        await asyncio.to_thread(make_model, self.home, model)
        write_config(config)
        with RunningDaemon(self.folder, "--config.file", str(config)) as daemon:
            pinchpoint = Pinchpoint(daemon, f"http://127.0.0.1:{port}")
            for number, run in enumerate(self.runs):
                flags = ("--max-num-seqs", str(run.max_num_seqs), *run.flags)
                self.say(f"starting vLLM: {' '.join(flags)}")
                async with Vllm(self.home, model, port, self.folder / f"vllm-{number}.log", *flags) as engine:
                    self.say(f"vLLM is ready after {engine.seconds_to_ready:.0f} s")
                    await self._run(run, engine, pinchpoint, config)

    async def _run(self, run: Run, engine: Vllm, pinchpoint: Pinchpoint, config: Path) -> None:
        ledger = Ledger()
        self.note(await _seen(run, engine, pinchpoint, config))
        for state in run.states:
            self.say(f"{state.name}: {state.seconds:.0f} s")
            row = await _state(state, run, engine, pinchpoint, ledger)
            if state.load:
                self.say("waiting until the requests under way are done")
            row.checks += await _settled(lambda: checks.of_the_counters(pinchpoint, ledger))
            self.note(row)
        if run.killed:
            self.say("killing the engine core in mid-stream")
            self.note(await _killed(engine, pinchpoint))


async def _seen(run: Run, engine: Vllm, pinchpoint: Pinchpoint, config: Path) -> Row:
    """The engine comes up: found and then named the first time, back in a new epoch after that."""
    started = time.monotonic()
    if first := not pinchpoint.engine:
        await pinchpoint.find(PATIENCE_SECONDS)
        found = pinchpoint.engine
        await pinchpoint.name_it(config, PATIENCE_SECONDS)
    else:
        await pinchpoint.until(lambda: pinchpoint.total("up") == 1, "the engine to be back", PATIENCE_SECONDS)
    row = Row(name="found, then named" if first else "back", seconds=time.monotonic() - started)
    row.checks += await _settled(lambda: checks.of_the_facts(pinchpoint, engine, run))
    if first:
        row.checks.append(checks.equal("series of the name it was found by", pinchpoint.still_has(found), False))
    else:
        tokens = pinchpoint.total("generation_tokens_total")
        row.checks.append(Check("tokens of the new epoch", tokens, "0, or none yet", not tokens))
        row.checks.append(checks.equal("restart in the log", pinchpoint.logged("engine restarted"), True))
    return row


async def _state(state: State, run: Run, engine: Vllm, pinchpoint: Pinchpoint, ledger: Ledger) -> Row:
    ending, started = asyncio.Event(), time.monotonic()
    driving = asyncio.create_task(state.load.drive(engine.url, ledger, ending)) if state.load else None
    looks: list[Look] = []
    while (now := time.monotonic()) < started + state.seconds:
        looks.append(await asyncio.to_thread(pinchpoint.look))
        await asyncio.sleep(max(0.0, now + LOOK_EVERY_SECONDS - time.monotonic()))
    steady = [look for look in looks if look.at >= started + STEADY_AFTER_SECONDS]
    row = Row(name=state.name, seconds=time.monotonic() - started, looks=steady)
    row.checks += checks.of_the_state(state, run, steady)
    ending.set()
    if driving:
        await driving
    row.checks.append(checks.equal("turned away", ledger.refused > 0, state.refuses))
    return row


async def _settled(look: Callable[[], Iterator[Check]]) -> list[Check]:
    """The checks once all of them are good, or as they are when they don't come to be."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        found = await asyncio.to_thread(lambda: list(look()))
        if all(check.good for check in found) or time.monotonic() > deadline:
            return found
        await asyncio.sleep(LOOK_EVERY_SECONDS)


async def _killed(engine: Vllm, pinchpoint: Pinchpoint) -> Row:
    """The core dies while it streams: down with a reason, no figure of a dead engine stays."""
    ledger, ending = Ledger(), asyncio.Event()
    driving = asyncio.create_task(BUSY.drive(engine.url, ledger, ending))
    await asyncio.sleep(MID_STREAM_SECONDS)
    streaming = sum(request.first_token is not None and request.ended is None for request in ledger.requests)
    started = time.monotonic()
    engine.kill_core()
    ending.set()
    await pinchpoint.until(lambda: pinchpoint.total("up") == 0, "engine_up to be 0", PATIENCE_SECONDS)
    row = Row(name="core killed", seconds=time.monotonic() - started)
    reason = await asyncio.to_thread(pinchpoint.absent_because)
    await pinchpoint.until(lambda: pinchpoint.look().bottleneck == "no_data", "the class no_data", PATIENCE_SECONDS)
    down = await asyncio.to_thread(pinchpoint.look)
    row.looks.append(down)
    row.checks += [
        checks.within("requests in mid-stream", streaming, 1, BUSY.clients),
        checks.Check("why it is down", reason, "engine_dead or connect_refused", reason in DEAD),
        checks.equal("running, waiting, KV of a dead engine", (down.running, down.waiting, down.kv), (None,) * 3),
    ]
    await driving
    return row
