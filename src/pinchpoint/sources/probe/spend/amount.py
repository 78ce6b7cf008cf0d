"""Tokens and money. Pure. Money is whole nano-dollars, for sums of floats drift; it is rounded up."""

from __future__ import annotations

import math
from dataclasses import dataclass

NANO = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Of one or several requests. ``input`` includes ``cached``, ``output`` includes reasoning."""

    input: int = 0
    output: int = 0
    cached: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            input=self.input + other.input, output=self.output + other.output, cached=self.cached + other.cached
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens."""

    input: float
    output: float
    cached: float

    def nano_usd(self, tokens: Tokens) -> int:
        """What these tokens cost."""
        cached = min(tokens.cached, tokens.input)
        micro_usd = (tokens.input - cached) * self.input + cached * self.cached + tokens.output * self.output
        return math.ceil(micro_usd * 1000)

    def at_most_nano_usd(self, tokens: int) -> int:
        """What tokens of an unknown kind cost at most."""
        return math.ceil(tokens * max(self.input, self.output, self.cached) * 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What was spent. ``unpriced_tokens`` are those of ``tokens`` whose price was not known then."""

    tokens: int = 0
    nano_usd: int = 0
    unpriced_tokens: int = 0

    @classmethod
    def on(cls, tokens: Tokens, price: Price | None) -> Spent:
        if price is None:
            return cls(tokens=tokens.total, unpriced_tokens=tokens.total)
        return cls(tokens=tokens.total, nano_usd=price.nano_usd(tokens))

    @property
    def usd(self) -> float | None:
        """``None`` when a price was missing: unknown is not 0."""
        return None if self.unpriced_tokens else self.nano_usd / NANO

    def at_most_nano_usd(self, price: Price) -> int:
        """With tokens that had no price then at the dearest of ``price``."""
        return self.nano_usd + price.at_most_nano_usd(self.unpriced_tokens)

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            tokens=self.tokens + other.tokens,
            nano_usd=self.nano_usd + other.nano_usd,
            unpriced_tokens=self.unpriced_tokens + other.unpriced_tokens,
        )

    def __sub__(self, other: Spent) -> Spent:
        """Never below nothing."""
        return Spent(
            tokens=max(0, self.tokens - other.tokens),
            nano_usd=max(0, self.nano_usd - other.nano_usd),
            unpriced_tokens=max(0, self.unpriced_tokens - other.unpriced_tokens),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """The most that may be spent in one period; ``None`` is no limit."""

    tokens: int | None = None
    nano_usd: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Per UTC day and per UTC month."""

    day: Cap = Cap()
    month: Cap = Cap()
