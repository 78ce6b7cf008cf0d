"""How the GPUs are connected: the matrix of ``nvidia-smi topo -m``, and what it means for each engine."""

from collections.abc import Sequence

from pinchpoint.diagnosis.topology import NodeTopology, TensorParallel, TopologyJudgement
from pinchpoint.outputs.web.drawings import icon
from pinchpoint.outputs.web.markup import Html, el, name
from pinchpoint.outputs.web.words import Severity

_VERDICTS = {
    TensorParallel.FINE: ("tensor parallelism is fine", Severity.FINE),
    TensorParallel.COSTLY: ("tensor parallelism is costly", Severity.PINCHED),
    TensorParallel.USE_DP: ("better data parallel", Severity.PINCHED),
    None: ("not known", Severity.UNSURE),
}
_MEANINGS = {
    "PIX": "one PCIe switch",
    "PXB": "several PCIe switches",
    "PHB": "the CPU's PCIe host bridge",
    "NODE": "two PCIe host bridges of one CPU socket",
    "SYS": "between CPU sockets",
}


def panel(topology: NodeTopology | None) -> Html | None:
    """The whole section; nothing where there is nothing to connect."""
    if topology is None:
        return None
    words = {word for row in topology.matrix for word in row}
    return el(
        "section",
        el("h2", "How the GPUs are connected"),
        el("ul", [_judgement(judgement) for judgement in topology.judgements], class_="judgements"),
        [_lost(gpu, links) for gpu, links in topology.links_lost.items()],
        el("div", _matrix(topology), class_="scroll"),
        el("p", _legend(words), class_="hint"),
        class_="panel topology",
    )


def _judgement(judgement: TopologyJudgement) -> Html:
    words, severity = _VERDICTS[judgement.verdict]
    who = name(judgement.engine) if judgement.engine else el("span", "All GPUs")
    return el(
        "li",
        el("p", icon(severity), who, el("b", words), class_=severity.value),
        el("p", judgement.text, class_="hint"),
    )


def _lost(gpu: str, links: Sequence[str]) -> Html:
    were = "NVLink" if len(links) == 1 else f"{len(links)} NVLinks"
    return el(
        "p",
        icon(Severity.CRITICAL),
        el("span", f"GPU {gpu}: {were} up before and down now ({', '.join(links[:18])}). Look for Xid 74 in dmesg."),
        class_="lost",
    )


def _matrix(topology: NodeTopology) -> Html:
    heads = el("tr", el("td"), [el("th", name(gpu), scope="col") for gpu in topology.gpus])
    rows = [
        el("tr", el("th", name(gpu), scope="row"), [el("td", word, class_=_kind(word)) for word in row])
        for gpu, row in zip(topology.gpus, topology.matrix, strict=True)
    ]
    return el("table", el("thead", heads), el("tbody", rows), class_="matrix", aria_label="Links between GPUs")


def _kind(word: str) -> str:
    if word.startswith("NV"):
        return "near"
    return {"X": "self", "?": "unknown", "SYS": "far"}.get(word, "middle")


def _legend(words: set[str]) -> str:
    parts = [f"{word}: {meaning}" for word, meaning in _MEANINGS.items() if word in words]
    if any(word.startswith("NV") for word in words):
        parts.insert(0, "NV#: so many NVLinks")
    if "?" in words:
        parts.append("?: not known (yet)")
    return " · ".join(parts)
