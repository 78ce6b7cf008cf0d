"""The most that one request can cost in tokens, before it is sent. Pure."""

from collections.abc import Iterator, Mapping

from pinchpoint.sources.probe import prompt
from pinchpoint.sources.probe.dialects.parameters import MAX_FLOOR_TOKENS
from pinchpoint.sources.probe.spend.amount import Tokens

SECONDS_PER_DAY = 86_400
CHARACTERS_PER_TOKEN = 2  # of English, four in the tokenizers in use: half of that leaves room for any
TEMPLATE_TOKENS = 64  # what a chat template adds, and the nonce, which no tokenizer shortens
REQUESTS = 2  # of one probe: it is sent once more when an idle connection is closed in its face
SPARE = 1.25  # on top of what a day of probes needs: restarts, and some asked for by hand


def most_tokens(prompt_words: int, max_tokens: int, extra_body: Mapping[str, object]) -> Tokens:
    """Of one request. A server's own minimum and ``extra_body`` may raise the limit of the answer."""
    limits, answers = [max_tokens, MAX_FLOOR_TOKENS], 1
    for name, number in _numbers(extra_body):
        if "token" in name.lower():
            limits.append(number)
        elif name in ("n", "best_of", "candidateCount", "candidate_count"):
            answers = max(answers, number)
    return Tokens(input=_prompt_tokens(prompt_words), output=max(limits) * answers)


def default_tokens_per_day(prompt_words: int, max_tokens: int, interval_seconds: float, most: Tokens) -> int:
    """The cap of a hosted target that was given none: a day of probes at its interval, and the reserve of one."""
    probes = SPARE * max(1, SECONDS_PER_DAY / interval_seconds)
    return int(probes * (_prompt_tokens(prompt_words) + max_tokens)) + REQUESTS * most.total


def _prompt_tokens(words: int) -> int:
    characters = len(prompt.build("0" * 16, words))
    return -(-characters // CHARACTERS_PER_TOKEN) + TEMPLATE_TOKENS


def _numbers(value: object, name: str = "", depth: int = 0) -> Iterator[tuple[str, int]]:
    """Every whole number, with the name that it is under."""
    if isinstance(value, bool) or depth > 10:
        return
    if isinstance(value, int):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _numbers(inner, str(key), depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(inner, name, depth + 1)
