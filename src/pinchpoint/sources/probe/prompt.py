"""The text of a probe: a nonce first, some words to prefill, and a task that takes long to answer."""

import secrets
from itertools import cycle, islice

_WORDS = (
    "river stone window garden paper silver morning engine harbour candle bridge forest letter market winter copper "
    "orange valley thunder mirror basket island pepper saddle meadow lantern pocket ribbon cotton hammer violin anchor "
)
_TASK = "Ignore the words above. Count from one to two hundred in words, separated by commas, and write nothing else."


def nonce() -> str:
    """Sixteen characters that have not been in any prompt before."""
    return secrets.token_hex(8)


def build(nonce_text: str, words: int) -> str:
    """A prompt of about ``words`` words before the task.

    The nonce comes first and no system message stands before it: a prefix cache keeps leading blocks, so a prompt that
    began like the last one would be measured as a cache hit.
    """
    filler = " ".join(islice(cycle(_WORDS.split()), words))
    return f"{nonce_text} {filler}\n{_TASK}"
