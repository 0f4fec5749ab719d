"""`medthink accounts list`: who has an account."""

import click

from medthink.cli.show import console, print_json, table
from medthink.cli.stores import open_store, store_flag


@click.command()
@store_flag
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(store: str, as_json: bool) -> None:
    """List all accounts with their roles and teams.

    \b
    Example: medthink accounts list --store board.sqlite
    """
    with open_store(store) as opened:
        from msgspec import to_builtins

        from medthink.accounts.people import list_accounts

        found = list_accounts(opened)
    if as_json:
        print_json([to_builtins(one) for one in found])
        return
    rows = [
        (one.name, one.shown_name, ", ".join(one.roles), one.team or "", "closed" if one.disabled_at else "open")
        for one in found
    ]
    console().print(table(f"{len(rows)} accounts", ("name", "shown as", "roles", "team", "state"), rows))
