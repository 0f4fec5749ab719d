"""`medthink accounts invite`: a link to create an account."""

from typing import TYPE_CHECKING

import click

from medthink.cli.accounts_add import roles_flag
from medthink.cli.show import say
from medthink.cli.stores import open_store, store_flag

if TYPE_CHECKING:
    from medthink.accounts.roles import GivenRole


@click.command()
@roles_flag
@click.option("--team", default="", help="The team they join.")
@click.option("--note", default="", help="Who it is for.")
@click.option("--days", default=14, show_default=True, type=click.IntRange(1, 365), help="How long it is valid.")
@click.option("--url", default="http://127.0.0.1:7350", show_default=True, help="The address of the served board.")
@store_flag
def command(roles: "tuple[GivenRole, ...]", team: str, note: str, days: int, url: str, store: str) -> None:
    """Print a link with which one person can create an account; it works once.

    \b
    Example: medthink accounts invite --role submitter --team "Tarn University" --url https://board.example.org
    """
    with open_store(store) as opened:
        from medthink.accounts.invitations import invite

        secret = invite(opened, roles, actor="command line", team=team, about=note, days=days)
    say(f"{url.rstrip('/')}/invitation/{secret}")
