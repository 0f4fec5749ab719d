"""`medthink data pull`."""

from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from medthink.cases.benchmark import Benchmark
from medthink.cases.check import check_benchmark
from medthink.cases.pull import LICENCE, REPOSITORY, REVISION, find_snapshot, pull_snapshot


@click.command()
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@click.option("--revision", default=REVISION, show_default=True, help="A branch, tag or commit of the repository.")
def command(out: Path, revision: str) -> None:
    """Fetch MedThinkVQA from the Hugging Face hub into the folder OUT, and check it.

    An interrupted download continues where it stopped when the same command is run again.

    Example: medthink data pull medthinkvqa/
    """
    click.echo(f"{REPOSITORY} is licensed {LICENCE}")
    snapshot = find_snapshot(revision)
    with _download_bar() as bar:
        task = bar.add_task("Pulling", total=snapshot.size)
        pull_snapshot(snapshot, out, progress=lambda size: bar.advance(task, size))
    benchmark = Benchmark.open(out)
    click.echo(f"commit {snapshot.commit}, {len(benchmark):,} cases → {out}")
    click.echo(f"read from {benchmark.sources}")
    # The release has known defects, so finding them is not a failure of the download.
    report = check_benchmark(benchmark, images=False)
    found = f"checked: {len(report.errors):,} errors, {len(report.warnings):,} warnings"
    click.echo(f"{found}; medthink data check {out} lists them")


def _download_bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
