"""The streams in tests/data/probe-streams, played on a virtual clock: an event each ten milliseconds.

Their comments ``: pause`` are the truth on time: the first stands right before the first generated text; where there
are three, the last stands right before the first visible content.
"""

from pathlib import Path

from pinchpoint.snapshot import ProbeReading
from pinchpoint.sources.probe import ProbeTargetSettings
from pinchpoint.sources.probe.case import Case
from pinchpoint.sources.probe.dialects import DIALECTS, Dialect, DialectName
from pinchpoint.sources.probe.exchange import Exchange
from pinchpoint.sources.probe.judgement import judge
from pinchpoint.sources.probe.reading import reading
from pinchpoint.sources.probe.sse import SseParser
from pinchpoint.sources.probe.timing import timing
from pinchpoint.sources.probe.tracing import Stamps
from pinchpoint.sources.probe.transcript import Transcript

STREAMS = Path(__file__).parents[3] / "data" / "probe-streams"
PAUSE = b": pause"
STEP_NS = 10_000_000


def blocks_of(stream: str) -> list[bytes]:
    """The events and comments of ``dialect/name``, each with its blank line."""
    raw = (STREAMS / f"{stream}.sse").read_bytes()
    return [block + b"\n\n" for block in raw.split(b"\n\n") if block]


def dialect_of(stream: str) -> Dialect:
    return DIALECTS[DialectName(stream.partition("/")[0])]()


def truths_ms(stream: str) -> list[int]:
    """When the event behind each pause comes."""
    events, truths = 0, []
    for block in blocks_of(stream):
        if block.startswith(PAUSE):
            truths.append((events + 1) * STEP_NS // 1_000_000)
        events += b"data:" in block
    return truths


def played(dialect: Dialect, blocks: list[bytes]) -> ProbeReading:
    """The reading of a stream of which each event came by itself, ten milliseconds after the one before."""
    parser, transcript, at_ns = SseParser(), Transcript(), 0
    for block in blocks:
        at_ns += STEP_NS if b"data:" in block else 0
        for event in parser.feed(block):
            transcript.add(dialect.interpret(event), at_ns)
    for event in parser.close():
        transcript.add(dialect.interpret(event), at_ns)
    exchange = Exchange(
        stamps=Stamps(started_ns=0, ready_ns=0, sent_ns=0, headers_ns=0),
        transcript=transcript,
        status=200,
        end_ns=at_ns,
    )
    target = ProbeTargetSettings(name="t", url="http://x")
    case = Case(target=target, judgement=judge(exchange))
    return reading(case, 0.0, exchange, timing(exchange.stamps, transcript))
