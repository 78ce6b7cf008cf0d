"""What an operator knows of the engine on this host without naming it: for one that discovery finds."""

from pydantic import BaseModel, ConfigDict, Field

from pinchpoint.snapshot import EngineFacts
from pinchpoint.sources.engine.settings import MAX_COUNT


class LocalEngineSettings(BaseModel):
    """Facts that are believed least: what the engine, its command line or ``engines.targets`` say is believed first.

    They are said of every engine that serves ``model``; without a ``model``, of the only engine.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    model: str | None = Field(
        default=None,
        min_length=1,
        max_length=256,
        description="Name or path of the model that it serves. Unset: it is the only engine.",
    )
    tensor_parallel_size: int | None = Field(
        default=None, ge=1, le=MAX_COUNT, description="GPUs per replica. Unset: as the engine's command line says."
    )
    gpu_memory_utilization: float | None = Field(
        default=None, gt=0, le=1, description="vLLM's --gpu-memory-utilization, ratio. Unset: as the engine prints it."
    )
    max_model_len: int | None = Field(
        default=None, ge=1, le=MAX_COUNT, description="vLLM's --max-model-len, tokens. Unset: as the engine says."
    )
    max_num_seqs: int | None = Field(
        default=None,
        ge=1,
        le=MAX_COUNT,
        description="vLLM's --max-num-seqs, sequences, which it does not export. Unset: as its command line says.",
    )

    def facts(self) -> EngineFacts:
        return EngineFacts(**self.model_dump())
