"""`medthink reading`: blinded reading lists for radiologists."""

from pathlib import Path
from typing import Any

import click

from medthink.cli.lazy import ParentCommand
from medthink.cli.params import Real
from medthink.cli.show import say


@click.command(
    cls=ParentCommand,
    modules={
        "training": "medthink.cli.reading_training",
        "mark": "medthink.cli.reading_mark",
        "export": "medthink.cli.reading_export",
    },
)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--readers", required=True, metavar="NAME,NAME…", help="Who reads: a list for each.")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="The folder to write to.")
@click.option(
    "--per-sheet", type=click.IntRange(1), default=2, show_default=True, help="How many readers read each sheet."
)
@click.option(
    "--sheets",
    type=click.IntRange(1),
    metavar="N",
    help="Only N sheets, drawn by the seed; a sheet is one text of one case.",
)
@click.option(
    "--again", type=Real(0, 1), default=0.1, show_default=True, help="Share of sheets that a reader gets twice."
)
@click.option(
    "--planted",
    type=Real(0, 1),
    default=0.05,
    show_default=True,
    help="Share of planted sheets with a known truth.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "xlsx", "jsonl"]),
    default="csv",
    show_default=True,
    help="What to write.",
)
@click.option("--data", type=click.Path(path_type=Path), help="The benchmark, if it has moved.")
def reading(runs: tuple[Path, ...], readers: str, out: Path, form: str, data: Path | None, **flags: Any) -> None:
    """Make blinded reading lists from the judged texts of RUNS.

    Each reader gets a list to fill in, a table of the cases and their images, all under codes, and how-to-read.txt.
    FOLDER-key.json, next to the folder, says what each code stands for: keep it from the readers. RUNS must have been
    judged before: that cuts their texts into units.

    \b
    Example: medthink reading runs/retrieval --readers anna,ben --sheets 50 --seed 7 --out reading/
    """
    from medthink.readers.assigning import ReadingPlan, sheets_of_run
    from medthink.readers.lists import key_path, write_lists

    plan = ReadingPlan(
        readers=tuple(readers.replace(",", " ").split()),
        per_sheet=flags["per_sheet"],
        sheets=flags["sheets"],
        again_share=flags["again"],
        planted_share=flags["planted"],
        seed=flags["seed"],
    )
    key = write_lists(out, [sheet for run in runs for sheet in sheets_of_run(run, data)], plan, form=form)
    planted = sum(code.planted is not None for code in key.codes.values())
    again = sum(code.is_again for code in key.codes.values())
    say(f"{out}: {len(key.codes)} rows for {len(plan.readers)} readers ({again} second, {planted} planted)")
    say(f"{key_path(out)} says what the codes stand for: keep it from the readers")
