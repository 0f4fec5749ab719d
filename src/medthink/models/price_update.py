"""The user's own list of prices, refreshed from a file or an address without a release of this package."""

import json
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import asdict, fields

from medthink.core.errors import OutsideError, UsageError
from medthink.core.files import write_atomic
from medthink.models.prices import Price, Prices, load_prices, parse_prices, read_prices, user_prices

FETCH_S = 30.0
_MOST_BYTES = 4 * 1024 * 1024


class PriceUpdate(NamedTuple):
    """What a refreshed list changed: models that are new to it, that have other prices, and that are as they were."""

    file: Path
    date: str
    added: tuple[str, ...]
    changed: tuple[str, ...]
    same: int


def update_prices(source: str) -> PriceUpdate:
    """Put a list of prices into the user's own, which is read from then on; prices that it does not name stay."""
    newer = _fetch(source) if source.startswith(("http://", "https://")) else read_prices(Path(source))
    if not newer.models:
        raise UsageError(f"{source} names no price", remedy="give a list in the form of the package's prices.toml")
    before, own = load_prices().models, user_prices()
    kept = read_prices(own).refreshed(newer) if own.is_file() else newer
    write_atomic(own, [write_prices(kept).encode()])
    changed = [name for name, price in newer.models.items() if name in before and _terms(price) != _terms(before[name])]
    added = [name for name in newer.models if name not in before]
    return PriceUpdate(own, newer.date, tuple(added), tuple(changed), len(newer.models) - len(added) - len(changed))


def write_prices(prices: Prices) -> str:
    """The list as TOML."""
    head = [
        f"date = {_write(prices.date)}",
        *([f"note = {_write(prices.note)}"] if prices.note else []),
        "",
        "[models]",
    ]
    return "\n".join(
        [*head, *(f"{_write(name)} = {_write(_given(price))}" for name, price in prices.models.items()), ""]
    )


def _fetch(url: str) -> Prices:
    try:
        with urllib.request.urlopen(url, timeout=FETCH_S) as reply:  # the address is the user's own
            data: bytes = reply.read(_MOST_BYTES + 1)
    except (urllib.error.URLError, HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise OutsideError(f"{url}: {reason}", remedy="check the address, or give the list as a file") from None
    if len(data) > _MOST_BYTES:
        raise OutsideError(f"{url}: too large to be a list of prices", remedy="check the address")
    return parse_prices(data, url)


def _given(price: Price) -> dict[str, Any]:
    """The fields of a price that differ from their defaults."""
    plain, values = asdict(Price(input=0.0, output=0.0)), asdict(price)
    return {one.name: values[one.name] for one in fields(Price) if one.required or values[one.name] != plain[one.name]}


def _terms(price: Price) -> dict[str, Any]:
    return {name: value for name, value in _given(price).items() if name != "date"}


def _write(value: Any) -> str:
    """A value as TOML; texts are written as in JSON, but for DEL."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(name)} = {_write(one)}" for name, one in value.items()) + " }"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_write, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def _key(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else _write(name)
