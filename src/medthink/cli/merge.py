"""`medthink merge`: shards of one run made whole."""

from pathlib import Path

import click


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("shards", nargs=-1, required=True, type=click.Path(path_type=Path))
def merge(out: Path, shards: tuple[Path, ...]) -> None:
    """Put SHARDS, made by `medthink run --shard i/n`, together as the run OUT.

    They must be shards of one run, disjoint, complete and finished; else nothing is written.

    Example: medthink merge runs/whole runs/part1 runs/part2
    """
    from medthink.cli.run_views import show_progress
    from medthink.runs.merge import merge_shards

    run = merge_shards(out, list(shards))
    show_progress(run.path, run.manifest)
