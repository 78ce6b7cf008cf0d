"""Every kind of engine that is read: a file and a vocabulary table each.

To add one: its file, its name here. Is not the parser, and knows no target.
"""

from collections.abc import Mapping

from pinchpoint.sources.engine.kinds import dynamo, llamacpp, lmdeploy, openai, sglang, tgi, triton, trtllm, vllm
from pinchpoint.sources.engine.kinds.kind import EngineKind, Get

_ALL = (
    vllm.KIND,
    sglang.KIND,
    trtllm.KIND,
    triton.KIND,
    tgi.KIND,
    llamacpp.KIND,
    lmdeploy.KIND,
    dynamo.KIND,
    openai.KIND,
)

KINDS: Mapping[str, EngineKind] = {kind.name: kind for kind in _ALL}
# In the order in which they are looked for: Triton's vLLM backend has a part of vLLM's names. Dynamo's workers have all
# of their engine's, and come after it.
LOOKED_FOR: tuple[EngineKind, ...] = (triton.KIND, *(kind for kind in _ALL if kind is not triton.KIND))
AUTO = "auto"
# Where an exposition may be, the likeliest first.
PATHS = tuple(dict.fromkeys(path for kind in _ALL for path in kind.paths))

__all__ = ["AUTO", "KINDS", "LOOKED_FOR", "PATHS", "EngineKind", "Get"]
