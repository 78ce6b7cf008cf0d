"""When a hosted target may be asked again after a failure. Pure: time and chance are passed in."""

from pinchpoint.snapshot import ProbeOutcome, ProbeSkip

STOP_SECONDS = 3600.0  # only a human can mend it; an hour later the mended key is noticed
LONGEST_PAUSE_SECONDS = 3600.0  # some servers say "retry after a day"

_STOPS = {
    ProbeOutcome.AUTH: ProbeSkip.AUTH_STOP,
    ProbeOutcome.QUOTA: ProbeSkip.QUOTA_STOP,
}
_BUSY = frozenset(
    {ProbeOutcome.OVERLOADED, ProbeOutcome.RATE_LIMITED, ProbeOutcome.SERVER_ERROR, ProbeOutcome.ENGINE_DEAD}
)


class Pacer:
    """For a caller that comes by at every interval. The first failure costs no pause: one failure is no news."""

    def __init__(self, interval_seconds: float) -> None:
        self._interval = interval_seconds
        self.reset()

    def reset(self) -> None:
        """Forget what has happened: the operator has changed something, or the server is back."""
        self._due_at = self._asked_until = float("-inf")
        self._failures = 0
        self._cause = ProbeSkip.BACKOFF

    def back(self) -> None:
        """The server is back: its failures earn it no pause any more. What it asked for stays, and so does a stop."""
        if self._cause is ProbeSkip.BACKOFF:
            self._due_at, self._failures = self._asked_until, 0

    def refusal(self, now: float) -> ProbeSkip | None:
        """Why not to ask now; ``None`` when there is no reason."""
        return self._cause if now < self._due_at else None

    def ended(
        self, outcome: ProbeOutcome, began: float, now: float, chance: float, retry_after_seconds: float | None = None
    ) -> None:
        """A probe that ``began`` then is over. ``chance`` in 0..1 spreads those who would all return at once."""
        if outcome in _STOPS:
            self._cause = _STOPS[outcome]
            self._due_at = self._on_grid(began + STOP_SECONDS)
        elif outcome in _BUSY:
            self._cause = ProbeSkip.BACKOFF
            pause = min(self._interval * 2 ** min(self._failures, 20), LONGEST_PAUSE_SECONDS) * (0.75 + chance / 2)
            self._due_at = self._on_grid(began + pause)
            self._failures += 1
        else:
            self.reset()
        if retry_after_seconds is not None and outcome is not ProbeOutcome.OK:
            self._asked_until = now + min(max(0.0, retry_after_seconds), LONGEST_PAUSE_SECONDS)
            self._due_at = max(self._due_at, self._asked_until)

    def _on_grid(self, due_at: float) -> float:
        """So that a caller who comes a little early is not sent away for a whole interval."""
        return due_at - self._interval / 2
