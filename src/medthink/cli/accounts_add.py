"""`medthink accounts add`: make an account."""

from typing import TextIO

import click

from medthink.accounts.roles import ROLES, GivenRole
from medthink.cli.show import say
from medthink.cli.stores import open_store, store_flag

roles_flag = click.option(
    "--role",
    "roles",
    required=True,
    multiple=True,
    type=click.Choice(ROLES),
    help="The person's role; may be repeated.",
)


def read_password(file: TextIO | None) -> str:
    """A password from a file's first line, or typed twice without echo."""
    if file is not None:
        return file.readline().rstrip("\r\n")
    typed: str = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    return typed


@click.command()
@click.argument("name")
@roles_flag
@click.option("--team", default="", help="The team they submit for.")
@click.option("--shown-name", default="", help="Display name.")
@click.option("--password-file", type=click.File("r"), help="A file with the password; - for standard input.")
@store_flag
def command(
    name: str,
    roles: tuple[GivenRole, ...],
    team: str,
    shown_name: str,
    password_file: TextIO | None,
    store: str,
) -> None:
    """Make the account NAME; the password is asked for, or read from a file.

    \b
    Example: medthink accounts add ann --role maintainer --store board.sqlite
    """
    with open_store(store) as opened:
        from medthink.accounts.people import NewAccount, add_account

        new = NewAccount(
            name=name, roles=roles, team=team, shown_name=shown_name, password=read_password(password_file)
        )
        made = add_account(opened, new, actor="command line")
    say(f"{made.name} is {' and '.join(made.roles)}" + (f" of {made.team}." if made.team else "."))
