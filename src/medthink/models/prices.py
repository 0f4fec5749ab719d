"""Prices of calls, from a dated list the user can override; a model without a price costs None, never 0."""

import math
import os
import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from medthink.core.clock import now_utc
from medthink.core.errors import DataError, UsageError
from medthink.core.files import open_for_reading
from medthink.models.request import Effort, Usage

_MILLION = 1_000_000
# What providers ask for cache writes, for minutes and for an hour or more, as multiples of fresh input.
_WRITE_FACTOR, _WRITE_LONG_FACTOR = 1.25, 2.0
_STANDARD_TIERS = ("", "standard", "default", "auto", "batch", "unspecified")
_TIER_FACTORS = {"flex": 1.0, "priority": 2.0, "fast": 2.0}
# `-2026-01-31` or `-20260131`: a dated snapshot costs what its model costs.
_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")
PRICE_FORM = "IN/OUT in US dollars for a million tokens, such as --price 5/30"
# Providers that reach the same models by another wire.
_ALIASES = {"openai-chat": "openai"}


_RATES = ("input", "output", "cached", "write", "write_long", "input_above", "cached_above", "output_above")


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars for a million tokens; the `_above` prices apply to prompts of more than `above` tokens.

    `write` and `write_long` are for what goes into a cache, for minutes and for longer. `batch` is the factor for
    requests in a batch, `batch_cached` that for their cached tokens, and `tiers` holds those for service tiers. `rises`
    are announced: from each day on, all of it is multiplied.

    `context` (in tokens), `efforts` and `ends` (the day it is switched off) are what else is known of the model, and
    `date` is that of the list.
    """

    input: float
    output: float
    cached: float | None = None
    write: float | None = None
    write_long: float | None = None
    above: int | None = None
    input_above: float | None = None
    cached_above: float | None = None
    output_above: float | None = None
    batch: float = 0.5
    batch_cached: float | None = None
    tiers: dict[str, float] = {}
    rises: dict[str, float] = {}
    context: int | None = None
    efforts: tuple[Effort, ...] = ()
    ends: str = ""
    date: str = ""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            for number in value.values() if isinstance(value, dict) else (value,):
                if isinstance(number, int | float) and not 0 <= number < math.inf:
                    raise ValueError(f"{name} is {number}: a price is a number from 0 upwards")

    def on(self, day: str) -> "Price":
        """The price on a day such as `2026-12-01`."""
        factor = math.prod(factor for start, factor in self.rises.items() if start <= day)
        if factor == 1.0:
            return self
        rates = {name: getattr(self, name) for name in _RATES}
        risen = {name: rate * factor for name, rate in rates.items() if rate is not None}
        return replace(self, rises={start: by for start, by in self.rises.items() if start > day}, **risen)

    def cost_usd(self, usage: Usage, *, is_batch: bool = False) -> float | None:
        """The cost of one call with this usage; None at a service tier whose price is not known."""
        factor = self.batch if is_batch else self._tier_factor(usage.tier)
        if factor is None:
            return None
        cached_factor = self.batch_cached if is_batch and self.batch_cached is not None else factor
        rates = self._rates(usage.input)
        fresh = usage.input - usage.cached - usage.written - usage.written_long
        written = usage.written * rates.write + usage.written_long * rates.write_long
        whole = fresh * rates.input + written + usage.output * rates.output
        return (whole * factor + usage.cached * rates.cached * cached_factor) / _MILLION

    def _tier_factor(self, tier: str) -> float | None:
        """The factor of a service tier; without a price of its own, one that may cost less counts as the standard."""
        return 1.0 if tier in _STANDARD_TIERS else self.tiers.get(tier, _TIER_FACTORS.get(tier))

    def _rates(self, prompt_tokens: int) -> "_Rates":
        """The rates for a prompt of this size; what has none of its own costs as much as fresh input, or more."""
        is_above = self.above is not None and prompt_tokens > self.above
        fresh = self.input_above if is_above and self.input_above is not None else self.input
        scale = fresh / self.input if self.input else 1.0
        cached, output = (self.cached_above, self.output_above) if is_above else (None, None)
        write = _WRITE_FACTOR * self.input if self.write is None else self.write
        write_long = _WRITE_LONG_FACTOR * self.input if self.write_long is None else self.write_long
        if cached is None:
            cached = fresh if self.cached is None else self.cached * scale
        return _Rates(fresh, cached, write * scale, write_long * scale, self.output if output is None else output)


class _Rates(NamedTuple):
    """US dollars for a million tokens of each kind."""

    input: float
    cached: float
    write: float
    write_long: float
    output: float


class Charge(NamedTuple):
    """What an attempt cost: None if the price is not known.

    `is_least`: nobody counted its tokens, or the counts contradict each other; the most that it may cost by the price
    list stands for it. `saved_usd` is what the same tokens would have cost more without a cache.
    """

    cost_usd: float | None
    is_least: bool = False
    saved_usd: float | None = 0.0


NOT_BILLED = Charge(0.0)


def charge_attempt(
    usage: Usage | None, *, is_billed: bool, worst_usd: float | None, price: Callable[[Usage], float | None]
) -> Charge:
    """What an attempt with these tokens cost; one that was or may have been billed is never free."""
    if usage is not None:
        return Charge(price(usage), usage.is_least, saved_by_cache(usage, price))
    return Charge(worst_usd, is_least=True) if is_billed else NOT_BILLED


def saved_by_cache(usage: Usage, price: Callable[[Usage], float | None]) -> float | None:
    """What a cache has saved at this price; below 0 if more was written to it than was ever read."""
    if not (usage.cached or usage.written or usage.written_long):
        return 0.0
    cost, without = price(usage), price(replace(usage, cached=0, written=0, written_long=0))
    return None if cost is None or without is None else without - cost


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A price list and its date."""

    date: str
    models: dict[str, Price]
    note: str = ""

    def find(self, spec: str) -> Price | None:
        """Today's price of `provider/name`, or None; the same model costs the same through Inspect."""
        if spec.startswith("inspect/") and spec not in self.models:
            spec = spec.removeprefix("inspect/")
        provider, _, name = spec.partition("/")
        spec = f"{_ALIASES.get(provider, provider)}/{name}"
        found = self.models.get(spec) or self.models.get(_SNAPSHOT.sub("", spec))
        return None if found is None else found.on(now_utc()[:10])

    def refreshed(self, newer: "Prices") -> "Prices":
        """This list, with the models of another added or replaced."""
        return Prices(date=newer.date, models=self.models | newer.models, note=newer.note or self.note)

    def cost_usd(self, spec: str, usage: Usage | None) -> float | None:
        """The cost of the usage, or None if the price or the usage is unknown."""
        price = self.find(spec)
        return None if price is None or usage is None else price.cost_usd(usage)


def load_prices(override: Path | None = None) -> Prices:
    """The package's list, with the models of the user's own list added or replaced, and then those of a file."""
    found = packaged_prices()
    own = user_prices()
    for file in (own if own.is_file() else None, override):
        if file is not None:
            found = found.refreshed(read_prices(file))
    return found


def packaged_prices() -> Prices:
    """The list of this release."""
    return parse_prices(resources.files("medthink.models").joinpath("prices.toml").read_bytes(), "prices.toml")


def read_prices(file: Path) -> Prices:
    """A list of prices, or DataError."""
    with open_for_reading(file) as stream:
        return parse_prices(stream.read(), file)


def user_prices() -> Path:
    """Where a user's own list is: it refreshes the package's without a release."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "medthink" / "prices.toml"


PriceSource: TypeAlias = Path | Price | None
"""A file of prices, the price itself, or neither."""


def find_price(spec: str, source: PriceSource = None) -> Price | None:
    """The price of a model."""
    return source if isinstance(source, Price) else load_prices(source).find(spec)


def parse_price(text: str) -> Price:
    """`5/30`: US dollars for a million tokens in and out."""
    numbers = re.fullmatch(r"(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)", text.strip())
    if numbers is None:
        raise UsageError(f"{text!r} is not a price", remedy=f"write {PRICE_FORM}")
    return Price(input=float(numbers[1]), output=float(numbers[2]))


def parse_prices(data: bytes, file: object) -> Prices:
    """A list of prices from the bytes of a file, or DataError; each price bears the list's date unless its own."""
    try:
        found = msgspec.toml.decode(data, type=Prices)
        dated = {name: price if price.date else replace(price, date=found.date) for name, price in found.models.items()}
        return replace(found, models=dated)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(
            f"not a valid price list: {error}", file=file, remedy="see the package's prices.toml for an example"
        ) from None
