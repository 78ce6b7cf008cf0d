"""An OpenAI-compatible server without metrics (Transformers' ``serve``, Ollama, a home-made one): that it lives.

It is asked for its models or, where it has no such list, for /health. Nothing is known of its load: the diagnosis goes
by our own probes and its GPUs. Sources: OpenAI's API reference (/v1/models), Ollama's docs/api.md (/api/ps).
"""

from collections.abc import Mapping
from dataclasses import replace

from pinchpoint.snapshot import EngineFacts, EngineReading, EngineTarget, Reason, ReplicaReading
from pinchpoint.sources.engine.exposition import Families
from pinchpoint.sources.engine.kinds.kind import JUDGED_BY, EngineKind, Get, Translation
from pinchpoint.sources.http import Answer, SourceError, json_object

MAX_BODY_BYTES = 2**20  # a thousand models
MAX_MODEL_CHARS = 200
NO_METRICS = "it exposes no metrics: seen by its own probes and its GPUs alone"
_NO_SUCH_PAGE = frozenset({404, 405, 501})
_UNKNOWN = dict.fromkeys(sorted(JUDGED_BY), Reason.NOT_EXPOSED)


def _nothing(_families: Families, _said: EngineFacts) -> Translation:
    return Translation(replicas=(ReplicaReading(),), warnings=(NO_METRICS,), unavailable=_UNKNOWN)


KIND = EngineKind(
    name="openai",
    title="an OpenAI-compatible server without metrics",
    marks=(),
    says=frozenset(),
    read=_nothing,
    lazy=True,
)


async def alive(target: EngineTarget, get: Get, *, only_by_models: bool = False) -> EngineReading:
    """The reading of a server that answers: its model, and nothing of its load.

    ``only_by_models``: any web server has a page, so one that nobody called an engine must have a list of models.
    Raises ``SourceError`` when it does not answer, asks for credentials or is no such server.
    """
    page = "/v1/models"
    answer = await get(page, MAX_BODY_BYTES)
    facts = _facts_in(answer.body) if answer.status == 200 else None
    warnings: tuple[str, ...] = (NO_METRICS,)
    if answer.status in _NO_SUCH_PAGE and not only_by_models:
        page = "/health"
        answer = await get(page, MAX_BODY_BYTES)
        facts = EngineFacts()
        if answer.status in _NO_SUCH_PAGE:
            warnings += ("it has neither /v1/models nor /health: up means that it answers HTTP",)
            answer = Answer(200, answer.at)
    _require_ok(answer, page)
    if facts is None:
        raise SourceError(Reason.NOT_EXPOSITION, "/v1/models is no list of models; check url and kind")
    if facts.kind == "ollama":
        facts = _loaded((await get("/api/ps", MAX_BODY_BYTES)).body)
        warnings += () if facts.model else ("no model is loaded",)
    return EngineReading(
        engine=target.engine,
        at=answer.at,
        replicas=(ReplicaReading(model=facts.model),),
        facts=replace(target.facts.completed(replace(facts, kind=""), "models"), kind=KIND.name),
        slo=target.slo,
        gpus=target.gpus,
        url=target.url,
        warnings=warnings,
        unavailable=_UNKNOWN,
    )


def _require_ok(answer: Answer, page: str) -> None:
    if answer.status in (401, 403):
        raise SourceError(
            Reason.UNAUTHORIZED, f"HTTP {answer.status} at {page}: credentials are asked for; set bearer_token_file"
        )
    if answer.status != 200:
        raise SourceError(Reason.HTTP_STATUS, f"HTTP {answer.status} at {page}; read the server's log")


def _facts_in(body: bytes) -> EngineFacts | None:
    """The first model of a list of models; ``kind`` says where it is Ollama's. ``None`` where it is no such list."""
    models = _list(body, "data")
    if models is None:
        return None
    first = models[0] if models and isinstance(models[0], Mapping) else {}
    if first.get("owned_by") == "library":
        return EngineFacts(kind="ollama")
    meta = first.get("meta")
    context = first.get("max_model_len") or (meta.get("n_ctx") if isinstance(meta, Mapping) else None)
    return EngineFacts(model=_name(first.get("id")), max_model_len=_length(context))


def _loaded(body: bytes) -> EngineFacts:
    """What Ollama has in memory now."""
    models = _list(body, "models") or []
    first = models[0] if models and isinstance(models[0], Mapping) else {}
    return EngineFacts(model=_name(first.get("name")), max_model_len=_length(first.get("context_length")))


def _list(body: bytes, key: str) -> list[object] | None:
    found = json_object(body).get(key)
    return found if isinstance(found, list) else None


def _name(value: object) -> str | None:
    return value[:MAX_MODEL_CHARS] if isinstance(value, str) and value and value.isprintable() else None


def _length(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9 else None
