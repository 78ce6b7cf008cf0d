"""The ledger as a value: what each target has spent in which day and month, and whether it may spend more. Pure.

A reserve is spent from the moment that it is granted, and put right when the bill is known. So nothing has to be mended
after a crash: what was not settled stays spent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pinchpoint.snapshot import ProbeSkip
from pinchpoint.sources.probe.spend.amount import Caps, Price, Spent, Tokens
from pinchpoint.sources.probe.spend.days import day_of, month_of
from pinchpoint.sources.probe.spend.estimate import REQUESTS

NOTHING = Spent()
NO_CAPS = Caps()
MAX_DAYS, MAX_MONTHS = 10, 4  # kept of each target: those that were last written, whatever the clock said then
MAX_ACCOUNTS = 1000  # ten times the targets that can be configured, for names that are no longer used


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Of one target. ``days`` and ``months`` by label, the one written last at the end."""

    days: Mapping[str, Spent] = field(default_factory=dict)
    months: Mapping[str, Spent] = field(default_factory=dict)
    asked_unix: float | None = None  # when the last reserve was granted
    most_tokens: int = 0  # that one request can take, learnt from a bill above its reserve, this month


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """All accounts. ``id`` is this book's own: what another book granted can't be settled here.

    ``lost_on`` is the day on which the book before this one was lost. Nobody knows what it held, so that day counts as
    spent to its cap, and each day of that month before it too.
    """

    id: str
    accounts: Mapping[str, Account] = field(default_factory=dict)
    lost_on: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a target would like to spend. ``most`` is the worst that one request can take."""

    target: str
    most: Tokens
    price: Price | None = None
    caps: Caps = NO_CAPS
    caps_of_all: Caps = NO_CAPS
    seconds_apart: float = 0.0  # at least, between two reserves of this target

    @property
    def reserve(self) -> Spent:
        """What one probe can cost, with the request that may have to be sent again."""
        tokens = Tokens(input=self.most.input * REQUESTS, output=self.most.output * REQUESTS)
        return Spent.on(tokens, self.price)

    def learnt(self, account: Account) -> Ask:
        """With more as the worst, where a request has taken more before: some servers limit no answer."""
        beyond = max(0, account.most_tokens - self.most.total)
        return replace(self, most=self.most + Tokens(output=beyond))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Granted, and counted as ``spent`` in this book on this day until it is settled."""

    book: str
    target: str
    day: str
    spent: Spent
    most: Tokens  # of one request


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    cause: ProbeSkip
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What a target may still spend, by ``day`` and ``month``: under its own caps and those of all. Never negative."""

    tokens: Mapping[str, int] = field(default_factory=dict)
    nano_usd: Mapping[str, int] = field(default_factory=dict)


def reserve(book: Book, ask: Ask, unix: float) -> tuple[Book, Reservation] | Refusal:
    """The book with the worst that a probe can cost in it; or why it may not be sent, and the book stays as it is."""
    account = book.accounts.get(ask.target, Account())
    ago = None if account.asked_unix is None else abs(unix - account.asked_unix)  # a clock may creep back, too
    if ago is not None and ago < ask.seconds_apart:
        return Refusal(cause=ProbeSkip.TOO_SOON, detail=f"the last one was {ago:.0f} s ago")
    if account.asked_unix is not None and month_of(day_of(account.asked_unix)) != month_of(day_of(unix)):
        account = replace(account, most_tokens=0)  # one odd bill must not stop a target for good
    ask = ask.learnt(account)
    day, amount, room = day_of(unix), ask.reserve, left(book, ask, unix)
    for period, number in room.tokens.items():
        if amount.tokens > number:
            what = f"tokens_per_{period}: {number} are left, a probe may take {amount.tokens}"
            return Refusal(cause=ProbeSkip.BUDGET, detail=what)
    for period, nano_usd in room.nano_usd.items():
        if ask.price is None or amount.nano_usd > nano_usd:
            what = f"usd_per_{period}: {nano_usd / 1e9:g} are left, a probe may cost {amount.nano_usd / 1e9:g}"
            return Refusal(cause=ProbeSkip.BUDGET, detail=what)
    account = replace(_changed(account, day, added=amount), asked_unix=unix)
    granted = Reservation(book=book.id, target=ask.target, day=day, spent=amount, most=ask.most)
    return _with(book, ask.target, account), granted


def settle(book: Book, granted: Reservation, bill: Tokens, price: Price | None) -> Book:
    """The book with the bill in place of the reserve, on the day of the reserve. To be called once at most."""
    account = book.accounts.get(granted.target)
    if granted.book != book.id or account is None or granted.day not in account.days:
        return book
    account = _changed(account, granted.day, added=Spent.on(bill, price), taken=granted.spent)
    if bill.total > granted.spent.tokens:  # by our reckoning impossible: the next reserve will be as large as this
        account = replace(account, most_tokens=-(-bill.total // REQUESTS))
    return _with(book, granted.target, account)


def left(book: Book, ask: Ask, unix: float) -> Left:
    """What ``ask.target`` may spend at this time. A period without a cap is not there."""
    day = day_of(unix)
    own, every = [book.accounts.get(ask.target, Account())], list(book.accounts.values())
    tokens: dict[str, int] = {}
    nano_usd: dict[str, int] = {}
    for caps, accounts in ((ask.caps, own), (ask.caps_of_all, every)):
        on_day = _sum(account.days.get(day) for account in accounts)
        in_month = _sum(account.months.get(month_of(day)) for account in accounts)
        for period, cap, spent in (("day", caps.day, on_day), ("month", caps.month, in_month)):
            if cap.tokens is not None:
                lost = _lost(book.lost_on, day, period, cap.tokens, caps.day.tokens)
                room = max(0, cap.tokens - lost - spent.tokens)
                tokens[period] = min(room, tokens.get(period, room))
            if cap.nano_usd is not None:
                lost = _lost(book.lost_on, day, period, cap.nano_usd, caps.day.nano_usd)
                used = spent.at_most_nano_usd(ask.price) if ask.price else spent.nano_usd
                room = max(0, cap.nano_usd - lost - used)
                nano_usd[period] = min(room, nano_usd.get(period, room))
    return Left(tokens=tokens, nano_usd=nano_usd)


def _lost(lost_on: str | None, day: str, period: str, cap: int, cap_of_day: int | None) -> int:
    """What counts as spent because the book that knew it was lost."""
    if lost_on is None or month_of(lost_on) != month_of(day) or (period == "day" and lost_on != day):
        return 0
    if period == "day" or cap_of_day is None:
        return cap
    return min(cap, cap_of_day * int(lost_on[-2:]))


def _sum(spent: Iterable[Spent | None]) -> Spent:
    return sum((each for each in spent if each is not None), NOTHING)


def _changed(account: Account, day: str, *, added: Spent, taken: Spent = NOTHING) -> Account:
    return replace(
        account,
        days=_written(account.days, day, added, taken, MAX_DAYS),
        months=_written(account.months, month_of(day), added, taken, MAX_MONTHS),
    )


def _written(periods: Mapping[str, Spent], label: str, added: Spent, taken: Spent, most: int) -> Mapping[str, Spent]:
    others = {name: spent for name, spent in periods.items() if name != label}
    kept = dict(list(others.items())[-(most - 1) :])
    return kept | {label: periods.get(label, NOTHING) + added - taken}


def _with(book: Book, target: str, account: Account) -> Book:
    others = {name: one for name, one in book.accounts.items() if name != target}
    kept = dict(list(others.items())[-(MAX_ACCOUNTS - 1) :])
    return replace(book, accounts=kept | {target: account})
