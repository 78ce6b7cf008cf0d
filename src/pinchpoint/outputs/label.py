"""Label values as every form of /metrics writes them."""

MAX_LABEL_CHARACTERS = 200


def shown(text: str) -> str:
    """Untrusted text as a label value has it: printable characters only (so no line break, no bidi trick, no half of a
    surrogate pair), no more than 200 of them."""
    if len(text) > MAX_LABEL_CHARACTERS or not text.isprintable():
        text = "".join(filter(str.isprintable, text[: 10 * MAX_LABEL_CHARACTERS]))[:MAX_LABEL_CHARACTERS]
    return text


def label_value(text: str) -> str:
    """The same as it is written: escaped."""
    return shown(text).replace("\\", r"\\").replace('"', r"\"")
