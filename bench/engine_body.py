"""A vLLM's ``/metrics`` whose values move with each answer: cheap to make, and no two scrapes alike."""

import random
from pathlib import Path

SERIES = 400
_FILE = Path(__file__).resolve().parents[1] / "tests/data/engine-metrics/vllm-0.33.0-v1.prom"
_MODEL = "Qwen/Qwen2.5-7B-Instruct"
_STANDING = ("process_max_fds", "process_start_time_seconds", "python_info", "vllm:engine_sleep_state", "vllm:cache_")
_HTTP = "http_requests_total"  # what vLLM's web framework counts: a series for each path and status fills up


class Body:
    """The exposition of engine ``number``: 400 series of vLLM 0.33, with its model's name and a load of its own.

    Counters and histograms rise, gauges wander. A histogram stays one: its buckets rise by more the larger they are.
    """

    def __init__(self, number: int) -> None:
        self._chance = random.Random(number)
        self._answers = number  # they differ from the start
        self._gauges: list[tuple[int, float]] = []  # where, and up to what
        self._counters: list[tuple[int, float, float]] = []  # where, from what, and by how much an answer
        kinds: dict[str, str] = {}
        pieces: list[str] = []
        self._values: list[float | str] = []
        for line in _lines(f"{_MODEL}-{number}"):
            if line.startswith("#"):
                if line.startswith("# TYPE "):
                    kinds[line.split()[2]] = line.split()[3]
                pieces.append(line.replace("%", "%%"))
                continue
            head, _, value = line.rpartition(" ")
            pieces.append(head.replace("%", "%%") + " %s")
            self._place(head.partition("{")[0], kinds, value)
        self._template = "\n".join(pieces) + "\n"

    def answer(self) -> bytes:
        """The body now. Each call moves the values."""
        self._answers += 1
        for at, limit in self._gauges:
            self._values[at] = float(self._chance.randint(0, int(limit))) if limit > 1 else self._chance.random()
        for at, begin, step in self._counters:
            self._values[at] = begin + self._answers * step
        return (self._template % tuple(self._values)).encode()

    def _place(self, name: str, kinds: dict[str, str], value: str) -> None:
        at = len(self._values)
        self._values.append(value)
        if name.endswith("_created") or name.startswith(_STANDING):
            return
        if kinds.get(name) == "gauge":
            self._gauges.append((at, 1.0 if name.endswith("_perc") else max(20.0, float(value))))
            return
        begin, step = float(value), float(at)  # buckets follow each other, so where one stands is how large it is
        if name.endswith("_count"):  # as the bucket before it, which is +Inf's
            step -= 1
        elif name.endswith("_sum"):  # at the mean that the histogram has
            _, count, times = self._counters[-1]
            step = times * (begin / count if count else 1.0)
        self._counters.append((at, begin, step))


def _lines(model: str) -> list[str]:
    lines = _FILE.read_text().replace(_MODEL, model).splitlines()
    short = SERIES - sum(not line.startswith("#") for line in lines)
    http = (f'{_HTTP}{{handler="/v1/{n}",method="POST",status="2xx"}} {n + 1}.0' for n in range(short))
    return [*lines, f"# HELP {_HTTP} Requests by path.", f"# TYPE {_HTTP} counter", *http]
