"""The answer of ``pinchpoint diagnose`` for people: what it is, why, what speaks against, what to do."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from pinchpoint.cli.exits import printable
from pinchpoint.cli.page import Page
from pinchpoint.cli.strip import strip
from pinchpoint.cli.topology import print_topology
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence
from pinchpoint.outputs.class_words import CLASS_WORDS

GOOD_NEWS = ("healthy", "idle", "sleeping")

_STYLES = {"healthy": "bold green", "idle": "bold blue", "sleeping": "bold blue", "unknown": "bold yellow"}
_MOST_FACTS = 5
_STRIP = 60


def print_answer(answer: Mapping[str, Any]) -> None:
    """The answer, or one for each engine; replicas behind one service in a line each."""
    page, answer = Page(), _printable(answer)
    engines: Sequence[Mapping[str, Any]] = list(answer.get("engines", {}).values())
    if "class" in answer:
        _print_engine(page, answer)
        _print_replicas(page, engines)
    for number, one in enumerate(engines if "class" not in answer else ()):
        if number:
            page.gap()
        _print_engine(page, one)
    if answer["topology"]:
        page.gap()
        print_topology(answer["topology"], page.console)
    if answer["findings"]:
        page.gap()
        page.head(Text("GPUs of this node", "bold"))
    for finding in answer["findings"]:
        page.paragraphs("finding", [finding["text"]])
        page.paragraphs("remedy", [finding["remedy"]])


def _printable(told: Any) -> Any:
    """The answer with all its words as a terminal may have them."""
    if isinstance(told, str):
        return printable(told)
    if isinstance(told, Mapping):
        return {_printable(key): _printable(value) for key, value in told.items()}
    return [_printable(each) for each in told] if isinstance(told, list | tuple) else told


def _print_engine(page: Page, one: Mapping[str, Any]) -> None:
    page.head(_headline(one))
    page.paragraphs("", [_opening(one["why"])] if one["why"] else [])
    page.gap()
    facts = sorted(one["evidence"], key=lambda fact: not _has_bar(fact))[:_MOST_FACTS]
    page.paragraphs("because", [_fact(page, fact, bars=any(map(_has_bar, facts))) for fact in facts])
    page.paragraphs("against", [fact["text"] for fact in one["contradicted_by"]])
    if one["runner_up"]:
        score = one["scores"].get(one["runner_up"], 0.0)
        own = f" (this one: {one['score']:.2f})" if one["score"] is not None else ""
        page.paragraphs("runner-up", [f"{one['runner_up']}, score {score:.2f}{own}"])
    page.paragraphs("not seen", [f"{signal}: {one['how_to_see'][signal]}" for signal in one["missing"]])
    if one["advice"]:
        page.gap()
    for number, lever in enumerate(one["advice"], start=1):
        page.paragraphs("to do" if number == 1 else "", _lever(number, lever))
    page.gap()
    helps, style = {True: ("yes", "green"), False: ("no", "red"), None: ("can't tell", "yellow")}[one["more_gpus_help"]]
    page.paragraphs("more GPUs", [Text.assemble((helps, f"bold {style}"), f": {one['more_gpus_reason']}")])
    page.paragraphs("timeline", strip(one["timeline"], max(10, min(_STRIP, page.width - 14)), coloured=page.coloured))


def _headline(one: Mapping[str, Any]) -> Text:
    """The class in words and as it is called, how sure, and for how much of the time."""
    total = one["timeline"][-1]["end"] - one["timeline"][0]["start"]
    held = sum(each["end"] - each["start"] for each in one["timeline"] if each["class"] == one["class"])
    since = f", {held:.0f} of {total:.0f} s" if total > 0 else ""
    now = one["timeline"][-1]["class"]
    since += f", at the end {now}" if now != one["class"] else ""
    return Text.assemble(
        (f"{one['engine']}: ", "bold"),
        (CLASS_WORDS[Bottleneck(one["class"])], _STYLES.get(one["class"], "bold red")),
        f"  {one['class']}, {100 * one['confidence']:.0f} % sure{since}",
    )


def _has_bar(fact: Mapping[str, Any]) -> bool:
    return Evidence(**fact).out_of_one


def _fact(page: Page, fact: Mapping[str, Any], *, bars: bool) -> tuple[Text, str]:
    if _has_bar(fact):
        return page.bar(fact["value"], fact["threshold"]).append(" "), fact["text"]
    return Text(" " * (page.bar(0, 1).cell_len + 1) if bars else ""), fact["text"]


def _lever(number: int, lever: Mapping[str, Any]) -> list[tuple[Text, str | Text]]:
    lines: list[tuple[Text, str | Text]] = [(Text(f"{number}. ", "bold"), lever["text"])]
    if "flag" in lever:
        lines.append((Text("   "), Text(lever["flag"], "bold cyan")))
    labelled = (("why", "reason"), ("expect", "effect"), ("risk", "risk"))
    return lines + [(Text(f"   {label}: ", "dim"), lever[name]) for label, name in labelled if name in lever]


def _print_replicas(page: Page, engines: Sequence[Mapping[str, Any]]) -> None:
    if not engines:
        return
    page.gap()
    page.head(Text("each of its engines", "bold"))
    longest, widest = (max(len(one[name]) for one in engines) for name in ("engine", "class"))
    for one in engines:
        style = _STYLES.get(one["class"], "red").removeprefix("bold ")
        lead = Text.assemble(f"{one['engine']:<{longest}}  ", (f"{one['class']:<{widest}}  ", style))
        page.paragraphs("", [(lead, one["why"])])


def _opening(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
