"""Triton with the TensorRT-LLM backend: ``nv_trt_llm_*`` of one iteration, at port 8002."""

from pinchpoint.sources.engine.kinds.kind import EngineKind
from pinchpoint.sources.engine.kinds.table import Table
from pinchpoint.sources.engine.vocabulary import Kind, Term

TABLE = Table(
    terms={
        "requests_running": Term(Kind.GAUGE, ("nv_trt_llm_request_metrics",), where=("request_type", "active")),
        "requests_waiting": Term(Kind.GAUGE, ("nv_trt_llm_request_metrics",), where=("request_type", "waiting")),
    },
)

KIND = EngineKind(name="triton", title="Triton", marks=("nv_",), says=TABLE.says, read=TABLE.read)
