"""Levers on what the engine computes and how it batches: prefix caching, slots, the token budget of a step."""

from pinchpoint.diagnosis.judgement import count, duration, percent
from pinchpoint.diagnosis.levers.flags import flag
from pinchpoint.diagnosis.levers.situation import Situation
from pinchpoint.diagnosis.verdict import Advice

_SMALL_BLOCK = 64  # tokens: any prefix worth sharing is longer
_HITS_ENOUGH = 0.5  # of the prompt tokens; vllm-doctor warns below
_LOW_LATENCY_BUDGET = 2048  # tokens a step: vLLM's docs, "Optimization and Tuning": favours time between tokens
_THROUGHPUT_BUDGET = 8192  # and above this, throughput
_LARGEST_BUDGET = 16384
_GRAPH_SLOTS = 8  # sizes for which vLLM captures CUDA graphs are multiples of 8


def prefix_caching(situation: Situation) -> Advice | None:
    """Where it is known to be off: vLLM and SGLang have it on by themselves."""
    if situation.signals.facts.enable_prefix_caching is not False:
        return None
    return Advice(
        action="prefix_caching",
        text=f"Switch prefix caching on: a cached token is not computed, and is stored once.{_only_long(situation)}",
        reason="it is off",
        effect="as much less prefill as prompts share; costs next to nothing where they share nothing",
        flag=flag(situation.kind, "enable_prefix_caching"),
    )


def share_prefixes(situation: Situation) -> Advice | None:
    hits, prompt = situation.signals.load.prefix_cache_hit_ratio, situation.signals.load.prompt_tokens_per_second
    if hits is not None and hits >= _HITS_ENOUGH:
        return None
    by = " and route by them (each replica has a cache of its own)" if situation.replicas > 1 else ""
    return Advice(
        action="share_prefixes",
        text=f"Begin prompts with what they share (system prompt, documents){by}: a cached token is not computed."
        + _only_long(situation),
        reason=None if hits is None else f"the prefix cache serves {percent(hits)} of the prompt tokens",
        effect=f"each tenth that is shared saves {prompt / 10:,.0f} of {prompt:,.0f} tokens a second"
        if prompt
        else None,
        risk="Cached answers differ in nothing; a prompt with a time or a name in front is never shared.",
    )


def raise_max_num_seqs(situation: Situation) -> Advice | None:
    """To what the KV cache has room for and TPOT bears, no further than the queue that waits."""
    load, facts = situation.signals.load, situation.signals.facts
    if situation.signals.probed is not None or _budget_is_full(situation):
        return None
    if limit_is_right(situation):
        return None
    limit = facts.max_num_seqs
    proposed = _slots(situation, float(limit)) if limit else None
    usage = (
        load.queue_kv_cache_usage_ratio if load.queue_kv_cache_usage_ratio is not None else load.kv_cache_usage_ratio
    )
    then = (
        f"; KV cache from {percent(usage)} to about {percent(usage * proposed / limit)}"
        if limit and proposed and usage
        else ""
    )
    kv = "" if usage is None else f" with the KV cache at {percent(usage)}"
    waiting = f"{count(load.requests_waiting)} requests wait" if load.requests_waiting else "requests wait"
    return Advice(
        action="raise_max_num_seqs",
        text="Raise the number of batch slots step by step while KV stays below 80 % and TPOT is met.",
        reason=f"{waiting} before full slots{kv}",
        effect=f"{count(proposed - limit)} more run at once{then}" if limit and proposed else None,
        flag=flag(situation.kind, "max_num_seqs", proposed),
        risk="Each token takes longer as the batch grows; preemption when the KV cache is full.",
    )


def raise_max_num_batched_tokens(situation: Situation) -> Advice | None:
    budget = situation.signals.facts.max_num_batched_tokens
    if not budget or not _budget_is_full(situation):
        return None
    proposed = min(_LARGEST_BUDGET, max(2 * budget, _LOW_LATENCY_BUDGET))
    if proposed <= budget:
        return None
    return Advice(
        action="raise_max_num_batched_tokens",
        text="Raise the token budget of a step: steps are full while the GPU has room.",
        reason=f"steps fill {percent(situation.signals.load.token_budget_share or 0)} of {budget:,} tokens",
        effect=f"up to {proposed / budget:.0f} times the prompt tokens a step, until compute is the limit",
        flag=flag(situation.kind, "max_num_batched_tokens", float(proposed)),
        risk="Steps with prompts in them take longer, and so do the tokens between.",
    )


def tune_max_num_batched_tokens(situation: Situation) -> Advice | None:
    """Smaller where prompts break into decode, larger where first tokens alone are late."""
    budget, strain = situation.signals.facts.max_num_batched_tokens, situation.strain
    if strain.inter_token is not None:
        if budget is not None and budget <= _LOW_LATENCY_BUDGET:
            return None
        return Advice(
            action="tune_max_num_batched_tokens",
            text="Lower the token budget of a step: prompts are computed in smaller pieces between the tokens.",
            reason=strain.inter_token.text,
            effect="a step with a prompt in it takes about "
            + (f"{_LOW_LATENCY_BUDGET / budget:.2g} of the time" if budget else "as long as its tokens"),
            flag=flag(situation.kind, "max_num_batched_tokens", float(_LOW_LATENCY_BUDGET)),
            risk="First tokens come later: a long prompt takes more steps.",
        )
    if budget is None or budget >= _THROUGHPUT_BUDGET:
        return None
    return Advice(
        action="tune_max_num_batched_tokens",
        text="Raise the token budget of a step: larger pieces of a prompt use the tensor cores better.",
        reason=f"it is {budget:,}; above {_THROUGHPUT_BUDGET:,} favours throughput",
        flag=flag(situation.kind, "max_num_batched_tokens", float(_THROUGHPUT_BUDGET)),
        risk="Tokens between are later while a prompt is computed.",
    )


def lower_max_num_seqs(situation: Situation) -> Advice | None:
    """Trades a queue for pace, so only where tokens are late."""
    signals, strain = situation.signals, situation.strain
    running, pace = signals.load.requests_running, signals.inter_token.judged_seconds
    if strain.inter_token is None or not running or not pace:
        return None
    each = running / situation.replicas
    bearable = int(each * signals.slo.tpot_seconds / pace) // _GRAPH_SLOTS * _GRAPH_SLOTS
    if bearable < _GRAPH_SLOTS or bearable >= each:
        return None
    return Advice(
        action="lower_max_num_seqs",
        text="Run fewer requests at once: each token waits for the KV cache of the whole batch.",
        reason=f"{count(each)} run at once, {duration(pace)} a token, objective {duration(signals.slo.tpot_seconds)}",
        effect="tokens on time, at the price of a queue",
        flag=flag(situation.kind, "max_num_seqs", float(bearable)),
        risk="Requests wait for their first token; only where TPOT matters more than TTFT.",
    )


def batch_requests(situation: Situation) -> Advice | None:
    if situation.signals.probed is None:
        return None
    return Advice(
        action="batch_requests",
        text="Serve with an engine that batches (vLLM, SGLang, TGI, llama-server --parallel): GPU time is left over.",
        reason="a request waits for others to end, as our probes show",
        effect="2 to 3 times the throughput of one request at a time, and more with many users",
    )


def limit_is_right(situation: Situation) -> bool:
    """Whether neither the KV cache nor TPOT bear more slots than there are, so that raising them would be no gain."""
    limit = situation.signals.facts.max_num_seqs
    return bool(limit) and not _budget_is_full(situation) and _slots(situation, float(limit or 0)) is None


def _budget_is_full(situation: Situation) -> bool:
    """Steps are at the token budget, and no slot is what the queue waits for."""
    load, thresholds = situation.signals.load, situation.thresholds
    full = (load.token_budget_share or 0.0) >= thresholds.budget_share_begins
    return full and (load.queue_held_by_slots_share or 0.0) < thresholds.slots_share_begins


def _slots(situation: Situation, limit: float) -> float | None:
    """A new limit that the KV cache (at 80 %) and TPOT (a step grows at most with its batch) bear, and
    the queue needs; ``None`` where that is no more than a tenth above."""
    load, signals = situation.signals.load, situation.signals
    room = [limit * 8]
    usage = (
        load.queue_kv_cache_usage_ratio if load.queue_kv_cache_usage_ratio is not None else load.kv_cache_usage_ratio
    )
    if usage:
        room.append(limit * situation.thresholds.kv_room_ratio / usage)
    pace, admitted = signals.inter_token.judged_seconds, signals.roofline.inter_token_if_admitted_seconds
    if pace and (admitted is None or admitted > signals.slo.tpot_seconds):
        room.append(limit * signals.slo.tpot_seconds / pace)
    if load.requests_waiting and load.requests_running:
        room.append(1.25 * (load.requests_waiting + load.requests_running) / situation.replicas)
    proposed = min(room) // _GRAPH_SLOTS * _GRAPH_SLOTS
    return proposed if proposed > 1.1 * limit else None


def _only_long(situation: Situation) -> str:
    """A prefix below one KV block is never cached, and the blocks of hybrid models are large (vLLM issue 54607)."""
    block = situation.signals.facts.block_size or 0
    return f" Only prefixes of at least {block} tokens, one KV block, are cached." if block > _SMALL_BLOCK else ""
