"""`medthink curate review`."""

from pathlib import Path

import click
from msgspec import to_builtins

from medthink.cli.show import print_json, say
from medthink.core.errors import UsageError


@click.command("review")
@click.argument("work", metavar="WORK", type=click.Path(path_type=Path))
@click.option(
    "--sample", type=click.IntRange(0), default=20, show_default=True, help="Decisions of each stage to check."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed that selects the decisions.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(work: Path, sample: int, seed: int, as_json: bool) -> None:
    """Write the review sheet of a work folder, and report the results of completed checks.

    WORK/review.csv lists every undecided case (fill in `ruling`: in or out, and `value` where one is proposed) and a
    sample of the automatic decisions (fill in `is_right`: yes or no). Completed cells stay; the next build applies
    them.

    \b
    Example: medthink curate review work/ --sample 50
    """
    from medthink.cli.curate_views import show_errors
    from medthink.curate.decision import read_decisions
    from medthink.curate.review import Rulings, write_review
    from medthink.curate.work import WorkFolder

    folder = WorkFolder(work)
    summaries = folder.read_summaries()
    if not summaries:
        raise UsageError(f"{work} holds no build", remedy="run medthink curate build PLAN.toml first")
    rulings = Rulings.read(folder.review)
    logs = {name: read_decisions(folder.decision_file(name)) for name, one in summaries.items() if one.counts.seen}
    waiting = write_review(folder.review, logs, sample=sample, seed=seed, rulings=rulings)
    if as_json:
        print_json({"waiting": waiting, "errors": to_builtins(rulings.errors()), "sheet": str(folder.review)})
        return
    say(f"{waiting:,} cases wait for a person: {folder.review}")
    show_errors(rulings.errors())
