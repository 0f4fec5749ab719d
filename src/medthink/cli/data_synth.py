"""`medthink data synth`: make a phantom benchmark."""

from pathlib import Path

import click

from medthink.cli.show import progress
from medthink.core.errors import UsageError


@click.command("synth")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--cases", type=click.IntRange(min=2), default=60, show_default=True, help="How many cases to make.")
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@click.option("--shortcut", is_flag=True, help="Plant an option-length leak and a history leak.")
@click.option("--defects", is_flag=True, help="Plant one of every defect that `medthink data check` finds.")
@click.option("--raw", is_flag=True, help="Make raw cases with planted faults instead, and a plan for curate.")
def command(out: Path, cases: int, seed: int, shortcut: bool, defects: bool, raw: bool) -> None:
    """Make a benchmark of drawn phantoms that can only be solved from several images together.

    \b
    Example: medthink data synth bench/ --cases 60 --seed 1
    Example: medthink data synth raw/ --raw --cases 240
    """
    if raw:
        if shortcut or defects:
            raise UsageError("--raw already plants its own faults", remedy="leave out --shortcut and --defects")
        _make_raw(out, cases, seed)
        return
    from medthink.phantoms.writer import write_benchmark

    with progress() as bar:
        task = bar.add_task("painting cases", total=cases)
        counts = write_benchmark(
            out, cases=cases, seed=seed, shortcut=shortcut, defects=defects,
            progress=lambda done: bar.update(task, completed=done),
        )  # fmt: skip
    click.echo(f"{out}: {cases} cases ({counts.train} train, {counts.test} test), {counts.images} images")


def _make_raw(out: Path, cases: int, seed: int) -> None:
    from medthink.phantoms.raw import write_raw

    with progress() as bar:
        task = bar.add_task("painting cases", total=cases)
        planted = write_raw(out, cases=cases, seed=seed, progress=lambda done: bar.update(task, completed=done))
    click.echo(f"{out}: {cases} raw cases, faults in {len(planted)}; next: medthink curate build {out / 'plan.toml'}")
