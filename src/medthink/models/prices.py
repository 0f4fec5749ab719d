"""Prices of calls, from a dated list the user can override; a model without a price costs None, never 0."""

import math
import os
import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from medthink.core.errors import DataError, UsageError
from medthink.core.files import open_for_reading
from medthink.models.request import ImagePart, Request, TextPart, Usage

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


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars for a million tokens; the `_above` prices apply to prompts of more than `above` tokens.

    `write` and `write_long` are for what goes into a cache, for minutes and for longer. `batch` is the factor for
    requests in a batch, `batch_cached` that for their cached tokens, and `tiers` holds those for service tiers.
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

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            for number in value.values() if isinstance(value, dict) else (value,):
                if number is not None and not 0 <= number < math.inf:
                    raise ValueError(f"{name} is {number}: a price is a number from 0 upwards")

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
    list stands for it.
    """

    cost_usd: float | None
    is_least: bool = False


NOT_BILLED = Charge(0.0)


def charge_attempt(
    usage: Usage | None, *, is_billed: bool, worst_usd: float | None, price: Callable[[Usage], float | None]
) -> Charge:
    """What an attempt with these tokens cost; one that was or may have been billed is never free."""
    if usage is not None:
        return Charge(price(usage), usage.is_least)
    return Charge(worst_usd, is_least=True) if is_billed else NOT_BILLED


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A price list and its date."""

    date: str
    models: dict[str, Price]
    note: str = ""

    def find(self, spec: str) -> Price | None:
        """The price of `provider/name`, or None; the same model costs the same through Inspect."""
        if spec.startswith("inspect/") and spec not in self.models:
            spec = spec.removeprefix("inspect/")
        provider, _, name = spec.partition("/")
        spec = f"{_ALIASES.get(provider, provider)}/{name}"
        return self.models.get(spec) or self.models.get(_SNAPSHOT.sub("", spec))

    def cost_usd(self, spec: str, usage: Usage | None) -> float | None:
        """The cost of the usage, or None if the price or the usage is unknown."""
        price = self.find(spec)
        return None if price is None or usage is None else price.cost_usd(usage)


def load_prices(override: Path | None = None) -> Prices:
    """The package's list, with the models of the user's own list added or replaced, and then those of a file."""
    found = _parse(resources.files("medthink.models").joinpath("prices.toml").read_bytes(), "prices.toml")
    own = user_prices()
    for file in (own if own.is_file() else None, override):
        if file is not None:
            with open_for_reading(file) as stream:
                more = _parse(stream.read(), file)
            found = Prices(date=more.date, models=found.models | more.models, note=more.note or found.note)
    return found


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


def _parse(data: bytes, file: object) -> Prices:
    try:
        return msgspec.toml.decode(data, type=Prices)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(
            f"not a valid price list: {error}", file=file, remedy="see the package's prices.toml for an example"
        ) from None


_BYTES_A_TOKEN = 4
_FRAME_TOKENS = 12
_UNKNOWN_SIDE = 1024

# (pattern, base, tile): the first that matches counts.
_TILES = (
    (r"gpt-4o-mini", 2_833, 5_667),
    (r"o\d", 75, 150),
    (r"gpt-5", 70, 140),
    (r"", 85, 170),
)
# (pattern, factor, most patches)
_PATCHES = (
    (r"gpt-(4\.1|5)-mini", 1.62, 1_536),
    (r"gpt-(4\.1|5)-nano", 2.46, 1_536),
    (r"o4-mini", 1.72, 1_536),
    (r"gpt-5\.[4-9].*-mini", 1.62, 1_536),
    (r"gpt-5\.[4-9].*-nano", 2.46, 1_536),
    (r"gpt-(5\.[4-9]|[6-9])", 1.0, 2_500),
)


def estimate_input_tokens(request: Request, provider: str, model: str) -> int:
    """The approximate number of input tokens of the request, images included."""
    texts = [request.system, *(part.text for part in request.parts if isinstance(part, TextPart))]
    text_tokens = sum(estimate_text_tokens(text) for text in texts)
    return _FRAME_TOKENS + text_tokens + sum(estimate_image_tokens(i, provider, model) for i in request.images)


def estimate_text_tokens(text: str) -> int:
    """The approximate number of tokens of a text."""
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / _BYTES_A_TOKEN)


def estimate_image_tokens(image: ImagePart, provider: str, model: str) -> int:
    """The approximate number of tokens of an image."""
    width, height = image.width or _UNKNOWN_SIDE, image.height or _UNKNOWN_SIDE
    if provider in ("openai", "openai-chat"):
        return _openai(width, height, model)
    if provider == "anthropic":
        return min(1_600, math.ceil(width * height / 750))
    if provider == "google":
        return _gemini(width, height, model)
    return math.ceil(width / 28) * math.ceil(height / 28)


def _openai(width: int, height: int, model: str) -> int:
    for pattern, factor, most in _PATCHES:
        if re.match(pattern, model):
            patches = min(most, math.ceil(width / 32) * math.ceil(height / 32))
            return math.ceil(patches * factor)
    base, tile = next((base, tile) for pattern, base, tile in _TILES if re.match(pattern, model))
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    return base + tile * math.ceil(width * scale / 512) * math.ceil(height * scale / 512)


def _gemini(width: int, height: int, model: str) -> int:
    if not re.match(r"gemini-[12]\b", model):
        return 1_120
    if max(width, height) <= 384:
        return 258
    return 258 * math.ceil(width / 768) * math.ceil(height / 768)
