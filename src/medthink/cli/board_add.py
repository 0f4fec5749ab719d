"""`medthink board add`: a run or a submission onto the leaderboard."""

from pathlib import Path
from typing import Any

import click

from medthink.cli.show import print_json, say
from medthink.cli.stores import open_store, store_flag


@click.command()
@click.argument("source", type=click.Path(path_type=Path, exists=True))
@click.option("--data", required=True, type=click.Path(path_type=Path), help="The benchmark it is about.")
@click.option("--split", default="test", show_default=True, help="The split it is about.")
@click.option("--team", required=True, help="Who submits.")
@click.option("--model", default="", help="The model's name; a run states its own.")
@click.option("--organisation", default="", help="Who made the model.")
@click.option("--family", default="", help="The model's family, used to count submissions.")
@click.option("--link", default="", help="A link to more information.")
@click.option("--allow-download", "allows_download", is_flag=True, help="Make the predictions public.")
@store_flag
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(source: Path, data: Path, split: str, store: str, as_json: bool, **flags: Any) -> None:
    """Check, score and publish SOURCE: a run's folder, or a file in the submission format.

    \b
    Example: medthink board add runs/qwen --data bench/ --team "My lab"
    """
    with open_store(store) as opened:
        from medthink.board.adding import Addition, add_to_board
        from medthink.board.checking import HeldBenchmark
        from medthink.board.provenance import PROVENANCE
        from medthink.board.records import About

        about = About(**{name: flags.pop(name) for name in ("organisation", "family", "link")})
        addition = Addition(source=source, about=about, **flags)
        added = add_to_board(opened, HeldBenchmark.open(data, split), addition, actor="maintainer")
        if as_json:
            from msgspec import to_builtins

            print_json(to_builtins(added))
            return
        say(f"{added.model} by {added.team}: {added.status}, {added.provenance} ({PROVENANCE[added.provenance]}).")
        say(f"Its token is {added.token}; medthink board withdraw removes it again.")
        if added.detail:
            say(f"Note: {added.detail}.")
