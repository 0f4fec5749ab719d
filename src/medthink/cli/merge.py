"""`medthink merge`: combine the shards of one run."""

from pathlib import Path

import click
from msgspec import to_builtins

from medthink.cli.show import print_json


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("shards", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def merge(out: Path, shards: tuple[Path, ...], as_json: bool) -> None:
    """Combine SHARDS, made by `medthink run --shard i/n`, into the run OUT.

    They must be shards of one run, disjoint, complete and finished; otherwise nothing is written.

    Example: medthink merge runs/whole runs/part1 runs/part2
    """
    from medthink.cli.run_views import show_progress
    from medthink.runs.merge import merge_shards

    run = merge_shards(out, list(shards))
    if as_json:
        print_json(to_builtins(run.manifest) | {"run": str(run.path)})
    else:
        show_progress(run.path, run.manifest)
