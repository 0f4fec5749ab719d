"""`medthink board`: a leaderboard in one database."""

import click

from medthink.cli.lazy import LazyGroup


@click.group(
    cls=LazyGroup,
    modules={
        "add": "medthink.cli.board_add",
        "list": "medthink.cli.board_list",
        "build": "medthink.cli.board_build",
        "rerun": "medthink.cli.board_rerun",
        "withdraw": "medthink.cli.board_withdraw",
        "work": "medthink.cli.board_work",
        "backup": "medthink.cli.board_backup",
        "restore": "medthink.cli.board_restore",
    },
)
def board() -> None:
    """Manage a leaderboard: add runs and submissions, rank, withdraw, back up, restore.

    \b
    Example: medthink board add runs/qwen --data bench/ --team "My lab"
    """
