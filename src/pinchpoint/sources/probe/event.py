"""What one event of an answer means, in words that fit every dialect of streaming."""

from dataclasses import dataclass
from enum import StrEnum


class TextKind(StrEnum):
    """Which sort of generated text an event carries. Any of them ends the wait for TTFT, only content that for TTFC.

    A summary tells of reasoning in other words than the tokens that are billed for it, so it has no pace of its own.
    """

    CONTENT = "content"
    REASONING = "reasoning"
    SUMMARY = "summary"
    TOOL = "tool"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts as the server bills them. ``prompt_tokens`` includes ``cached_tokens``, and ``completion_tokens``
    includes ``reasoning_tokens``: dialects that count apart are added up.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None

    def updated(self, later: "Usage | None") -> "Usage":
        """The later counts, and these where the later ones are silent: some servers count input and output apart."""
        if later is None:
            return self

        def known(new: int | None, old: int | None) -> int | None:
            return old if new is None else new

        return Usage(
            prompt_tokens=known(later.prompt_tokens, self.prompt_tokens),
            completion_tokens=known(later.completion_tokens, self.completion_tokens),
            reasoning_tokens=known(later.reasoning_tokens, self.reasoning_tokens),
            cached_tokens=known(later.cached_tokens, self.cached_tokens),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvent:
    """One event, understood. The default is one that says nothing: a keepalive, a role chunk, an empty delta.

    ``finish_reason`` is in OpenAI's words: stop, length, content_filter, tool_calls, or the server's own.
    """

    text: TextKind | None = None
    characters: int = 0
    usage: Usage | None = None
    finish_reason: str | None = None
    error: object = None  # the server's error, as it came; None is none
    choices: bool = False  # it is part of an answer: a choice, a content block, a candidate
    reasoned: bool = False  # the model reasons, whether or not its words are shown
    done: bool = False
    malformed: bool = False

    @property
    def progress(self) -> bool:
        """Whether the answer got on with this event, which a keepalive's does not."""
        return self.text is not None or self.usage is not None or self.finish_reason is not None or self.done
