"""The ledger as a value: whatever happens in whatever order, no cap is passed and nothing granted is forgotten."""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pinchpoint.snapshot import ProbeSkip
from pinchpoint.sources.probe.spend.amount import NANO, Cap, Caps, Price, Spent, Tokens
from pinchpoint.sources.probe.spend.book import (
    MAX_DAYS,
    MAX_MONTHS,
    Ask,
    Book,
    Refusal,
    Reservation,
    left,
    reserve,
    settle,
)
from pinchpoint.sources.probe.spend.book_text import CorruptError, NewerError, from_text, to_text
from pinchpoint.sources.probe.spend.days import day_of, month_of

DAY = 86_400.0
NOON = 1_796_040_000.0  # 2026-11-30 12:00 UTC
MOST = Tokens(input=60, output=40)
PRICE = Price(input=1.0, output=2.0, cached=0.5)  # the most of a request: 140 micro-dollars


def ask(**more) -> Ask:
    return Ask(**{"target": "t", "most": MOST, "caps": Caps(day=Cap(tokens=1000)), **more})


def granted(book: Book, asked: Ask, unix: float = NOON) -> tuple[Book, Reservation]:
    answer = reserve(book, asked, unix)
    assert not isinstance(answer, Refusal), answer
    return answer


def refused(book: Book, asked: Ask, unix: float = NOON) -> Refusal:
    answer = reserve(book, asked, unix)
    assert isinstance(answer, Refusal)
    return answer


def test_a_reserve_is_twice_the_worst_of_one_request_and_counts_as_spent_until_it_is_settled() -> None:
    book, reservation = granted(Book(id="a"), ask(price=PRICE))
    assert reservation.spent == Spent(tokens=200, nano_usd=280_000)
    assert left(book, ask(), NOON).tokens == {"day": 800}
    book = settle(book, reservation, Tokens(input=50, output=32), PRICE)
    assert left(book, ask(), NOON).tokens == {"day": 918}
    assert book.accounts["t"].days["2026-11-30"] == Spent(tokens=82, nano_usd=114_000)


def test_what_is_never_settled_stays_spent_until_the_cap_is_reached_and_a_new_day_begins() -> None:
    book = Book(id="a")
    for _ in range(5):
        book, _ = granted(book, ask())
    refusal = refused(book, ask())
    assert refusal.cause is ProbeSkip.BUDGET
    assert refusal.detail == "tokens_per_day: 0 are left, a probe may take 200"
    granted(book, ask(), NOON + DAY / 2)


def test_a_month_ends_where_utc_says_and_its_cap_holds_over_its_days() -> None:
    asked = ask(caps=Caps(month=Cap(tokens=450)))
    book, _ = granted(Book(id="a"), asked, NOON - 29 * DAY)
    book, _ = granted(book, asked, NOON)
    assert refused(book, asked, NOON + DAY / 2 - 1).cause is ProbeSkip.BUDGET
    granted(book, asked, NOON + DAY / 2)


def test_money_has_its_own_cap_and_none_is_granted_where_the_price_is_not_known() -> None:
    asked = ask(price=PRICE, caps=Caps(day=Cap(nano_usd=600_000)))
    book, _ = granted(Book(id="a"), asked)
    book, _ = granted(book, asked)
    assert refused(book, asked).detail == "usd_per_day: 4e-05 are left, a probe may cost 0.00028"
    assert refused(Book(id="a"), replace(asked, price=None)).cause is ProbeSkip.BUDGET


def test_tokens_that_had_no_price_count_at_the_dearest_once_there_is_one() -> None:
    book, _ = granted(Book(id="a"), ask())
    assert book.accounts["t"].days["2026-11-30"].usd is None
    assert left(book, ask(price=PRICE, caps=Caps(day=Cap(nano_usd=NANO))), NOON).nano_usd == {"day": NANO - 400_000}


def test_the_cap_of_all_counts_every_target_also_one_that_is_no_longer_configured() -> None:
    together = Caps(day=Cap(tokens=500))
    book, _ = granted(Book(id="a"), ask(target="gone", caps_of_all=together))
    book, _ = granted(book, ask(target="b", caps_of_all=together))
    assert left(book, ask(target="c", caps_of_all=together), NOON).tokens == {"day": 100}
    assert refused(book, ask(target="c", caps_of_all=together)).cause is ProbeSkip.BUDGET


def test_a_bill_above_its_reserve_is_learnt_from() -> None:
    book, reservation = granted(Book(id="a"), ask())
    book = settle(book, reservation, Tokens(input=60, output=340), None)
    assert left(book, ask(), NOON).tokens == {"day": 600}
    _, reservation = granted(book, ask())
    assert reservation.spent.tokens == 400


def test_one_absurd_bill_stops_a_target_for_its_month_and_not_for_good() -> None:
    book, reservation = granted(Book(id="a"), ask())
    book = settle(book, reservation, Tokens(input=60, output=10**9), None)
    assert refused(book, ask(), NOON + 60).cause is ProbeSkip.BUDGET
    _, reservation = granted(book, ask(), NOON + DAY)  # the first of December
    assert reservation.spent.tokens == 200


def test_a_bill_is_settled_on_the_day_of_its_reserve() -> None:
    late = NOON + DAY / 2 - 1
    book, reservation = granted(Book(id="a"), ask(), late)
    book, _ = granted(book, ask(), late + 2)
    book = settle(book, reservation, Tokens(input=10, output=10), None)
    assert {day: spent.tokens for day, spent in book.accounts["t"].days.items()} == {
        "2026-12-01": 200,
        "2026-11-30": 20,
    }


def test_what_another_book_has_granted_is_not_settled_here() -> None:
    _, reservation = granted(Book(id="a"), ask())
    book, _ = granted(Book(id="b"), ask())
    assert settle(book, reservation, Tokens(), None) == book


def test_two_probes_are_kept_apart_but_a_clock_that_was_set_back_holds_nothing_up() -> None:
    asked = ask(seconds_apart=54)
    book, _ = granted(Book(id="a"), asked)
    assert refused(book, asked, NOON + 53).cause is ProbeSkip.TOO_SOON
    granted(book, asked, NOON + 54)
    granted(book, asked, NOON - 3600)


def test_after_a_lost_book_its_day_is_used_up_and_the_days_of_its_month_before_it() -> None:
    caps = Caps(day=Cap(tokens=1000), month=Cap(tokens=30_500))
    lost = Book(id="a", lost_on="2026-11-30")
    assert left(lost, ask(caps=caps), NOON).tokens == {"day": 0, "month": 500}
    assert left(lost, ask(caps=Caps(month=Cap(tokens=9))), NOON).tokens == {"month": 0}, "no day's cap: nobody knows"
    assert refused(lost, ask(caps=caps)).cause is ProbeSkip.BUDGET
    assert left(lost, ask(caps=caps), NOON + DAY).tokens == {"day": 1000, "month": 30_500}


def test_a_text_that_was_changed_is_no_ledger() -> None:
    book, _ = granted(Book(id="a"), ask())
    text = to_text(book)
    assert from_text(text) == book
    for broken in (text.replace("200", "100"), text[:-20], "", "{}", "[]", "null", "\x00" * 99, text.replace("a", "b")):
        with pytest.raises(CorruptError):
            from_text(broken)


@given(st.text(), st.integers(0, 400), st.integers(0, 20))
def test_no_text_does_more_than_be_corrupt(junk: str, at: int, length: int) -> None:
    text = to_text(granted(Book(id="a"), ask())[0])
    changed = text[:at] + junk + text[at + length :]
    with suppress(CorruptError, NewerError):
        assert from_text(changed) == from_text(text)


class Ledger(RuleBasedStateMachine):
    """Three targets spend under caps of their own and in common, while the clock steps, restarts and bills differ.

    ``spent`` is the truth: what providers have billed, or may have for all we know.
    """

    @initialize(
        day=st.integers(200, 1500), month=st.integers(200, 4000), all_day=st.integers(200, 2500), usd=st.integers(1, 9)
    )
    def begin(self, day: int, month: int, all_day: int, usd: int) -> None:
        self.caps = Caps(day=Cap(tokens=day, nano_usd=usd * 280_000), month=Cap(tokens=month))
        self.caps_of_all = Caps(day=Cap(tokens=all_day))
        self.book, self.unix = Book(id="a"), NOON
        self.open: list[Reservation] = []
        self.spent: dict[tuple[str, str], int] = {}
        self.nano_usd: dict[tuple[str, str], int] = {}

    def asked(self, target: str) -> Ask:
        return ask(target=target, price=PRICE, caps=self.caps, caps_of_all=self.caps_of_all)

    @rule(name=st.sampled_from("xyz"))
    def send(self, name: str) -> None:
        answer = reserve(self.book, self.asked(name), self.unix)
        if isinstance(answer, Refusal):
            room = left(self.book, self.asked(name), self.unix)
            assert min(room.tokens.values()) < 200 or min(room.nano_usd.values()) < 280_000
            return
        self.book, reservation = answer
        self.open.append(reservation)
        key = (name, reservation.day)
        self.spent[key] = self.spent.get(key, 0) + 200
        self.nano_usd[key] = self.nano_usd.get(key, 0) + 280_000

    @rule(which=st.integers(0, 9), tokens_in=st.integers(0, 120), tokens_out=st.integers(0, 80))
    def bill(self, which: int, tokens_in: int, tokens_out: int) -> None:
        if not self.open:
            return
        reservation = self.open.pop(which % len(self.open))
        bill = Tokens(input=tokens_in, output=tokens_out)
        self.book = settle(self.book, reservation, bill, PRICE)
        key = (reservation.target, reservation.day)
        self.spent[key] += bill.total - 200
        self.nano_usd[key] += PRICE.nano_usd(bill) - 280_000

    @rule()
    def crash(self) -> None:
        self.open.clear()
        self.book = from_text(to_text(self.book))

    @rule(hours=st.sampled_from([-30, -5, 1, 11, 24]))
    def pass_time(self, hours: int) -> None:
        self.unix = min(max(self.unix + hours * 3600, NOON - 3 * DAY), NOON + 3 * DAY)  # fewer days than are kept

    @invariant()
    def no_cap_is_passed(self) -> None:
        if not hasattr(self, "book"):
            return
        days = {day for _, day in self.spent}
        for day in days:
            assert sum(tokens for (_, d), tokens in self.spent.items() if d == day) <= self.caps_of_all.day.tokens
        for key, tokens in self.spent.items():
            assert tokens <= self.caps.day.tokens
            assert self.nano_usd[key] <= self.caps.day.nano_usd
        for target in "xyz":
            for month in {month_of(day) for day in days}:
                of_month = (n for (t, day), n in self.spent.items() if t == target and month_of(day) == month)
                assert sum(of_month) <= self.caps.month.tokens

    @invariant()
    def the_book_holds_the_truth(self) -> None:
        if not hasattr(self, "book"):
            return
        held = {(t, day): s.tokens for t, one in self.book.accounts.items() for day, s in one.days.items()}
        assert held == self.spent
        day = day_of(self.unix)
        for target in "xyz":
            room = left(self.book, self.asked(target), self.unix).tokens["day"]
            assert room <= self.caps.day.tokens - self.spent.get((target, day), 0)


TestLedger = Ledger.TestCase
TestLedger.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_book_grows_no_further_than_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pinchpoint.sources.probe.spend.book.MAX_ACCOUNTS", 20)
    book = Book(id="a")
    for day in range(400):
        book, _ = granted(book, ask(target=f"t{day % 7}"), NOON + day * DAY)
    assert all(len(one.days) <= MAX_DAYS and len(one.months) <= MAX_MONTHS for one in book.accounts.values())
    for number in range(30):
        book, _ = granted(book, ask(target=f"n{number}"), NOON)
    assert len(book.accounts) == 20
    assert "n29" in book.accounts
