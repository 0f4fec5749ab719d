"""`medthink data synth`: make a phantom benchmark."""

from pathlib import Path

import click

from medthink.cli.show import progress


@click.command("synth")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--cases", type=click.IntRange(min=2), default=60, show_default=True, help="How many cases to make.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed, another benchmark.")
@click.option("--shortcut", is_flag=True, help="Plant an option-length leak and a history leak.")
@click.option("--defects", is_flag=True, help="Plant one of every defect that `medthink data check` finds.")
def command(out: Path, cases: int, seed: int, shortcut: bool, defects: bool) -> None:
    """Make a benchmark of drawn phantoms that only several images together can solve.

    Example: medthink data synth bench/ --cases 60 --seed 1
    """
    from medthink.phantoms.writer import write_benchmark

    with progress() as bar:
        task = bar.add_task("painting cases", total=cases)
        counts = write_benchmark(
            out, cases=cases, seed=seed, shortcut=shortcut, defects=defects,
            progress=lambda done: bar.update(task, completed=done),
        )  # fmt: skip
    click.echo(f"{out}: {cases} cases ({counts.train} train, {counts.test} test), {counts.images} images")
