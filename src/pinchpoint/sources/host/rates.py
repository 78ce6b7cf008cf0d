"""What two looks at the kernel's counters make."""


def share(part: float, whole: float) -> float | None:
    """``None`` when no time has passed or a counter went back (iowait may, by a tick). The clocks differ a little."""
    return min(part / whole, 1.0) if whole > 0 and part >= 0 else None
