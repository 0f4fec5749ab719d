"""`medthink curate build`."""

from pathlib import Path

import click
from msgspec import to_builtins

from medthink.cli.show import print_json, say
from medthink.core.errors import PartlyFailed


@click.command("build")
@click.argument("plan", metavar="PLAN.toml", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(plan: Path, as_json: bool) -> None:
    """Build a benchmark from raw cases, as PLAN.toml says.

    Each table of the plan runs the stage of its name. Run the same command again to continue: finished stages and
    answered calls are kept, calls that failed are made again, and the rulings in WORK/review.csv are applied.

    \b
    Example: medthink curate build plan.toml
    """
    from medthink.cli.curate_views import show_errors, show_stages, shown_stages
    from medthink.curate.build import build
    from medthink.curate.plan import read_plan

    read = read_plan(plan)
    try:
        with shown_stages() as watch:
            end = build(read, watch)
    except KeyboardInterrupt:
        say(
            f"Stopped. {read.work} keeps every finished stage and call; run the same command again to continue.",
            stderr=True,
        )
        raise
    if as_json:
        told = {"stages": to_builtins(end.stages), "waiting": end.waiting, "errors": to_builtins(end.errors)}
        print_json(told | {"work": str(end.work), "unfinished": end.unfinished})
    else:
        show_stages(end.stages)
        show_errors(end.errors)
        say(f"{end.waiting:,} cases wait for a person: {end.work / 'review.csv'}")
    if end.stopped_by is not None:
        raise end.stopped_by
    if end.unfinished:
        raise PartlyFailed(
            f"{end.unfinished:,} cases are undecided because calls failed",
            remedy="run the same command again to repeat them",
        )
