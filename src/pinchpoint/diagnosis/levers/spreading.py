"""Levers on how the GPUs that there are work together: replicas, ranks and the links between them."""

from pinchpoint.diagnosis.judgement import count, duration, percent
from pinchpoint.diagnosis.levers.flags import flags
from pinchpoint.diagnosis.levers.situation import Situation
from pinchpoint.diagnosis.verdict import Advice, Bottleneck

_WEIGHTS_AT_MOST = 0.75  # of one card's memory, so that a KV cache is left


def rebalance_replicas(situation: Situation) -> Advice | None:
    spread = situation.signals.spread
    if situation.bottleneck is not Bottleneck.IMBALANCE and not (spread.replicas_queued and spread.replicas_with_room):
        return None
    room = spread.replicas_with_room
    loaded, busiest = spread.replicas_overloaded or spread.replicas_queued, spread.running_spread_ratio
    reasons = [
        *([f"{count(loaded)} of {count(spread.replicas or 0)} replicas can't keep up"] if loaded else []),
        *([f"{count(room)} {'has' if room == 1 else 'have'} room"] if room else []),
        *([f"the busiest runs {busiest:.1f} times the mean"] if busiest else []),
    ]
    asked = spread.spread_demand_ratio
    fits = "" if asked is None or asked > 1 else f": an even spread asks {percent(asked)} of what a replica bears"
    return Advice(
        action="rebalance_replicas",
        text="Route by load (fewest requests or tokens in flight), not round robin, by session or by hash; give all "
        "replicas the same limits, and look for one that is slow or left out.",
        reason=", ".join(reasons) or None,
        effect=f"the queue goes to the replicas that have room{fits}",
        risk="Prefixes are cached on one replica: weigh the load against the hits.",
    )


def enable_p2p(situation: Situation) -> Advice | None:
    pairs = situation.signals.links.link_without_p2p
    if not pairs:
        return None
    return Advice(
        action="enable_p2p",
        text="Let the cards read each other's memory: PCIe access control (ACS) and the IOMMU off for them; see "
        "nvidia-smi topo -p2p r.",
        reason=f"{count(pairs)} pairs of the engine's GPUs exchange their data through host memory",
        effect=_saved(situation),
        risk="ACS isolates virtual machines: only where none shares the node.",
    )


def place_on_linked_gpus(situation: Situation) -> Advice | None:
    return Advice(
        action="place_on_linked_gpus",
        text="Put the ranks of a replica on cards that are linked by NVLink, else under one PCIe switch "
        "(nvidia-smi topo -m, CUDA_VISIBLE_DEVICES).",
        reason=_slow(situation),
        effect=_saved(situation),
    )


def prefer_data_parallel(situation: Situation) -> Advice | None:
    """Where one card holds the model, or where nobody knows whether it does."""
    if _fits_one_card(situation) is False:
        return None
    ranks = situation.ranks * situation.replicas
    return Advice(
        action="prefer_data_parallel",
        text="If the model fits one card, run a replica on each instead of splitting it: nothing is exchanged then.",
        reason=_slow(situation),
        effect=_saved(situation),
        flag=flags(situation.kind, tensor_parallel_size=1.0, data_parallel_size=float(ranks)),
        risk="Each card holds all weights, so less is left for its KV cache; one prompt is computed by one card.",
    )


def prefer_pipeline_parallel(situation: Situation) -> Advice | None:
    """Where the model needs several cards: a stage hands on once what ranks exchange twice in every layer."""
    if _fits_one_card(situation) is True:
        return None
    return Advice(
        action="prefer_pipeline_parallel",
        text="If it does not fit one card, split it by layers: stages exchange once what ranks exchange twice a layer.",
        reason=_slow(situation),
        effect=_saved(situation),
        flag=flags(situation.kind, pipeline_parallel_size=float(situation.ranks), tensor_parallel_size=1.0),
        risk="One request is no faster on it: stages take turns, and need several batches to be busy.",
    )


def _fits_one_card(situation: Situation) -> bool | None:
    weights, gpu = situation.weight_bytes, situation.gpu
    return None if weights is None or gpu is None else weights <= _WEIGHTS_AT_MOST * gpu.memory_bytes


def _slow(situation: Situation) -> str | None:
    links = situation.signals.links
    if links.communication_share:
        return f"exchanging data between {situation.ranks} GPUs takes {percent(links.communication_share)} of a step"
    if links.link_worst_bytes_per_second:
        return f"the slowest link between its GPUs moves {links.link_worst_bytes_per_second / 1e9:.0f} GB/s"
    return None


def _saved(situation: Situation) -> str | None:
    links, step = situation.signals.links, situation.signals.roofline.step_seconds
    if links.communication_step_seconds and step:
        return f"up to {duration(links.communication_step_seconds)} of the {duration(step)} that a step takes"
    return None
