"""What vLLM says of its server as a whole: families without an engine label.

Source: vllm/v1/metrics/loggers.py and the API server's own metrics, 0.6.6 to 0.33.
"""

from collections.abc import Mapping

from pinchpoint.snapshot import FrontendReading
from pinchpoint.sources.engine.exposition import Families, Sample
from pinchpoint.sources.engine.vocabulary import Fields, Kind, Term, read_term

MAX_ADAPTERS_NAMED = 32
MAX_NAME_CHARS = 100
_LATEST_TIME = 3e9  # of one clock, in this century; the sum of two processes' times is beyond it

_REJECTIONS = Term(Kind.COUNTER, ("vllm:admission_rejections",), by="reason")
_OPERATIONS = Term(Kind.GAUGE, ("vllm:sleep_mode_operations_in_flight",), by="operation")


def read_frontend(families: Families, found: Fields) -> FrontendReading:
    """The server's own counts; what is odd goes to ``found``. No I/O, raises nothing."""
    rows = families.samples.get("vllm:lora_requests_info", ())
    newest = _newest(rows, found)
    running, waiting = (_adapters(newest, state) for state in ("running", "waiting"))
    told = (("running", running), ("waiting", waiting))
    return FrontendReading(
        admission_rejections_total=_together(_REJECTIONS, families, found),
        sleep_operations_in_flight=_together(_OPERATIONS, families, found),
        lora_adapters_max=_most(rows),
        lora_adapters={state: float(len(adapters)) for state, adapters in told if adapters is not None},
        lora_running=_named(running),
        lora_waiting=_named(waiting),
    )


def _together(term: Term, families: Families, found: Fields) -> Mapping[str, float]:
    totals: dict[str, float] = {}
    for counts in read_term(term, families, found.warn).values():
        for key, count in counts.items() if isinstance(counts, Mapping) else ():
            totals[key] = totals.get(key, 0.0) + count
    return totals


def _newest(rows: tuple[Sample, ...], found: Fields) -> Sample | None:
    """The row that was set last: its value is the time, and the rows before it stay. ``None`` where times were added up
    over several API servers, and no longer tell which is the newest."""
    newest = max(rows, key=lambda row: row.value, default=None)
    if newest is not None and newest.value > _LATEST_TIME:
        found.warn("several API servers add up the times in lora_requests_info, so its newest row can't be told")
        return None
    return newest


def _adapters(row: Sample | None, state: str) -> tuple[str, ...] | None:
    text = row.labels.get(f"{state}_lora_adapters") if row else None
    return None if text is None else tuple(sorted({name.strip() for name in text.split(",")} - {""}))


def _named(adapters: tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(name[:MAX_NAME_CHARS] for name in (adapters or ())[:MAX_ADAPTERS_NAMED])


def _most(rows: tuple[Sample, ...]) -> float | None:
    told = [row.labels.get("max_lora", "") for row in rows]
    return max((float(text) for text in told if text.isascii() and text.isdecimal() and len(text) < 10), default=None)
