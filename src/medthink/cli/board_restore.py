"""`medthink board restore`: a backup into an empty store."""

from pathlib import Path

import click

from medthink.cli.show import print_json, say
from medthink.cli.stores import open_store, store_flag


@click.command()
@click.argument("backup", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@store_flag
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(backup: Path, store: str, as_json: bool) -> None:
    """Fill an empty store from BACKUP; a SQLite backup may go into PostgreSQL and the other way round.

    \b
    Example: medthink board restore board-2026-11-16.zip --store new.sqlite
    """
    with open_store(store) as opened:
        from medthink.board.backup import restore_backup

        rows = restore_backup(backup, opened)
    if as_json:
        print_json({"store": store, "rows": rows})
        return
    say(f"{sum(rows.values())} rows restored.")
