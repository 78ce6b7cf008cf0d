"""The door of one hosted target: whether a probe may be sent now, and what it has cost."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from pinchpoint.snapshot import ProbeReading, ProbeSkip
from pinchpoint.sources.probe.spend.amount import Cap, Caps, Spent
from pinchpoint.sources.probe.spend.bill import billed
from pinchpoint.sources.probe.spend.book import Ask, Left, Refusal, Reservation
from pinchpoint.sources.probe.spend.estimate import default_tokens_per_day, most_tokens
from pinchpoint.sources.probe.spend.pacing import Pacer
from pinchpoint.sources.probe.spend.purse import Purse

if TYPE_CHECKING:
    from pinchpoint.sources.probe.settings import ProbeTargetSettings

SECONDS_APART = 54.0  # nine tenths of the shortest interval: restarts in quick succession don't each send a probe

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A probe may be sent. ``spent`` is what it counts as until it is settled."""

    reservation: Reservation
    began: float

    @property
    def spent(self) -> Spent:
        return self.reservation.spent


class Admission:
    """``ask`` before each probe, ``settle`` after it. What is never settled stays spent at its worst.

    ``left`` is what may still be spent, as the ledger last said; ``None`` while it can't say. ``held`` is why the last
    probe was not sent. ``chance`` gives 0..1; ``seconds_apart`` is the least between two probes, whoever sends them.
    """

    def __init__(
        self,
        target: ProbeTargetSettings,
        caps_of_all: Caps,
        purse: Purse,
        *,
        seconds_apart: float = SECONDS_APART,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._target = target
        self._seconds_apart = seconds_apart
        self._chance = chance
        self._pacer = Pacer(target.interval_seconds)
        self.held: Refusal | None = None
        self.left: Left | None = None
        self.change(caps_of_all, purse)

    def change(self, caps_of_all: Caps, purse: Purse) -> None:
        """Other caps and another ledger may hold from now on; what held probes back is forgotten."""
        self._ask = ask_of(self._target, caps_of_all, seconds_apart=self._seconds_apart)
        self._purse = purse
        self._pacer.reset()

    def alive(self) -> None:
        """The server is back: it need not be spared any longer than it asked for."""
        self._pacer.back()

    async def ask(self, now: float) -> Grant | ProbeSkip:
        """Leave to send one probe now, its worst cost set aside on the disk; or the cause why not."""
        if (cause := self._pacer.refusal(now)) is not None:
            self._tell(Refusal(cause=cause))
            return cause
        answer, left = await self._purse.reserve(self._ask)
        self.left = left
        if isinstance(answer, Refusal):
            self._tell(answer)
            return answer.cause
        self._tell(None)
        return Grant(reservation=answer, began=now)

    async def settle(self, grant: Grant, reading: ProbeReading, now: float) -> Spent:
        """What the probe has cost, written down; it also decides when the next one may be sent."""
        self._pacer.ended(reading.outcome, grant.began, now, self._chance(), reading.retry_after_seconds)
        bill = billed(reading, grant.reservation.most)
        self.left = await self._purse.settle(grant.reservation, bill, self._ask) or self.left
        return Spent.on(bill, self._ask.price)

    @property
    def at_most(self) -> Spent:
        """What one probe can cost, sent a second time included."""
        return self._ask.reserve

    def _tell(self, refusal: Refusal | None) -> None:
        """One line when the cause changes, none while it stays."""
        before, self.held = self.held, refusal
        if refusal is None and before is not None:
            log.info("hosted probe goes on", target=self._target.name)
        elif refusal is not None and (before is None or before.cause is not refusal.cause):
            log.warning(
                "hosted probe is held back",
                target=self._target.name,
                cause=refusal.cause.value,
                detail=refusal.detail,
            )


def ask_of(target: ProbeTargetSettings, caps_of_all: Caps, seconds_apart: float = 0.0) -> Ask:
    """What one probe of this target would like to spend, and under which caps."""
    most = most_tokens(target.prompt_words, target.max_tokens, target.parameters.extra_body)
    caps = target.caps.caps()
    if not target.caps.are_given:
        day = default_tokens_per_day(target.prompt_words, target.max_tokens, target.interval_seconds, most)
        caps = Caps(day=Cap(tokens=day))
    return Ask(
        target=target.name,
        most=most,
        price=target.price.price() if target.price is not None else None,
        caps=caps,
        caps_of_all=caps_of_all,
        seconds_apart=seconds_apart,
    )
