"""`medthink accounts`: the people of a served board."""

import click

from medthink.cli.lazy import LazyGroup


@click.group(
    cls=LazyGroup,
    modules={
        "add": "medthink.cli.accounts_add",
        "list": "medthink.cli.accounts_list",
        "invite": "medthink.cli.accounts_invite",
        "change": "medthink.cli.accounts_change",
    },
)
def accounts() -> None:
    """Manage the accounts of a served board: the first maintainer, invitations, roles, passwords.

    \b
    Example: medthink accounts add ann --role maintainer
    """
