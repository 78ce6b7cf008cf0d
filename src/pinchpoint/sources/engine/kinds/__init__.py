"""Every kind of engine that is read: a file and a vocabulary table each.

To add one: its file, its name here. Is not the parser, and knows no target.
"""

from collections.abc import Mapping

from pinchpoint.sources.engine.kinds import dynamo, llamacpp, lmdeploy, sglang, tgi, triton, trtllm, vllm
from pinchpoint.sources.engine.kinds.kind import EngineKind

# In the order in which they are looked for: Triton's vLLM backend has a part of vLLM's names, Dynamo's workers have all
# of their engine's.
_ALL = (triton.KIND, vllm.KIND, sglang.KIND, lmdeploy.KIND, tgi.KIND, llamacpp.KIND, trtllm.KIND, dynamo.KIND)

KINDS: Mapping[str, EngineKind] = {kind.name: kind for kind in _ALL}
AUTO = "auto"

__all__ = ["AUTO", "KINDS", "EngineKind"]
