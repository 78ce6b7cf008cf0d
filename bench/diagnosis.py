"""How often the diagnosis is right: random worlds, labelled by playing each again with one thing made generous.

Prints tables, or JSON with --json; progress goes to stderr. Judges nothing: exit code 0 when it could measure.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a file

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import pinchpoint
from bench import diagnosis_tables as tables
from bench import vllm_doctor
from bench.diagnosis_rows import Row, row
from pinchpoint import __version__
from pinchpoint.simulator.truth import SECONDS, Truth

_JUDGED_BY = ("simulator", "physics")  # what a truth depends on


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0-99", metavar="A-B", help="which worlds, both ends included; default 0-99")
    half = parser.add_mutually_exclusive_group()
    half.add_argument("--odd", action="store_true", help="only odd seeds, which no threshold was tuned on")
    half.add_argument("--even", action="store_true", help="only even seeds, which are for development")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes; default one a core")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep recordings and truths there, and use those")
    parser.add_argument("--from", type=Path, metavar="DIR", dest="source", help="judge what lies there, play nothing")
    parser.add_argument("--ablate", action="store_true", help="also without GPM, GPU, host and probe data")
    parser.add_argument("--no-peer", action="store_true", help="leave vllm-doctor out")
    parser.add_argument("--wrong", action="store_true", help="list the worlds that were misjudged")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    arguments = parser.parse_args()
    seeds = _seeds(arguments.seeds)
    if not seeds:
        parser.error(f"--seeds {arguments.seeds}: give a range like 0-99, of numbers below a million")
    if arguments.odd or arguments.even:
        seeds = [seed for seed in seeds if seed % 2 == arguments.odd]
    if not seeds:
        parser.error(f"--seeds {arguments.seeds}: none of them is {'odd' if arguments.odd else 'even'}")
    if arguments.jobs < 1:
        parser.error(f"--jobs {arguments.jobs}: it takes at least one process")
    if arguments.source is not None and not arguments.source.is_dir():
        parser.error(f"--from {arguments.source}: is no folder; give the one that --out was given")
    doctor = None if arguments.no_peer else vllm_doctor.find()
    if isinstance(doctor, str):
        print(doctor, file=sys.stderr, flush=True)
        doctor = None
    try:
        with _home(arguments.source or arguments.out) as home:
            rows = sorted(
                _judged(home, list(seeds), arguments.jobs, arguments.ablate, doctor, play=arguments.source is None),
                key=lambda one: one.name,
            )
    except KeyboardInterrupt:
        kept = f"; what was found until then is in {arguments.out}" if arguments.out else ""
        print(f"diagnosis.py: stopped{kept}", file=sys.stderr)
        sys.exit(130)
    except (OSError, _TruthError) as error:
        parser.error(str(error))
    if not rows:
        parser.error(f"none of these seeds has a recording and a truth in {arguments.source}")
    half_name = "odd" if arguments.odd else "even" if arguments.even else "all"
    setting = {"pinchpoint": __version__, "seeds": f"{arguments.seeds} ({half_name})", "seconds": SECONDS}
    if arguments.json:
        print(json.dumps(tables.as_json(rows, setting), indent=1))
    else:
        tables.print_tables(rows, setting, wrong=arguments.wrong)


class _TruthError(Exception):
    """A ``truth.json`` that can't be read. The message is one line that names file, cause and remedy."""


def _seeds(text: str) -> Sequence[int]:
    """None where the text is no range."""
    found = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", text)
    return range(int(found[1]), int(found[2] or found[1]) + 1) if found else ()


@contextmanager
def _home(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="pinchpoint-bench-") as name:
        yield Path(name)


def _judged(
    home: Path, seeds: list[int], jobs: int, ablate: bool, doctor: vllm_doctor.Doctor | None, *, play: bool
) -> Iterator[Row]:
    played_by = _fingerprint()
    truths = _truths(home, None if not play else played_by)
    names = {seed: f"{seed:06d}" for seed in seeds}
    if not play:
        names = {seed: name for seed, name in names.items() if name in truths and (home / name).is_dir()}
    console, told = Console(stderr=True), 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with ProcessPoolExecutor(jobs) as pool, Progress(*columns, console=console) as bar:
        task = bar.add_task("worlds", total=len(names))
        waiting: dict[Future[Row], str] = {}
        for seed, name in names.items():
            needed = play and not _kept(home / name, truths)
            waiting[pool.submit(row, seed, home / name, truths.get(name), ablate, doctor, needed)] = name
        try:
            for done in as_completed(waiting):
                judged = done.result()
                truths[waiting[done]] = judged.truth
                bar.advance(task)
                tenth = 10 * sum(future.done() for future in waiting) // len(waiting)
                if not console.is_terminal and tenth > told:  # which shows no bar
                    console.print(f"{10 * tenth} % of {len(waiting)} worlds")
                    told = tenth
                yield judged
        finally:  # what has been found is not sought again
            pool.shutdown(cancel_futures=True)
            if play:
                worlds = {name: asdict(truth) for name, truth in sorted(truths.items())}
                text = json.dumps({"simulator": played_by, "worlds": worlds}, indent=1)
                new = home / "truth.json.new"
                new.write_text(text + "\n")
                new.replace(home / "truth.json")


def _kept(folder: Path, truths: Mapping[str, Truth]) -> bool:
    """Its recording is there and as young as its truth."""
    return folder.name in truths and (folder / "meta.json").exists()


def _truths(home: Path, found_by: str | None) -> dict[str, Truth]:
    """By the recording's folder; none that another simulator has found, unless any will do (``None``)."""
    path = home / "truth.json"
    try:
        kept: dict[str, Any] = json.loads(path.read_text())
        if found_by not in (None, kept["simulator"]):
            return {}
        return {name: Truth(**{**truth, "ties": tuple(truth["ties"])}) for name, truth in kept["worlds"].items()}
    except FileNotFoundError:
        return {}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _TruthError(f"{path}: is no file of truths ({type(error).__name__}); remove it") from None


def _fingerprint() -> str:
    """Of the sources that a truth depends on."""
    digest, package = hashlib.sha256(), Path(pinchpoint.__file__).parent
    for path in sorted(path for room in _JUDGED_BY for path in (package / room).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    main()
