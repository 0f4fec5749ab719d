"""`medthink reading training`: lists with which readers learn the rubric before a study."""

from pathlib import Path

import click

from medthink.cli.show import say


@click.command(name="training")
@click.argument("source", type=click.Path(path_type=Path), metavar="DATA|RUN|EXAM")
@click.option("--readers", required=True, metavar="NAME,NAME…", help="Who is trained: a list for each.")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="The folder to write to.")
@click.option("--items", type=click.IntRange(2), default=10, show_default=True, metavar="N", help="Sentences to judge.")
@click.option("--split", help="The split whose cases are used; default: train, if there is one.")
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@click.option(
    "--format", "form", type=click.Choice(["csv", "xlsx", "jsonl"]), default="csv", show_default=True,
    help="What to write.",
)  # fmt: skip
def command(source: Path, readers: str, out: Path, items: int, split: str | None, seed: int, form: str) -> None:
    """Make training lists with known answers.

    The sentences are those of the judges' exam: an expert's own, half of them made false by one edit each, half
    reworded or untouched. Readers fill in `factual`; `medthink reading mark` then tells them what was right and why.
    The answers are in FOLDER-key.json, next to the folder: keep it from the readers until then.

    \b
    Example: medthink reading training bench/ --readers anna,ben --out training/ --format xlsx
    """
    from medthink.readers.assigning import ReadingPlan
    from medthink.readers.lists import key_path
    from medthink.readers.training import draw_training
    from medthink.readers.training_lists import training_sheets, write_training

    plan = ReadingPlan(readers=tuple(readers.replace(",", " ").split()), per_sheet=1)
    sheets, cases = training_sheets(source, split, seed)
    training = draw_training(sheets, items=items, seed=seed)
    write_training(out, training, cases, readers=plan.readers, seed=seed, form=form)
    say(f"{out}: {len(training.items)} sentences for each of {len(plan.readers)} readers")
    say(f"{key_path(out)} holds the answers: keep it from the readers until their lists are marked")
