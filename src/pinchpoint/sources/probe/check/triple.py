"""The values of a check: what is checked, each step of it, and what turned out to be wrong. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pinchpoint.sources.probe.dialects import DialectName

SHOWN_CHARACTERS = 4  # of a key: enough to tell it from another
MIN_KEY_TO_SHOW = 16  # characters; of a shorter one four would be much


class Part(StrEnum):
    """What is wrong: one of the three that were given, or none of them."""

    URL = "url"
    KEY = "key"
    MODEL = "model"
    NETWORK = "network"
    ACCOUNT = "account"
    SERVER = "server"
    REQUEST = "request"


class State(StrEnum):
    """What became of a step."""

    FINE = "fine"
    WRONG = "wrong"
    UNSURE = "unsure"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong, or, as a note, that may be. ``remedy`` says what to write instead."""

    part: Part
    what: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step, in the order in which they are taken."""

    name: str
    state: State
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Triple:
    """One use of an API: base URL, key and model, as a tool's configuration or the operator gives them.

    ``places`` says where each of the three is written. ``appended`` is what the tool puts behind its base URL before
    the API's own path (Claude Code: ``/v1``); ``None`` for pinchpoint, which finds that out. ``bearer`` sends the key
    as ``Authorization: Bearer`` whatever the dialect's own header is. ``flaws`` and ``notes`` were seen as it was read.
    """

    name: str
    url: str
    key: str = field(default="", repr=False)
    model: str = ""
    dialect: DialectName = DialectName.OPENAI_CHAT
    appended: str | None = None
    bearer: bool = False
    places: Mapping[Part, str] = field(default_factory=dict)
    flaws: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()

    def place(self, part: Part) -> str:
        return self.places.get(part, f"the target's {'api_key_file' if part is Part.KEY else part}")

    @property
    def key_hint(self) -> str:
        """Which key it is, without giving it away."""
        if not self.key:
            return "none"
        shown = f"…{self.key[-SHOWN_CHARACTERS:]} " if len(self.key) >= MIN_KEY_TO_SHOW else ""
        return f"{shown}({len(self.key)} characters)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result. ``wrong`` is empty when all is well; ``notes`` are what may hurt elsewhere. Holds no key."""

    name: str
    url: str
    key_hint: str
    model: str
    dialect: DialectName
    places: Mapping[Part, str] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    wrong: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
