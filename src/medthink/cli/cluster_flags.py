"""The flags of the commands that can work on a cluster."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from medthink.core.errors import UsageError

if TYPE_CHECKING:
    from medthink.core.spreading import Spread


def on_option(what: str) -> Callable[[Any], Any]:
    """The flag --on, with what is done there."""
    return click.option(
        "--on", type=click.Choice(["ray"]), help=f"{what} on a running Ray cluster; needs the extra ray."
    )


def read_spread(on: str | None, *, needs: str, is_wanted: bool) -> "Spread | None":
    """Where the heavy part is done: None means here. UsageError where there is no heavy part, without `needs`."""
    if on is None:
        return None
    if not is_wanted:
        raise UsageError("--on is for heavy work, and there is none", remedy=f"add {needs}, or leave out --on")
    from medthink.bridges.cluster import spread_on_ray

    return spread_on_ray
