"""One short, safe line out of what a server said. Servers echo keys and name accounts: nothing leaves here unredacted.

Taken out: the target's own key in whole and in part, keys and tokens of every known make and of unknown ones, user
info in URLs, addresses of mail, and the ids of accounts, organisations, projects and users.
"""

import base64
import re
from collections.abc import Callable

MAX_CHARACTERS = 200
MAX_READ = 20_000
MIN_SECRET = 4  # a dummy key shorter than that ("x") is no secret, and would take letters out of words
MIN_PART = 8  # of the target's own key: so much of its beginning or end gives it away
MASK = "[redacted]"
_URL_SAFE = str.maketrans("+/", "-_")

_MAKES = (  # how keys of known makes begin; each is followed by - or _ unless it says so itself
    r"(?:sk|pk|rk|csk|gsk|hf|fw|xai|tgp|nvapi|pplx|r8|gh[pousr]|github_pat|glpat|xox[abprs]|ms|ak|cr|key)[-_]"
    r"|AIza|ya29\.|AKIA|ASIA|LTAI|AQ\."
)
_OWNERS = r"(?:user|account|acct|org|organi[sz]ation|project|tenant|customer|subscription|team|workspace|client)"

# JSON's, which put a letter before a word or hide the @ of an address, and those of URLs
_ESCAPES = re.compile(r"\\(?:u00([0-9a-fA-F]{2})|[nrt\"/\\])|%([2-7][0-9a-fA-F])")

# Each takes time in proportion to the text: whoever is probed chooses it, and the event loop waits.
_SECRETS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"',;]+"), rf"\1 {MASK}"),
    (re.compile(r"(?i)(\b[a-z][a-z0-9+.-]{0,20}://)[^/\s@]+@"), rf"\1{MASK}@"),
    (
        re.compile(
            r"(?i)(api[_-]?key|access[_-]?key|token|secret|passw(?:or)?d|authorization|credential)"
            r"([\"']?\s*[=:]\s*[\"']?)(?!bearer|basic|\[redacted)[^\s\"',;&]{4,}"
        ),
        rf"\1\2{MASK}",
    ),
    (re.compile(r"[^\s@<>\"'()\[\],;:=]{1,64}@[^\s@<>\"'()\[\],;:=]{1,255}"), MASK),  # mail
    (re.compile(r"(?<![\w-])eyJ[\w-]{5,}\.[\w.-]*"), MASK),  # JWT
    (re.compile(rf"(?<![A-Za-z0-9])(?:{_MAKES})[A-Za-z0-9_*.-]{{6,}}"), MASK),
    (re.compile(r"\barn:[^\s\"',;]+"), MASK),
    (re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"), MASK),
    # org-…, proj_…: an id that wears its owner's name
    (
        re.compile(
            rf"(?i)(?<![a-z0-9])(?:{_OWNERS}|proj|cus|wrkspc|uid)[-_](?=[a-z]{{0,40}}\d|[a-z0-9]{{16}})[\w-]{{5,}}"
        ),
        MASK,
    ),
    # account id 1234, project 1234, projects/1234, 用户 1234
    (
        re.compile(
            rf"(?i)\b({_OWNERS}s?(?:[ _-]?(?:id|number|name|uid))?)([\"']?(?:\s*(?:[=:#/]|is)\s*|\s+)[\"'`<(\[]?)"
            r"(?=[a-z_.-]{0,40}\d)[\w.-]{4,}"
        ),
        rf"\1\2{MASK}",
    ),
    (re.compile(r"((?:用户|账户|账号|组织|项目)(?:ID|id)?\s*[:：#]?\s*)[A-Za-z_-]{0,40}\d[\w-]*"), rf"\1{MASK}"),
    # Any long token with many digits: a key of a kind we don't know. The digits keep names of models out of it.
    (re.compile(r"[A-Za-z0-9_+=/-]{20,}(?:\.[A-Za-z0-9_-]{8,})*"), lambda token: _long(token[0])),
)


def excerpt(text: str, secrets: tuple[str, ...] = ()) -> str:
    """``text`` on one line, redacted, at most 200 characters.

    ``secrets`` are the exact values that must not appear. Redaction comes before the cut: half a key is a leak too.
    """
    read = text[:MAX_READ]
    if len(text) > MAX_READ:
        read = read.rpartition(" ")[0]  # what the cut went through is no whole word
    for secret in secrets:
        # Before blanks are put together and escapes undone, for a key may hold both; of its parts, below.
        read = read.replace(secret, MASK) if len(secret) >= MIN_SECRET else read
    for _ in range(2):  # a message in a document in a document
        read = _ESCAPES.sub(_unescaped, read)
    line = "".join(character for character in " ".join(read.split()) if character.isprintable())
    for secret in secrets:
        line = _without(line, secret)
    for pattern, replacement in _SECRETS:
        line = pattern.sub(replacement, line)
    return line if len(line) <= MAX_CHARACTERS else line[: MAX_CHARACTERS - 1] + "…"


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2]
    return chr(int(code, 16)) if code else " " if escape[0][1] in "nrt" else escape[0][1]


def _without(text: str, secret: str) -> str:
    """``text`` without the secret in any case or in base64, and without what begins as it does or ends as it does."""
    if len(secret) < MIN_SECRET:
        return text
    text = text.replace(secret, MASK)
    if len(secret) < MIN_PART:  # "EMPTY" is a key of many an engine, and "empty" a word
        return text
    packed = base64.b64encode(secret.encode(errors="replace")).decode().rstrip("=")
    for form in (secret, packed, packed.translate(_URL_SAFE)):
        text = re.sub(re.escape(form), MASK, text, flags=re.IGNORECASE)
    if len(secret) < 2 * MIN_PART:
        return text
    text = re.sub(re.escape(secret[:MIN_PART]) + r"[\w.+/=*-]*", MASK, text, flags=re.IGNORECASE)
    return re.sub(r"[\w.+/=*-]{0,200}" + re.escape(secret[-MIN_PART:]), MASK, text, flags=re.IGNORECASE)


def _long(token: str) -> str:
    """The token, or the mask where it is made as keys are: one long piece with digits in it, or very many digits."""
    pieces = re.split(r"[_+=/.-]", token)
    digits = sum(character.isdigit() for character in token)
    random = any(len(piece) >= 20 and sum(c.isdigit() for c in piece) >= 2 for piece in pieces)
    name = len(pieces) >= 4 and max(map(len, pieces)) < 12
    return MASK if random or (len(token) >= 32 and digits >= 6 and not name) else token
