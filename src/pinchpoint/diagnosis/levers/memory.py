"""Levers on the card's memory: its share, the bytes of a KV token, the bytes of a weight."""

from pinchpoint.diagnosis.judgement import count, duration, percent
from pinchpoint.diagnosis.levers.flags import flag
from pinchpoint.diagnosis.levers.situation import Situation, tokens_in_words
from pinchpoint.diagnosis.rates import known, ratio
from pinchpoint.diagnosis.verdict import Advice, Bottleneck

_MOST_UTILIZATION = 0.95  # the rest is for the CUDA context, NCCL and fragmentation
_ROOM_FROM = 0.90  # a share above this (vLLM 0.33: .92) leaves too little to gain
_FEW = 16  # requests a batch, below which reading the weights is nearly all of a step
_LONG = (1 / 32, 1 / 4)  # of the pool: a request's mean size, from which one is long; above, all of them are
_FULL_PRECISION = 1.5  # bytes a weight: more is 16 bits


def limit_max_model_len(situation: Situation) -> Advice | None:
    """Where requests are long and one may take more than half of the pool. It creates no block, it bounds a request."""
    facts, tokens, size = situation.signals.facts, situation.kv_tokens, situation.tokens_per_request
    length = facts.max_model_len
    if not length or tokens is None or size is None or not tokens / 2 < length <= tokens:
        return None
    if not tokens * _LONG[0] <= size <= tokens * _LONG[1]:
        return None
    proposed = int(max(2 * size, tokens / 4)) // 1024 * 1024
    if not 1024 <= proposed < length:
        return None
    return Advice(
        action="limit_max_model_len",
        text="Bound the length of a request, so that one can't take most of the KV cache. It makes no room by itself.",
        reason=f"one may have {length:,} of {tokens_in_words(tokens)}, the mean holds {tokens_in_words(size)}",
        effect="long requests no longer preempt many short ones",
        flag=flag(situation.kind, "max_model_len", float(proposed)),
        risk="Longer requests are refused: first see who sends them.",
    )


def raise_gpu_memory_utilization(situation: Situation) -> Advice | None:
    share, gpu = situation.signals.facts.gpu_memory_utilization, situation.gpu
    if share is None or share > _ROOM_FROM:
        return None
    freed = None if gpu is None else (_MOST_UTILIZATION - share) * gpu.memory_bytes
    then = None if freed is None else situation.tokens_after(freed, situation.ranks)
    return Advice(
        action="raise_gpu_memory_utilization",
        text="Give the engine a larger share of the card, if nothing else needs it.",
        reason=f"it may use {percent(share)} of the card",
        effect=_more_tokens(situation, then),
        flag=flag(situation.kind, "gpu_memory_utilization", _MOST_UTILIZATION),
        risk="Out of memory at start, or later where another process grows on the card.",
    )


def fp8_kv_cache(situation: Situation) -> Advice | None:
    if situation.kv_is_small:
        return None
    if situation.bottleneck is Bottleneck.MEMORY_BANDWIDTH:
        share = _kv_share_of_reads(situation)
        if share is not None and share < 0.2:
            return None
        reason = None if share is None else f"the KV cache is {percent(share)} of the bytes that a step reads"
        effect = None if share is None else f"a step takes about {percent(1 - share / 2)} of its time"
    else:
        tokens = situation.kv_tokens
        usage = situation.signals.load.kv_cache_usage_ratio
        reason = None if usage is None else f"{percent(usage)} of the KV cache is in use, in 16 bits"
        effect = "about twice the tokens fit" if tokens is None else _more_tokens(situation, 2 * tokens)
    return Advice(
        action="fp8_kv_cache",
        text="Store the KV cache in FP8: half the bytes a token.",
        reason=reason,
        effect=effect,
        flag=flag(situation.kind, "kv_cache_dtype"),
        risk="Check answers: long contexts lose most; before Ada and Hopper it costs speed, or is not supported.",
    )


def fp8_weights(situation: Situation) -> Advice | None:
    """Where the card's tensor cores know FP8; cards that are not known are taken to."""
    bytes_each, gpu = situation.bytes_per_weight, situation.gpu
    if (bytes_each is not None and bytes_each < _FULL_PRECISION) or (gpu is not None and gpu.fp8_flops is None):
        return None
    if situation.bottleneck is Bottleneck.MEMORY_BANDWIDTH:
        share = _kv_share_of_reads(situation)
        effect = None if share is None else f"a step takes about {percent(1 - (1 - share) / 2)} of its time"
    else:
        effect = "up to twice the FLOPs"
        if gpu is not None and gpu.fp8_flops is not None:
            effect += f": {gpu.fp8_flops / 1e12:,.0f} TFLOP/s at peak against {gpu.bf16_flops / 1e12:,.0f} in bf16"
    return Advice(
        action="fp8_weights",
        text="FP8 weights and activations: twice the tensor peak of Ada, Hopper and later cards, half the bytes read.",
        reason="weights are in 16 bits" if bytes_each is not None else None,
        effect=effect,
        flag=flag(situation.kind, "fp8"),
        risk="Check answers; a checkpoint that was quantised with calibration loses least.",
    )


def quantize_weights(situation: Situation) -> Advice | None:
    bytes_each, weights = situation.bytes_per_weight, situation.weight_bytes
    if bytes_each is not None and bytes_each < _FULL_PRECISION:
        return None
    effect = reason = None
    if weights is not None:
        reason = f"weights are {weights / situation.ranks / 2**30:,.0f} GiB a GPU in 16 bits"
        if situation.bottleneck is Bottleneck.KV_CAPACITY:
            freed = weights / 2 / situation.ranks
            effect = _more_tokens(situation, situation.tokens_after(freed, situation.ranks))
        else:
            share = _kv_share_of_reads(situation)
            effect = (
                None if share is None else f"4 bits: a step takes about {percent(1 - 0.75 * (1 - share))} of its time"
            )
    kv = situation.bottleneck is Bottleneck.KV_CAPACITY
    return Advice(
        action="quantize_weights",
        text="Serve smaller weights (FP8, or an INT4 checkpoint: AWQ, GPTQ): "
        + ("they leave more of the card to the KV cache." if kv else "less is read for each token."),
        reason=reason,
        effect=effect,
        flag=flag(situation.kind, "fp8") if kv else None,
        risk="Check answers; INT4 with care below 7B parameters.",
    )


def speculative_decoding(situation: Situation) -> Advice | None:
    """Where the batch is small: several tokens are then verified for one reading of the weights."""
    running, strain = situation.signals.load.requests_running, situation.strain
    if running is None or running / situation.replicas > _FEW or strain.inter_token is None:
        return None
    return Advice(
        action="speculative_decoding",
        text="Guess tokens ahead and verify several in one reading of the weights (a draft model, EAGLE, or n-grams of "
        "the prompt).",
        reason=f"{count(running / situation.replicas)} run at once: a step reads all weights for as many tokens",
        effect=f"{duration(strain.inter_token.value or 0)} a token now, over the tokens that are accepted a step",
        flag=flag(situation.kind, "ngram"),
        risk="Slower where few guesses are accepted, and in large batches.",
    )


def _more_tokens(situation: Situation, then: float | None) -> str | None:
    """What so many KV tokens would be against now, and how many requests of today's size that is."""
    now, then = situation.kv_tokens, known(then)
    if now is None or then is None or then <= now:
        return None
    gained = ratio(then - now, situation.tokens_per_request) or 0.0
    more = f", {count(int(gained))} more requests of today's size" if gained >= 1 else ""
    return f"{tokens_in_words(then)} instead of {tokens_in_words(now)}{more}"


def _kv_share_of_reads(situation: Situation) -> float | None:
    """Of the bytes that a step reads: the KV cache of all that run, beside the weights."""
    size, running, weights = (
        situation.tokens_per_request,
        situation.signals.load.requests_running,
        situation.weight_bytes,
    )
    each = situation.kv_bytes_per_token(situation.ranks)
    if size is None or running is None or weights is None or each is None:
        return None
    kv = size * running / situation.replicas * each
    return ratio(kv, kv + weights / situation.ranks)
