"""`medthink data export`."""

from pathlib import Path
from typing import Literal

import click

from medthink.cases.benchmark import Benchmark
from medthink.cases.export import export_benchmark
from medthink.cli.show import progress
from medthink.core.errors import UsageError


@click.command()
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--format", "format_", type=click.Choice(["jsonl", "parquet"]), required=True, help="What to write.")
@click.option("--embed-images", is_flag=True, help="Put the images into the parquet files.")
def command(source: Path, out: Path, format_: Literal["jsonl", "parquet"], embed_images: bool) -> None:
    """Write the benchmark IN as the folder OUT, in another form and without loss.

    \b
    Example: medthink data export bench/ bench-parquet/ --format parquet --embed-images
    """
    if embed_images and format_ != "parquet":
        raise UsageError("only parquet can embed images", remedy="add --format parquet")
    benchmark = Benchmark.open(source)
    with progress() as bar:
        task = bar.add_task("Exporting", total=len(benchmark))
        done = export_benchmark(
            benchmark, out, format=format_, embed_images=embed_images, progress=lambda: bar.advance(task)
        )
    click.echo(f"{done.cases:,} cases, {done.images:,} images → {out}")
    if done.missing:
        warning = f"{done.missing:,} images are missing in {source} and so in {out}; medthink data check names them"
        click.echo(f"medthink: {warning}", err=True)
