"""`medthink models`: what is known of models, and the list of prices."""

from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from medthink.cli.command import LazyGroup
from medthink.cli.flags import json_flag
from medthink.cli.output import console, print_json, print_line, print_table
from medthink.core.errors import UsageError
from medthink.core.numbers import NOTHING, count_of
from medthink.models.catalog import PROVIDERS, efforts_of, parse_model_name

if TYPE_CHECKING:
    from medthink.models.prices import Price

# Anthropic's models with this context take fewer images.
_SMALL_CONTEXT, _FEWER_IMAGES = 200_000, 100


@click.group(
    cls=LazyGroup,
    modules={"list": "models:models_list", "prices": "models:models_prices"},
    default="list",
    is_bare=True,
)
def models() -> None:
    """List the models known here, and refresh their prices.

    `medthink models [WORD]...` is short for `medthink models list [WORD]...`. Any other model of these providers can be
    asked as well; it only has no price.

    \b
    Example: medthink models
    Example: medthink models list claude --json
    Example: medthink models prices --update prices.toml
    """


@click.command()
@click.argument("words", nargs=-1, metavar="[WORD]...")
@json_flag
def models_list(words: tuple[str, ...], as_json: bool) -> None:
    """List the known models whose names contain one of the WORDs: context, images a request, efforts, price, end.

    Prices are US dollars for a million tokens in and out.

    \b
    Example: medthink models list gpt-6 claude
    """
    from medthink.models.prices import load_prices

    prices = load_prices()
    today = {name: prices.find(name) for name in prices.models}
    found = {name: price for name, price in today.items() if price and (not words or any(one in name for one in words))}
    if not found:
        raise UsageError(
            f"no known model is named like {', '.join(words)}", remedy="see the whole list with: medthink models"
        )
    rows = {name: describe_model(name, price) for name, price in found.items()}
    if as_json:
        print_json({"date": prices.date, "models": rows})
        return
    title = f"Prices in US dollars for a million tokens, as of {prices.date}"
    cells = [_cells(name, price, row) for (name, price), row in zip(found.items(), rows.values(), strict=True)]
    columns = ("model", "context", "images", "efforts", "in/cached/out", "ends")
    console().print(print_table(title, columns, cells, right=(1, 2)))


def describe_model(name: str, price: "Price") -> dict[str, object]:
    """What is known of a model."""
    provider = name.partition("/")[0]
    efforts = price.efforts or (efforts_of(parse_model_name(name)) if provider in PROVIDERS else ())
    return {
        "context": price.context,
        "images": _most_images(provider, price.context),
        "efforts": list(efforts),
        "input": price.input,
        "cached": price.cached,
        "output": price.output,
        "date": price.date,
        "ends": price.ends or None,
    }


def _most_images(provider: str, context: int | None) -> int | None:
    most = PROVIDERS[provider].image_limits.max_images if provider in PROVIDERS else None
    is_small = provider == "anthropic" and context is not None and context <= _SMALL_CONTEXT
    return _FEWER_IMAGES if is_small else most


def _cells(name: str, price: "Price", row: dict[str, object]) -> tuple[str, ...]:
    cost = "/".join(NOTHING if rate is None else f"{rate:g}" for rate in (price.input, price.cached, price.output))
    efforts = row["efforts"]
    assert isinstance(efforts, list)
    context = f"{price.context / 1000:,.0f}k" if price.context else NOTHING
    return (name, context, str(row["images"] or NOTHING), _span(efforts), cost, price.ends or NOTHING)


def _span(levels: list[str]) -> str:
    """The first and the last of several levels."""
    return f"{levels[0]}–{levels[-1]}" if len(levels) > 1 else "".join(levels) or NOTHING


@click.command()
@click.option("--update", metavar="FILE|URL", help="Put the prices of this list (TOML) into your own.")
@json_flag
def models_prices(update: str | None, as_json: bool) -> None:
    """Show where prices come from, or put newer ones into your own list, which is read from then on.

    \b
    Example: medthink models prices
    Example: medthink models prices --update https://example.org/prices.toml
    """
    from medthink.models.price_update import update_prices
    from medthink.models.prices import packaged_prices, read_prices, user_prices

    if update is not None:
        made = update_prices(update)
        if as_json:
            print_json({**made._asdict(), "file": str(made.file)})
            return
        told = f"{len(made.added):,} new, {len(made.changed):,} changed, {made.same:,} as before"
        print_line(f"{made.file}: prices of {made.date}: {told}")
        return
    lists = {"this release": packaged_prices()}
    if (own := user_prices()).is_file():
        lists[str(own)] = read_prices(own)
    if as_json:
        print_json({name: to_builtins(one) for name, one in lists.items()})
        return
    for name, one in lists.items():
        print_line(f"{name}: {count_of(len(one.models), 'model')}, {one.date}" + (f" ({one.note})" if one.note else ""))
