"""`medthink reading export`: readings in the published form."""

from pathlib import Path

import click

from medthink.cli.show import say
from medthink.cli.unused_rows import show_unused


@click.command(name="export")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("tables", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--key", type=click.Path(path_type=Path), metavar="FILE", help="The key of blinded reading lists (FOLDER-key.json)."
)
@click.option(
    "-o", "--out", required=True, type=click.Path(path_type=Path), metavar="FILE", help="A .csv, .xlsx or .jsonl file."
)
def command(run: Path, tables: tuple[Path, ...], key: Path | None, out: Path) -> None:
    """Write the readers' labels of the steps of RUN in the published form.

    One row for each reader and case, with `stepN`, `human_factualN`, `human_criticalN` and `human_error_typesN`. It is
    coarser than the lists: unverifiable becomes an empty cell, decisive and contributory become critical. Every row of
    TABLES that cannot be used is listed.

    \b
    Example: medthink reading export runs/qwen reading/anna.csv reading/ben.csv --key reading-key.json -o steps.csv
    """
    from medthink.core.errors import UsageError
    from medthink.core.tables import write_table
    from medthink.judge.judged import cut_units
    from medthink.readers.exporting import publish_readings
    from medthink.readers.importing import import_tables
    from medthink.readers.lists import LAYOUT, read_key

    if out.exists():
        raise UsageError(f"{out} already exists", remedy="name another file with --out")
    units = cut_units(run)
    imported = import_tables(tables, units, read_key(key) if key else None)
    table = publish_readings(imported.readings, units)
    if not table.rows:
        raise UsageError("no step is labelled in the tables: there is nothing to write", remedy="fill in some rows")
    show_unused(imported.problems)
    write_table(out, table.columns, table.rows, LAYOUT)
    say(f"{out}: {len(table.rows)} rows")
    if table.left_out:
        say(f"{table.left_out} readings do not concern steps: the published form has no column for them", stderr=True)
