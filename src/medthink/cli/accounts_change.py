"""`medthink accounts change`: roles, password, closing."""

from typing import TYPE_CHECKING, TextIO

import click

from medthink.accounts.roles import ROLES
from medthink.cli.accounts_add import read_password
from medthink.cli.show import say
from medthink.cli.stores import open_store, store_flag
from medthink.core.errors import UsageError

if TYPE_CHECKING:
    from medthink.accounts.roles import GivenRole


@click.command()
@click.argument("name")
@click.option("--role", "roles", multiple=True, type=click.Choice(ROLES), help="New roles; may be repeated.")
@click.option("--password", "asks_password", is_flag=True, help="Set a new password; this ends all sessions.")
@click.option("--password-file", type=click.File("r"), help="A file with the password; - for standard input.")
@click.option("--close/--open", "is_closed", default=None, help="Close the account, or open it again.")
@store_flag
def command(
    name: str,
    roles: "tuple[GivenRole, ...]",
    asks_password: bool,
    password_file: TextIO | None,
    is_closed: bool | None,
    store: str,
) -> None:
    """Change the account NAME: roles, password, or whether it is open.

    \b
    Example: medthink accounts change ann --password
    """
    with open_store(store) as opened:
        from medthink.accounts.people import find_account, set_disabled, set_password, set_roles

        account = find_account(opened, name)
        if account is None:
            raise UsageError(f"no account {name}", remedy="medthink accounts list shows them")
        if roles:
            set_roles(opened, account, roles, actor="command line")
        if asks_password or password_file is not None:
            set_password(opened, account, read_password(password_file), actor="command line")
        if is_closed is not None:
            set_disabled(opened, account, is_disabled=is_closed, actor="command line")
    say(f"{account.name} is changed.")
