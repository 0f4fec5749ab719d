"""`medthink board withdraw`: take a submission off the ranking, leaving its row."""

import click

from medthink.cli.show import print_json, say
from medthink.cli.stores import open_store, store_flag


@click.command()
@click.argument("token")
@click.option("--why", required=True, help="The reason, shown with the row.")
@store_flag
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(token: str, why: str, store: str, as_json: bool) -> None:
    """Take the submission TOKEN off the ranking; its row stays and says why.

    \b
    Example: medthink board withdraw Xy3… --why "trained on the test split"
    """
    with open_store(store) as opened:
        from medthink.board.moderation import withdraw

        gone = withdraw(opened, token, actor="maintainer", why=why)
    if as_json:
        print_json({"token": gone.token, "status": gone.status, "why": gone.detail})
        return
    say(f"{gone.model} by {gone.team} is withdrawn: {gone.detail}")
