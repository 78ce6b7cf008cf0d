"""Dynamo's frontend: what its clients see. Its workers pass their engine's own families on, and are of that kind."""

from pinchpoint.sources.engine.kinds.kind import EngineKind
from pinchpoint.sources.engine.kinds.table import Table
from pinchpoint.sources.engine.vocabulary import Kind, Term

TABLE = Table(
    prefix="dynamo_",
    terms={
        "requests_running": Term(Kind.GAUGE, ("dynamo_frontend_inflight_requests",)),
        "requests_waiting": Term(Kind.GAUGE, ("dynamo_frontend_queued_requests",)),
        "prompt_tokens_total": Term(Kind.COUNTER, ("dynamo_frontend_input_sequence_tokens_sum",)),
        "generation_tokens_total": Term(Kind.COUNTER, ("dynamo_frontend_output_tokens",)),
        "ttft_seconds": Term(Kind.HISTOGRAM, ("dynamo_frontend_time_to_first_token_seconds",)),
        "inter_token_seconds": Term(Kind.HISTOGRAM, ("dynamo_frontend_inter_token_latency_seconds",)),
        "e2e_seconds": Term(Kind.HISTOGRAM, ("dynamo_frontend_request_duration_seconds",)),
    },
)

KIND = EngineKind(name="dynamo", title="Dynamo", marks=("dynamo_",), says=TABLE.says, read=TABLE.read, lazy=True)
