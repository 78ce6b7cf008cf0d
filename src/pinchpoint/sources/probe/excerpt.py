"""One short, safe line out of what a server said. Servers echo keys back, so nothing leaves here unredacted."""

import re
from collections.abc import Callable

MAX_CHARACTERS = 200
MIN_DIGITS = 6
_MASK = "[redacted]"

# Each takes time in proportion to the text: whoever is probed chooses it, and the event loop waits.
_SECRETS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"',;]+"), rf"\1 {_MASK}"),
    (re.compile(r"(?i)(\b[a-z][a-z0-9+.-]{0,20}://)[^/\s@]+@"), rf"\1{_MASK}@"),
    (re.compile(r"(?i)(api[_-]?key|token|secret|password)(\"?\s*[=:]\s*\"?)[^\s\"',;&]{4,}"), rf"\1\2{_MASK}"),
    (re.compile(r"(?<![A-Za-z0-9])(?:sk|pk|rk|hf|gsk|xai|AIza)[-_]?[A-Za-z0-9_*.-]{6,}"), _MASK),
    # Any long token with many digits: a key of a kind we don't know. The digits keep names of models out of it.
    (
        re.compile(r"[A-Za-z0-9_+=-]{32,}"),
        lambda token: _MASK if len(re.findall(r"\d", token[0])) >= MIN_DIGITS else token[0],
    ),
)


def excerpt(text: str, secrets: tuple[str, ...] = ()) -> str:
    """``text`` on one line, redacted, at most 200 characters.

    ``secrets`` are the exact values that must not appear. Redaction comes before the cut: half a key is a leak too.
    """
    line = " ".join(text[:20_000].split())
    line = "".join(character for character in line if character.isprintable())
    for secret in secrets:
        if secret:
            line = line.replace(secret, _MASK)
    for pattern, replacement in _SECRETS:
        line = pattern.sub(replacement, line)
    return line if len(line) <= MAX_CHARACTERS else line[: MAX_CHARACTERS - 1] + "…"
