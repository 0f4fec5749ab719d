"""`medthink accounts`: the accounts of a served board."""

from typing import TYPE_CHECKING, Any, TextIO

import click
from msgspec import to_builtins

from medthink.accounts.roles import ROLES, GivenRole
from medthink.cli.command import LazyGroup
from medthink.cli.flags import Flag, ListOption, json_flag, open_store, store_flag, team_flag
from medthink.cli.output import console, print_json, print_line, print_table
from medthink.core.errors import UsageError

if TYPE_CHECKING:
    from medthink.accounts.roles import GivenRole


@click.group(
    cls=LazyGroup,
    modules={
        "add": "accounts:accounts_add",
        "list": "accounts:accounts_list",
        "invite": "accounts:accounts_invite",
        "edit": "accounts:accounts_edit",
    },
)
def accounts() -> None:
    """Manage the accounts of a served board: the first maintainer, invitations, roles, passwords.

    \b
    Example: medthink accounts add ann --role maintainer
    """


roles_flag = Flag(
    "--role", "roles", cls=ListOption, required=True, type=click.Choice(ROLES),
    help="The person's role; may be repeated.",
)  # fmt: skip
password_file_flag = Flag(
    "--password-file", type=click.File("r"), metavar="FILE", help="A file with the password; - for standard input."
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
@team_flag
@click.option("--display-name", "shown_name", default="", metavar="NAME", help="The name that others see.")
@password_file_flag
@store_flag
@json_flag
def accounts_add(password_file: TextIO | None, store: str, as_json: bool, **flags: Any) -> None:
    """Create the account NAME; the password is typed in, or read from a file.

    \b
    Example: medthink accounts add ann --role maintainer --store board.sqlite
    """
    with open_store(store, creates=True) as opened:
        from medthink.accounts.account import NewAccount, add_account

        new = NewAccount(password=read_password(password_file), **flags)
        made = add_account(opened, new, actor="command line")
    if as_json:
        print_json(to_builtins(made))
        return
    print_line(f"{made.name} is {' and '.join(made.roles)}" + (f" of {made.team}." if made.team else "."))


@click.command()
@click.argument("name")
@roles_flag.but(required=False)
@click.option("--password", "asks_password", is_flag=True, help="Set a new password; this ends all sessions.")
@password_file_flag
@click.option("--disable/--enable", "is_disabled", default=None, help="Disable the account, or enable it again.")
@store_flag
@json_flag
def accounts_edit(
    name: str,
    roles: "tuple[GivenRole, ...]",
    asks_password: bool,
    password_file: TextIO | None,
    is_disabled: bool | None,
    store: str,
    as_json: bool,
) -> None:
    """Change the account NAME: roles, password, or whether it is disabled.

    \b
    Example: medthink accounts edit ann --password
    """
    with open_store(store) as opened:
        from medthink.accounts.account import find_account, set_disabled, set_password, set_roles

        account = find_account(opened, name)
        if account is None:
            raise UsageError(f"no account {name}", remedy="run medthink accounts list to see them")
        if roles:
            set_roles(opened, account, roles, actor="command line")
        if asks_password or password_file is not None:
            set_password(opened, account, read_password(password_file), actor="command line")
        if is_disabled is not None:
            set_disabled(opened, account, is_disabled=is_disabled, actor="command line")
        changed = find_account(opened, name)
    if as_json:
        print_json(to_builtins(changed))
        return
    print_line(f"{account.name} is changed.")


@click.command()
@roles_flag
@team_flag
@click.option("--note", default="", metavar="TEXT", help="Who it is for.")
@click.option(
    "--valid-days", default=14, show_default=True, type=click.IntRange(1, 365), metavar="N",
    help="How many days the link works.",
)  # fmt: skip
@click.option(
    "--url", default="http://127.0.0.1:7350", show_default=True, metavar="URL", help="The address of the served board."
)
@store_flag
@json_flag
def accounts_invite(roles: "tuple[GivenRole, ...]", team: str, note: str, url: str, store: str, **flags: Any) -> None:
    """Print a link with which one person can create an account; it works once.

    \b
    Example: medthink accounts invite --role submitter --team "Tarn University" --url https://board.example.org
    """
    with open_store(store, creates=True) as opened:
        from medthink.accounts.invitations import invite

        secret = invite(opened, roles, actor="command line", team=team, about=note, days=flags["valid_days"])
    link = f"{url.rstrip('/')}/invitation/{secret}"
    if flags["as_json"]:
        print_json({"link": link})
        return
    print_line(link)


@click.command()
@store_flag
@json_flag
def accounts_list(store: str, as_json: bool) -> None:
    """List all accounts with their roles and teams.

    \b
    Example: medthink accounts list --store board.sqlite
    """
    with open_store(store) as opened:
        from medthink.accounts.account import list_accounts

        found = list_accounts(opened)
    if as_json:
        print_json([to_builtins(one) for one in found])
        return
    rows = [
        (one.name, one.shown_name, ", ".join(one.roles), one.team or "", "closed" if one.disabled_at else "open")
        for one in found
    ]
    console().print(print_table(f"{len(rows)} accounts", ("name", "shown as", "roles", "team", "state"), rows))
