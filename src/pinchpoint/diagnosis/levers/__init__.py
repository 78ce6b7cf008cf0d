"""What to do about a bottleneck: all advice in one place, the cheap and reversible before the dear.

A lever is a function that looks at an engine and either offers itself, with that engine's own numbers, or stays silent:
because it has been pulled already (an FP8 cache, a quantised model, prefix caching that is on), because it would not
help here, or because this kind of engine has it not.

Is not: a diagnosis. Not among the levers, because they create nothing: a lower max-model-len as if it made KV blocks
(it bounds one request), and PagedAttention (it is how vLLM works).
"""

from pinchpoint.diagnosis.levers.catalogue import LEVERS, levers_for, looked_at

__all__ = ["LEVERS", "levers_for", "looked_at"]
