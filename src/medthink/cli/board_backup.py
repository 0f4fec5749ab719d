"""`medthink board backup`: the whole store in one file."""

from pathlib import Path

import click

from medthink.cli.show import print_json, say
from medthink.cli.stores import open_store, store_flag


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@store_flag
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(out: Path, store: str, as_json: bool) -> None:
    """Write the whole store to OUT as a consistent snapshot, even while others write to it.

    \b
    Example: medthink board backup board-2026-11-16.zip
    """
    with open_store(store) as opened:
        from medthink.board.backup import write_backup

        rows = write_backup(opened, out)
    if as_json:
        print_json({"file": str(out), "rows": rows})
        return
    say(f"{sum(rows.values())} rows written to {out}.")
