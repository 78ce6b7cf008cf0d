"""How long an explanation takes: a recording by ``diagnose --replay``, and one tick's verdict on 16 engines.

Prints a table, or JSON with --json; progress goes to stderr. Judges nothing: exit code 0 when it could measure.
"""

import argparse
import compileall
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a file; the fakes are the tests'

import pinchpoint as package
from bench import report
from bench.engine_body import Body
from bench.figures import Figure
from bench.subjects import Subject
from pinchpoint import __version__
from pinchpoint.diagnosis import Memory, Thresholds, diagnose
from pinchpoint.physics import LLAMA_3_3_70B
from pinchpoint.snapshot import EngineFacts, EngineReading, EngineTarget, GpuReading, HostReading, Snapshot, Window
from pinchpoint.sources.engine import Recall, reading_from_body

SCRAPES, ENGINES, GPUS = 150, 16, 8
HISTORY_SECONDS, SCRAPE_SECONDS = 300, 5  # the daemon's window and its interval
REPLAY_SECONDS, TICK_MILLISECONDS = 2.0, 5.0  # the aims
FACTS = EngineFacts(
    kind="vllm",
    model_config=LLAMA_3_3_70B,
    gpu_name="NVIDIA H100 80GB HBM3",
    tensor_parallel_size=2,
    max_num_seqs=256,
    max_num_batched_tokens=8192,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="how many times each is measured; default 5")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything: to see that it runs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    compileall.compile_dir(Path(package.__file__).parent, quiet=1)  # as pip leaves it
    ours = Subject("pinchpoint", __version__, 0, 0)
    scrapes, history, repeats = (15, 30, 1) if arguments.quick else (SCRAPES, HISTORY_SECONDS, arguments.repeats)
    with tempfile.TemporaryDirectory(prefix="pinchpoint-bench-") as name:
        size = write_recording(Path(name), scrapes)
        figures = [*measure_replay(Path(name), repeats), *measure_ticks(history, repeats)]
    setting = (
        f"{scrapes} scrapes of {size / 1000:.0f} kB with {GPUS} GPUs and a host; {ENGINES} engines, {history} s"
        + (" (quick: not to quote)" if arguments.quick else "")
    )
    if arguments.json:
        print(json.dumps(report.as_json(figures, [ours], setting), indent=2))
    else:
        report.print_table(figures, [ours], setting)


def write_recording(folder: Path, scrapes: int) -> int:
    """Returns the bytes of a scrape. No two are alike: all counters rise, the gauges jump."""
    body, size = Body(1), 0
    for step in range(scrapes):
        size = (folder / f"{step:03}.prom").write_bytes(body.answer())
    meta = {"step_seconds": 1, "engine": dict(FACTS.known()), "gpus": [str(gpu) for gpu in range(GPUS)]}
    (folder / "meta.json").write_text(json.dumps(meta))
    card = {"utilization_ratio": 0.9, "power_watts": 400.0, "power_limit_watts": 700.0, "dram_active_ratio": 0.5}
    gpus = [{"gpu": str(gpu), "uuid": f"GPU-{gpu}", **card, "clock_hertz": {"sm": 1.9e9}} for gpu in range(GPUS)]
    lines = [json.dumps({"t": step, "gpus": gpus}) for step in range(scrapes)]
    (folder / "gpu.jsonl").write_text("\n".join(lines))
    host = [json.dumps({"t": step, "cpu_count": 64, "cpu_throttled_ratio": 0.0}) for step in range(scrapes)]
    (folder / "host.jsonl").write_text("\n".join(host))
    return size


def measure_replay(folder: Path, repeats: int) -> Iterator[Figure]:
    """The command as a script runs it, from its start to its end, and its CPU time: a busy machine adds no more to it
    than that its caches are shared."""
    rounds, cpu = [], []
    for repeat in range(1 + repeats):
        progress(f"replaying, {repeat} of {repeats}")
        started, worked = time.perf_counter(), _cpu_of_children()
        subprocess.run(
            [sys.executable, "-m", "pinchpoint", "diagnose", "--replay", str(folder), "--json"],
            check=False,
            stdout=subprocess.DEVNULL,
        )
        rounds.append([time.perf_counter() - started])
        cpu.append([_cpu_of_children() - worked])
    for what, taken, aim in (("", rounds, REPLAY_SECONDS), (", CPU", cpu, None)):
        yield Figure(
            what=f"diagnose --replay, command start included{what}",
            unit="s",
            rounds={"pinchpoint": taken[1:]},  # the first finds nothing in the page cache
            aim=aim,
        )


def _cpu_of_children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def measure_ticks(history: int, repeats: int) -> Iterator[Figure]:
    """Verdicts of all engines over a full window, by CPU time: scraped in turn as the daemon does, and all at once.

    All GPUs are read anew in each tick, and no two scrapes are alike.
    """
    thresholds = Thresholds()
    for what, at_once in (("scraped in turn", False), ("all scraped anew", True)):
        rounds = []
        for repeat in range(repeats):
            progress(f"{ENGINES} engines, {what}, {repeat} of {repeats}")
            rounds.append(list(_ticks(thresholds, history, 2 * SCRAPE_SECONDS, at_once=at_once)))
        yield Figure(
            what=f"diagnose() of {ENGINES} engines, {what}, CPU",
            unit="ms",
            rounds={"pinchpoint": rounds},
            aim=TICK_MILLISECONDS,
        )


def _ticks(thresholds: Thresholds, history: int, measured: int, *, at_once: bool) -> Iterator[float]:
    """Milliseconds of each of the last ticks, once the window is full."""
    names = [f"engine-{number}" for number in range(ENGINES)]
    bodies, recalls = [Body(number) for number in range(ENGINES)], [Recall() for _ in names]
    newest: dict[str, EngineReading] = {}
    window, memory = Window(history), Memory(thresholds)
    for second in range(history + measured):
        for number, name in enumerate(names):
            if (at_once and second % SCRAPE_SECONDS == 0) or (not at_once and (second + number) % SCRAPE_SECONDS == 0):
                target = EngineTarget(engine=name, url="", facts=FACTS, gpus=(str(number % GPUS),))
                newest[name] = reading_from_body(target, bodies[number].answer(), None, float(second), recalls[number])
        window = window.append(_snapshot(second, newest))
        if second < history:
            continue
        if second == history:  # what the daemon remembers by now
            for name in newest:
                diagnose(window, name, float(second), thresholds, memory)
            continue
        if at_once and second % SCRAPE_SECONDS:
            continue
        started = time.process_time()
        for name in newest:
            diagnose(window, name, float(second), thresholds, memory)
        yield 1e3 * (time.process_time() - started)


def _snapshot(second: int, newest: dict[str, EngineReading]) -> Snapshot:
    at = float(second)
    gpus = tuple(
        GpuReading(
            gpu=str(gpu),
            uuid=f"GPU-{gpu}",
            at=at,
            utilization_ratio=0.9 + second % 3 / 100,
            power_watts=400.0 + second % 7,
            power_limit_watts=700.0,
            clock_hertz={"sm": 1.9e9},
            clock_max_hertz={"sm": 1.98e9},
            throttle_active={"sw_power_cap": 0.0, "hw_slowdown": 0.0},
        )
        for gpu in range(GPUS)
    )
    host = HostReading(at=at, cpu_count=64.0, cpu_throttled_ratio=0.0, cpu_utilization_ratio=0.3)
    return Snapshot(at=at, engines=tuple(newest.values()), gpus=gpus, host=host)


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
