"""What an operator can say about the cost of hosted probes."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pinchpoint.sources.probe.spend.amount import NANO, Cap, Caps, Price

Usd = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
UsdPerMillion = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
TokenCount = Annotated[int, Field(ge=0, le=10**12)]


class PriceSettings(BaseModel):
    """What the provider bills, in US dollars per million tokens: prices change, so only you can know them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input_usd_per_million_tokens: UsdPerMillion = Field(
        description="US dollars per million prompt tokens. No default: a wrong price is worse than none."
    )
    output_usd_per_million_tokens: UsdPerMillion = Field(
        description="US dollars per million generated tokens, reasoning included. No default, as above."
    )
    cached_usd_per_million_tokens: UsdPerMillion | None = Field(
        default=None,
        description="US dollars per million prompt tokens read from the provider's cache. Unset: as any prompt token.",
    )

    def price(self) -> Price:
        cached = self.cached_usd_per_million_tokens
        return Price(
            input=self.input_usd_per_million_tokens,
            output=self.output_usd_per_million_tokens,
            cached=self.input_usd_per_million_tokens if cached is None else cached,
        )


class CapSettings(BaseModel):
    """The most that hosted probes may spend. Days and months are those of UTC."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens_per_day: TokenCount | None = Field(
        default=None,
        description="Tokens per day, prompt and answer. Unset: no limit; but a hosted target that is given no cap at "
        "all gets what a day of its probes can take at worst, and a quarter more.",
    )
    tokens_per_month: TokenCount | None = Field(default=None, description="Tokens per month. Unset: no limit.")
    usd_per_day: Usd | None = Field(
        default=None, description="US dollars per day; needs a price. Unset: no limit, for no price is known."
    )
    usd_per_month: Usd | None = Field(
        default=None, description="US dollars per month; needs a price. Unset: no limit, for no price is known."
    )

    @property
    def are_given(self) -> bool:
        return any(value is not None for value in (self.tokens_per_day, self.tokens_per_month)) or self.in_money

    @property
    def in_money(self) -> bool:
        return self.usd_per_day is not None or self.usd_per_month is not None

    def caps(self) -> Caps:
        return Caps(
            day=Cap(tokens=self.tokens_per_day, nano_usd=_nano(self.usd_per_day)),
            month=Cap(tokens=self.tokens_per_month, nano_usd=_nano(self.usd_per_month)),
        )


def _nano(usd: float | None) -> int | None:
    return None if usd is None else round(usd * NANO)
