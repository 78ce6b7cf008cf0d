"""What an answer has said so far, and when: the accumulated facts of one stream. Pure: time comes in as stamps."""

from dataclasses import dataclass, field

from pinchpoint.sources.probe.event import StreamEvent, TextKind, Usage

MAX_TEXT_STAMPS = 10_000  # an answer has at most 4,096 tokens


@dataclass(slots=True, kw_only=True)
class Transcript:
    """Stamps are ``perf_counter_ns`` of the socket read that brought the event, so events of one read share a stamp."""

    first_text_ns: int | None = None
    pace_ns: int | None = None  # of the first text whose tokens are counted: any but a summary
    first_content_ns: int | None = None
    last_text_ns: int | None = None
    end_ns: int | None = None  # of the last event that said anything
    text_ns: list[int] = field(default_factory=list)  # of each event with text, as far as MAX_TEXT_STAMPS
    text_events: int = 0
    text_reads: int = 0
    characters: int = 0
    first_chunk_tokens: int = 1
    first_read_tokens: int = 0  # of all the chunks that came with the first
    kinds: set[TextKind] = field(default_factory=set)
    usage: Usage | None = None
    finish_reason: str | None = None
    done: bool = False
    error: object = None
    choices: bool = False
    reasoned: bool = False
    malformed: int = 0

    @property
    def ended(self) -> bool:
        """The server said that the answer is complete. Either sign is enough: not every server sends both."""
        return self.done or self.finish_reason is not None

    @property
    def reasoning(self) -> str | None:
        """How the model's reasoning was shown: streamed, summary or hidden. ``None`` when it is known of none."""
        if TextKind.REASONING in self.kinds:
            return "streamed"
        if TextKind.SUMMARY in self.kinds:
            return "summary"
        counted = self.usage.reasoning_tokens if self.usage is not None else None
        return "hidden" if counted or (counted is None and self.reasoned) else None

    def add(self, event: StreamEvent, at_ns: int) -> None:
        """Take in one event that came with the read of ``at_ns``. The last usage wins, the first error stays."""
        if event.text is not None:
            self._add_text(event, event.text, at_ns)
        if event.progress or event.error is not None:
            self.end_ns = at_ns
        if event.usage is not None:
            self.usage = self.usage.updated(event.usage) if self.usage is not None else event.usage
        self.finish_reason = event.finish_reason or self.finish_reason
        self.done = self.done or event.done
        self.error = self.error if self.error is not None else event.error
        self.choices = self.choices or event.choices
        self.reasoned = self.reasoned or event.reasoned
        self.malformed += event.malformed

    def _add_text(self, event: StreamEvent, kind: TextKind, at_ns: int) -> None:
        self.kinds.add(kind)
        if self.first_text_ns is None:
            self.first_text_ns = at_ns
        if kind is TextKind.SUMMARY:
            return
        if self.pace_ns is None or self.pace_ns == at_ns:
            self.first_read_tokens = self._tokens_with(event, kind, self.first_read_tokens + 1)
        if self.pace_ns is None:
            self.pace_ns, self.first_chunk_tokens = at_ns, self.first_read_tokens
        if kind is TextKind.CONTENT and self.first_content_ns is None:
            self.first_content_ns = at_ns
        self.text_reads += at_ns != self.last_text_ns
        self.last_text_ns = at_ns
        self.text_events += 1
        if len(self.text_ns) < MAX_TEXT_STAMPS:
            self.text_ns.append(at_ns)
        self.characters += event.characters

    @staticmethod
    def _tokens_with(event: StreamEvent, kind: TextKind, otherwise: int) -> int:
        """The tokens up to this event, as the server counts them; hidden ones apart."""
        if event.usage is None or not event.usage.completion_tokens:
            return otherwise
        before = 0 if kind is TextKind.REASONING else event.usage.reasoning_tokens or 0
        return max(1, event.usage.completion_tokens - before)
