"""What one event of an answer means, in words that fit every dialect of streaming."""

from dataclasses import dataclass
from enum import StrEnum


class TextKind(StrEnum):
    """Which sort of generated text an event carries. Any of them ends the wait for TTFT, only content that for TTFC."""

    CONTENT = "content"
    REASONING = "reasoning"
    TOOL = "tool"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts as the server bills them. ``completion_tokens`` includes ``reasoning_tokens``."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvent:
    """One event, understood. The default is one that says nothing: a keepalive, a role chunk, an empty delta."""

    text: TextKind | None = None
    characters: int = 0
    usage: Usage | None = None
    finish_reason: str | None = None
    error: object = None  # the server's error, as it came; None is none
    choices: bool = False  # it carried at least one choice: the server is generating
    done: bool = False
    malformed: bool = False

    @property
    def progress(self) -> bool:
        """Whether the answer got on with this event, which a keepalive's does not."""
        return self.text is not None or self.usage is not None or self.finish_reason is not None or self.done
